// The pane of the text to translate. Under the text area lies a copy of its text, as words that can
// be tinted; it also gives the text area its height.

import { byId, fill, make } from "./element.js";
import { makeTint, readSentence } from "./sentences.js";
import { charLimit, session, setText, translate } from "./session.js";

const area = byId("source");
const mirror = byId("mirror");
const NUMBER = new Intl.NumberFormat("en");
const COUNT_FROM = 0.9; // from this share of the limit on, the counter is a warning
const LARGE_TO = 140; // characters that are shown in large letters

const tint = makeTint();

let drawn = {};
let wordsOf = []; // for each sentence its elements, null for what is no word

export function showSource() {
  fill(byId("clear"), "close");
  byId("clear").addEventListener("click", () => {
    setText("", 0);
    area.focus();
  });
  area.addEventListener("input", () => setText(area.value));
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate();
  });
  area.addEventListener("mousemove", (event) => point(elementAt(event.clientX, event.clientY)));
  area.addEventListener("mouseleave", () => session.set({ pointed: null }));
  document.addEventListener("selectionchange", () => {
    if (document.activeElement === area) point(elementOf(area.selectionStart));
  });
  area.addEventListener("blur", () => session.set({ pointed: null }));
  session.on(["text", "answer"], drawText);
  session.on(["from", "answer"], () => {
    area.lang = session.from === "auto" ? (session.answer?.source ?? "") : session.from;
  });
  session.on(["pointed", "answer"], drawTint);
}

function drawText({ text, answer: newest }) {
  const answer = newest?.isPartial || newest?.sourceText !== text ? null : newest;
  if (text === drawn.text && answer === drawn.answer) return;
  drawn = { text, answer };
  if (area.value !== text) area.value = text;
  byId("clear").hidden = !text;
  byId("source-pane").parentElement.classList.toggle("large", text.length <= LARGE_TO);
  drawCount(text.length);
  wordsOf = [];
  const parts = [];
  let at = 0;
  answer?.segments.forEach((segment, index) => {
    if (segment.sourceStart < at) return;
    parts.push(text.slice(at, segment.sourceStart), ...wordElements(segment, index));
    at = segment.sourceStart + segment.source.length;
  });
  mirror.replaceChildren(...parts, text.slice(at), "\u200b"); // the last gives a last line its height
}

function wordElements(segment, index) {
  const { sourceWords } = readSentence(segment);
  const elements = sourceWords.map(({ start, end, isWord }, word) => {
    const text = segment.source.slice(start, end);
    return isWord ? make("span", { dataset: { segment: index, word } }, text) : text;
  });
  wordsOf[index] = elements.map((element) => (typeof element === "string" ? null : element));
  return elements;
}

function drawCount(length) {
  const count = byId("count");
  const isOver = length > charLimit;
  count.classList.toggle("warning", length > charLimit * COUNT_FROM);
  count.classList.toggle("over", isOver);
  const numbers = `${NUMBER.format(length)} / ${NUMBER.format(charLimit)}`;
  count.textContent = isOver ? `${numbers} characters: too long to translate` : numbers;
  count.title = "Characters, and how many the server takes";
  area.setAttribute("aria-invalid", String(isOver));
}

function elementAt(x, y) {
  return document.elementsFromPoint(x, y).find((element) => element.parentElement === mirror);
}

function elementOf(offset) {
  let at = 0;
  for (const node of mirror.childNodes) {
    const end = at + node.textContent.length;
    if (node.nodeType === Node.ELEMENT_NODE && at <= offset && offset <= end) return node;
    at = end;
  }
  return undefined;
}

function point(element) {
  const { segment, word } = element?.dataset ?? {};
  const old = session.pointed;
  if (!segment) {
    if (old) session.set({ pointed: null });
  } else if (old?.side !== "source" || old.segment !== +segment || old.word !== +word) {
    session.set({ pointed: { side: "source", segment: +segment, word: +word } });
  }
}

function drawTint({ pointed, answer }) {
  const elements = wordsOf[pointed?.segment] ?? [];
  if (!elements.length) return tint([]);
  const { weights } = readSentence(answer.segments[pointed.segment]);
  if (pointed.side === "target") return tint(elements, weights?.[pointed.word]);
  return tint(elements, weights && elements.map((_, word) => +(word === pointed.word)));
}
