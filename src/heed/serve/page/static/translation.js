// The pane of the translation: words that can be pointed at, chosen and doubted. It reads as one
// text; only the word with the focus is a button, and the arrow keys move the focus.

import { hasPlace } from "./answer.js";
import { closeChoices, openChoices } from "./choices.js";
import { announce, byId, copy, fill, icon, make } from "./element.js";
import { hideReason, showReason } from "./reason.js";
import { makeTint, readSentence } from "./sentences.js";
import { redo, session, undo } from "./session.js";
import { probabilityOf } from "./words.js";

const pane = byId("translation");
const SETTLED_MS = 1000; // a translation that stays as long is read to screen readers

const tint = makeTint();

let wordsOf = []; // for each sentence its elements, null for what is no word
let drawn = { segments: [] };

export function showTranslation() {
  fill(byId("copy"), "copy");
  fill(byId("undo"), "undo");
  fill(byId("redo"), "redo");
  byId("copy").addEventListener("click", () => copyTranslation());
  byId("undo").addEventListener("click", undo);
  byId("redo").addEventListener("click", redo);
  byId("next-doubt").addEventListener("click", focusNextDoubt);
  pane.addEventListener("click", (event) => choose(event.target));
  pane.addEventListener("keydown", onKey);
  pane.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "touch") point(event.target);
  });
  pane.addEventListener("pointerleave", () => point(null));
  pane.addEventListener("focusin", (event) => point(event.target));
  pane.addEventListener("focusout", () => point(null));
  session.on(["answer"], draw);
  session.on(["isBusy"], ({ isBusy }) => {
    byId("busy").hidden = !isBusy;
    pane.setAttribute("aria-busy", String(isBusy));
  });
  session.on(["to"], ({ to }) => (pane.lang = to));
  session.on(["canUndo", "canRedo", "answer"], ({ canUndo, canRedo, answer }) => {
    byId("undo").hidden = byId("redo").hidden = !canUndo && !canRedo;
    byId("undo").disabled = !canUndo;
    byId("redo").disabled = !canRedo;
    byId("copy").disabled = !answer?.text;
  });
  session.on(["pointed", "answer"], drawTint);
}

export const copyTranslation = () => session.answer && copy(session.answer.text, byId("copy"));

/** Move the focus to the translation: to the word it was on, or the first. */
export function focusTranslation() {
  (pane.querySelector("[tabindex='0']") ?? allWords()[0])?.focus();
}

/** Move the focus to the next word that is doubtful, from the first on again after the last. */
export function focusNextDoubt() {
  const doubtful = allWords().filter((word) => word.dataset.doubt);
  if (!doubtful.length) return;
  const here = doubtful.indexOf(document.activeElement);
  focus(doubtful[(here + 1) % doubtful.length]);
}

const allWords = () => [...pane.querySelectorAll("[data-word]")];

function draw({ answer }) {
  closeChoices();
  hideReason();
  if (!answer) {
    pane.replaceChildren();
    wordsOf = [];
  } else if (continues(answer)) {
    append(answer, drawn.segments.length);
  } else {
    pane.replaceChildren();
    wordsOf = [];
    append(answer, 0);
  }
  drawn = answer ?? { segments: [] };
  if (answer?.isPartial) return;
  drawNotes(answer?.doubts ?? []);
  if (answer) announce(spoken(answer), SETTLED_MS);
}

/** Whether `answer` only adds sentences to the one that is shown, as those of a stream do. */
const continues = (answer) =>
  answer.isPartial &&
  drawn.isPartial &&
  drawn.sourceText === answer.sourceText &&
  answer.segments.length >= drawn.segments.length;

function append(answer, from) {
  const last = answer.segments[from - 1];
  let at = last ? last.start + last.text.length : 0;
  for (let index = from; index < answer.segments.length; index++) {
    const segment = answer.segments[index];
    pane.append(answer.text.slice(at, segment.start), ...wordElements(answer, index));
    at = segment.start + segment.text.length;
  }
  if (!answer.isPartial) pane.append(answer.text.slice(at));
  const first = pane.querySelector("[data-word]");
  if (from === 0 && first) rove(first);
}

function wordElements(answer, index) {
  const segment = answer.segments[index];
  const { words } = readSentence(segment);
  const placed = answer.doubts.filter(hasPlace).map((doubt) => onWord(doubt, words, segment.start));
  const elements = words.map(({ start, end, isWord }, word) => {
    const [from, to] = [segment.start + start, segment.start + end];
    const doubts = placed.filter((doubt) => doubt.start < to && from < doubt.end);
    const text = segment.text.slice(start, end);
    if (!isWord && !doubts.length) return text;
    const element = make(
      "span",
      { class: doubts.length ? `doubtful ${doubts[0].kind}` : null },
      text,
    );
    if (doubts.length) element.dataset.doubt = doubts.map(({ sentence }) => sentence).join(" ");
    if (isWord) Object.assign(element.dataset, { segment: index, word });
    return element;
  });
  wordsOf[index] = elements.map((element) => (element.dataset?.word ? element : null));
  return elements;
}

/** A doubt about a sign alone is shown on the word before it, where the focus can go. */
function onWord(doubt, words, offset) {
  const [start, end] = [doubt.start - offset, doubt.end - offset];
  if (words.some((word) => word.isWord && word.start < end && start < word.end)) return doubt;
  const before = words.findLast((word) => word.isWord && word.end <= start);
  return before && start < words.at(-1).end ? { ...doubt, start: before.start + offset } : doubt;
}

function drawNotes(doubts) {
  const places = pane.querySelectorAll("[data-word][data-doubt]").length;
  const button = byId("next-doubt");
  button.hidden = !places;
  button.title = "Go to the next (Alt+Shift+D)";
  fill(button, "warn", places === 1 ? "1 doubtful word" : `${places} doubtful words`);
  const general = doubts.filter((doubt) => !hasPlace(doubt));
  byId("notes").hidden = !general.length;
  byId("notes").replaceChildren(
    ...general.map(({ sentence }) => make("li", {}, icon("warn"), make("span", {}, sentence))),
  );
}

function spoken(answer) {
  const places = pane.querySelectorAll("[data-word][data-doubt]").length;
  const doubts = places ? ` Doubtful words: ${places}.` : "";
  return `${answer.text}${doubts}`;
}

/** The one word that Tab reaches; a button, with what it does. */
function rove(element) {
  const old = pane.querySelector("[tabindex='0']");
  for (const name of ["tabindex", "role", "aria-haspopup", "aria-describedby"])
    old?.removeAttribute(name);
  element.setAttribute("tabindex", "0");
  element.setAttribute("role", "button");
  element.setAttribute("aria-haspopup", "listbox");
  if (element.dataset.doubt) element.setAttribute("aria-describedby", "reason");
}

function focus(element) {
  rove(element);
  element.focus();
}

function onKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return; // keys of the browser and of the page
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const isRightToLeft = getComputedStyle(pane).direction === "rtl";
  const words = allWords();
  const here = words.indexOf(event.target);
  if (here < 0) return;
  let next;
  if (step) next = words[here + (isRightToLeft ? -step : step)];
  else if (event.key === "Home") next = words[0];
  else if (event.key === "End") next = words.at(-1);
  else if (event.key === "ArrowDown" || event.key === "ArrowUp")
    next = lineStep(words, here, event.key);
  else if (event.key === "Enter" || event.key === " ") choose(event.target);
  else return;
  event.preventDefault();
  if (next) focus(next);
}

/** The nearest word of the line below or above. */
function lineStep(words, here, key) {
  const { left, top } = words[here].getBoundingClientRect();
  const sign = key === "ArrowDown" ? 1 : -1;
  let best = [Infinity, undefined];
  for (const word of words) {
    const box = word.getBoundingClientRect();
    const down = (box.top - top) * sign;
    if (down < 4) continue;
    const distance = down * 100 + Math.abs(box.left - left);
    if (distance < best[0]) best = [distance, word];
  }
  return best[1];
}

function choose(element) {
  const { segment, word } = element.dataset ?? {};
  if (word === undefined || session.answer.isPartial) return;
  if (!getSelection().isCollapsed) return; // the person selects text
  focus(element);
  hideReason();
  const range = readSentence(session.answer.segments[segment]).words[word];
  openChoices(element, +segment, range);
}

function point(element) {
  const { segment, word } = element?.dataset ?? {};
  if (word === undefined) {
    hideReason();
    if (session.pointed?.side === "target") session.set({ pointed: null });
    return;
  }
  session.set({ pointed: { side: "target", segment: +segment, word: +word } });
  const { tokens } = session.answer.segments[segment];
  const range = readSentence(session.answer.segments[segment]).words[word];
  showReason(element, element.dataset.doubt, tokens ? probabilityOf(range, tokens) : null);
}

function drawTint({ pointed, answer }) {
  const elements = wordsOf[pointed?.segment] ?? [];
  if (pointed?.side !== "source" || !elements.length) return tint([]);
  const { weights } = readSentence(answer.segments[pointed.segment]);
  return tint(
    elements,
    weights?.map((row) => row[pointed.word]),
  );
}
