// The glossary: terms and how they must be translated, for each direction, in this browser only.

import { byId, fill, make } from "./element.js";
import { session, sourceCode, translate } from "./session.js";
import { ofBrowser } from "./storage.js";

const STORE = "heed.glossary";
const PAUSE_MS = 600;
const HINT = "How terms must be translated. Kept in this browser only.";
const NOT_YET = "Terms can be given when the language of the text is known.";
const box = byId("glossary");

let waiting = 0; // timer: what was typed is not kept yet
let shown; // the direction of the rows

export function showGlossary() {
  session.on(["from", "to", "answer"], () => {
    const direction = directionOf();
    if (direction === shown) return;
    if (waiting) keep();
    shown = direction;
    byId("glossary-hint").textContent = direction ? HINT : NOT_YET;
    draw(direction ? (read()[direction] ?? []) : null);
  });
}

const read = () => ofBrowser.object(STORE);

/** A glossary belongs to a direction; the source is known once a language was chosen or detected. */
function directionOf() {
  const source = sourceCode();
  return source && session.to ? `${source}-${session.to}` : "";
}

function draw(pairs) {
  box.replaceChildren(...(pairs ? [...pairs, ["", ""]].map(rowOf) : []));
  use(pairs ?? []);
}

function rowOf([term, translation]) {
  const row = make("div", { class: "row" });
  const field = (value, name, placeholder, language) => {
    const input = make("input", {
      value,
      "aria-label": name,
      placeholder,
      lang: language,
      dir: "auto",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => changed(row),
    });
    input.addEventListener("keydown", (event) => onKey(event, row));
    return input;
  };
  const remove = make("button", {
    type: "button",
    class: "icon",
    "aria-label": "Remove the term",
    title: "Remove",
    onclick: () => removeRow(row),
  });
  fill(remove, "close");
  row.append(
    field(term, "Term", "Term", sourceCode()),
    make("span", { class: "arrow", "aria-hidden": "true" }, "→"),
    field(translation, "Its translation", "Translation", session.to),
    remove,
  );
  return row;
}

function changed(row) {
  if (row === box.lastElementChild && pairOf(row).some(Boolean)) box.append(rowOf(["", ""]));
  clearTimeout(waiting);
  waiting = setTimeout(keepAndUse, PAUSE_MS);
}

function removeRow(row) {
  const next = row.nextElementSibling ?? row.previousElementSibling;
  if (row === box.lastElementChild)
    row.querySelectorAll("input").forEach((input) => (input.value = ""));
  else row.remove();
  (next ?? box.lastElementChild).querySelector("input").focus();
  keepAndUse();
}

function onKey(event, row) {
  if (event.key !== "Enter") return;
  const inputs = [...row.querySelectorAll("input")];
  const next =
    inputs[inputs.indexOf(event.target) + 1] ?? row.nextElementSibling?.querySelector("input");
  next?.focus();
}

const pairOf = (row) => [...row.querySelectorAll("input")].map((input) => input.value.trim());

/** Keep the terms of the rows, and return them. */
function keep() {
  clearTimeout(waiting);
  waiting = 0;
  const pairs = [...box.children].map(pairOf).filter(([term, translation]) => term && translation);
  const { [shown]: _, ...all } = read();
  if (pairs.length) all[shown] = pairs;
  ofBrowser.set(STORE, JSON.stringify(all));
  return pairs;
}

function keepAndUse() {
  if (use(keep())) translate();
}

/** Translate with these from now on; whether that is a change. */
function use(pairs) {
  const glossary = Object.fromEntries(pairs);
  if (JSON.stringify(glossary) === JSON.stringify(session.glossary)) return false;
  session.set({ glossary });
  return true;
}
