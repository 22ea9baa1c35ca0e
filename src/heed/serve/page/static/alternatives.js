// Other translations of the sentence: a list with scores, the differences marked.

import { announce, bar, byId, make } from "./element.js";
import { alternativesOf, choose, session } from "./session.js";
import { differences } from "./words.js";

const list = byId("alternatives-list");
const hint = byId("alternatives-hint");

let request = new AbortController();
let shown = { answer: undefined, index: -1 };

export function showAlternatives() {
  session.on(["answer", "pointed"], draw);
}

function draw({ answer, pointed }) {
  const index = answer?.segments.length === 1 ? 0 : indexOf(answer, pointed);
  if (shown.answer === answer && (shown.index === index || index < 0)) return;
  shown = { answer, index };
  request.abort();
  if (!answer || answer.isPartial || index < 0) {
    list.replaceChildren();
    say(emptyHint(answer));
  } else if (answer.segments.length === 1 && answer.alternatives) {
    drawList(answer, index, answer.alternatives);
  } else {
    ask(answer, index);
  }
}

/** The sentence to show: the one with the focus; the mouse alone does not change it. */
function indexOf(answer, pointed) {
  const isFocused = byId("translation").contains(document.activeElement);
  return answer && pointed?.side === "target" && isFocused ? pointed.segment : -1;
}

function emptyHint(answer) {
  if (!answer) return "They appear here, best first.";
  return answer.isPartial ? "" : "Choose a word to see the other translations of its sentence.";
}

async function ask(answer, index) {
  const { signal } = (request = new AbortController());
  try {
    const found = await alternativesOf(index, signal);
    if (!signal.aborted) drawList(answer, index, found);
  } catch (error) {
    if (error.name !== "AbortError") session.set({ error });
  }
}

function drawList(answer, index, found) {
  const segment = answer.segments[index];
  const all = [{ text: segment.text, score: segment.score }, ...found];
  const others = all.filter(({ text }, i) => i === 0 || text !== segment.text);
  const best = Math.max(...others.map(({ score }) => score ?? -Infinity));
  say(others.length > 1 ? "" : "The model found no other one.");
  list.replaceChildren(...others.map((one, i) => rowOf(one, i, segment, index, best)));
}

function rowOf({ text, score }, place, segment, index, best) {
  const parts = place ? differences(segment.text, text, session.to) : [{ text, isChanged: false }];
  const words = parts.map((part) => (part.isChanged ? make("mark", {}, part.text) : part.text));
  const pick = () => {
    choose(index, text, text);
    announce(text);
    list.querySelector("button")?.focus();
  };
  const inside = [make("span", { class: "words", dir: "auto", lang: session.to }, ...words)];
  if (score != null) inside.push(scoreOf(score, best));
  if (!place) return make("li", { class: "current", "aria-current": "true" }, ...inside);
  return make("li", {}, make("button", { type: "button", onclick: pick }, ...inside));
}

function scoreOf(score, best) {
  const number = make("span", { class: "number" }, score.toFixed(2).replace("-", "−"));
  const title = "Score: log-probability per token; nearer to 0 is better";
  return make("span", { class: "score", title }, bar(Math.exp(score - best)), number);
}

function say(sentence) {
  hint.textContent = sentence;
  hint.hidden = !sentence;
}
