// Keys: the shortcuts, and the panel that lists them.

import { byId, fill, make, openPanel } from "./element.js";
import { redo, swap, translate, undo } from "./session.js";
import { copyTranslation, focusNextDoubt, focusTranslation } from "./translation.js";

const dialog = byId("help");
const { models, only } = document.documentElement.dataset;
/** Whether there is a translator on this page: a file and the page of a training have none. */
const isTranslator = models === "on" && !only;

const WITH_ALT_SHIFT = {
  KeyE: () => byId("source").focus(),
  KeyT: focusTranslation,
  KeyS: swap,
  KeyC: copyTranslation,
  KeyD: focusNextDoubt,
};

const TRANSLATING = [
  [["Ctrl", "Enter"], "Translate now"],
  [["Alt", "Shift", "E"], "Go to the text"],
  [["Alt", "Shift", "T"], "Go to the translation"],
  [["Alt", "Shift", "D"], "Go to the next doubtful word"],
  [["←", "→", "↑", "↓"], "In the translation: from word to word"],
  [["Enter"], "On a word: what else the model would write there"],
  [["Ctrl", "Z"], "In the translation: undo the choice"],
  [["Ctrl", "Y"], "In the translation: redo it"],
  [["Alt", "Shift", "S"], "Swap the languages and the texts"],
  [["Alt", "Shift", "C"], "Copy the translation"],
];

const KEYS = [
  ...(isTranslator ? TRANSLATING : []),
  [["Esc"], "Close what is open"],
  [["?"], "Show this list"],
];

const PRIVACY = [
  "The text is sent to this server and nowhere else. It is never part of an address.",
  "This page keeps the text in this tab only (sessionStorage), so that it is still here after a reload; closing the tab forgets it.",
  "So is a key, where this server wants one.",
  "The glossary, the languages and the theme are kept in this browser (localStorage).",
];

const PRIVACY_ELSEWHERE = [
  only
    ? "This file needs no network."
    : "This page asks no server but this one.",
  "The theme is kept in this browser (localStorage).",
];

export function showHelp() {
  fill(byId("show-help"), "help");
  byId("show-help").addEventListener("click", open);
  document.addEventListener("keydown", onKey);
}

function open() {
  const rows = KEYS.map(([keys, what]) => {
    const caps = keys.map((key) => make("kbd", {}, key));
    return make("div", {}, make("dt", {}, ...caps), make("dd", {}, what));
  });
  const sentences = isTranslator ? PRIVACY : PRIVACY_ELSEWHERE;
  const privacy = sentences.map((sentence) => make("p", {}, sentence));
  openPanel(
    dialog,
    "Keys and privacy",
    make("dl", { class: "keys" }, ...rows),
    make("div", { class: "prose" }, ...privacy),
  );
}

function onKey(event) {
  if (document.querySelector("dialog[open]")) return;
  const isTyping = event.target.matches("input, textarea, select");
  const isControl = event.ctrlKey || event.metaKey;
  if (event.key === "?" && !isTyping) open();
  else if (!isTranslator || byId("translator").hidden) return;
  else if (event.altKey && event.shiftKey && event.code in WITH_ALT_SHIFT)
    WITH_ALT_SHIFT[event.code]();
  else if (isControl && !isTyping && event.code === "KeyZ") event.shiftKey ? redo() : undo();
  else if (isControl && !isTyping && event.code === "KeyY") redo();
  else if (isControl && !isTyping && event.key === "Enter") translate();
  else return;
  event.preventDefault();
}
