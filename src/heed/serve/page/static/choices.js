// What else the model would write at a place: a list beside the word. Picking one keeps what is
// before it and translates the rest anew.

import { announce, bar, byId, make } from "./element.js";
import { percent, putBelow } from "./reason.js";
import { choicesAt, choose, session } from "./session.js";
import { wordAt } from "./words.js";

const box = byId("choices");
let anchor = null;
let request = new AbortController();

export async function openChoices(word, segment, range) {
  closeChoices();
  anchor = word;
  anchor.classList.add("open");
  anchor.setAttribute("aria-expanded", "true");
  const { signal } = (request = new AbortController());
  const doubt = word.dataset.doubt ? [make("p", { class: "why" }, word.dataset.doubt)] : [];
  let rows;
  try {
    const { prefix, choices } = await choicesAt(segment, range.start, signal);
    rows = rowsOf(choices, prefix, segment, word.textContent);
  } catch (error) {
    if (error.name === "AbortError") return;
    rows = [make("p", { class: "why" }, error.message)];
  }
  if (signal.aborted) return;
  box.replaceChildren(...doubt, ...rows);
  box.hidden = false;
  putBelow(box, word);
  (box.querySelector("[aria-selected='true']") ?? box.querySelector("[role='option']"))?.focus();
}

export function closeChoices({ refocus = false } = {}) {
  request.abort();
  if (!anchor) return;
  box.hidden = true;
  anchor.classList.remove("open");
  anchor.removeAttribute("aria-expanded");
  if (refocus) anchor.focus();
  anchor = null;
}

export function watchChoices() {
  document.addEventListener("pointerdown", (event) => {
    if (anchor && !box.contains(event.target) && event.target !== anchor) closeChoices();
  });
  addEventListener("resize", () => closeChoices());
  box.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !box.contains(event.relatedTarget)) closeChoices();
  });
  box.addEventListener("keydown", onKey);
}

function rowsOf(choices, prefix, segment, shown) {
  const seen = new Set();
  const rows = [];
  for (const { probability, translation } of choices) {
    const word = wordAt(translation, prefix.length, session.to);
    if (seen.has(word)) continue; // two pieces may begin the same word
    seen.add(word);
    rows.push(rowOf(word, probability, translation, prefix, segment, word === shown));
  }
  const list = make("div", { role: "listbox", "aria-label": "Other words here" }, ...rows);
  return rows.length ? [list] : [make("p", { class: "why" }, "The model has no other word here.")];
}

function rowOf(word, probability, translation, prefix, segment, isShown) {
  const end = translation.indexOf(word, prefix.length) + word.length;
  const label = word
    ? make("span", { class: "word", dir: "auto", lang: session.to }, word)
    : make("span", { class: "word ends" }, "ends here");
  const pick = () => {
    closeChoices();
    if (!isShown) choose(segment, translation, translation.slice(0, end));
    byId("translation").querySelector("[tabindex='0']")?.focus();
    if (!isShown) announce(translation);
  };
  return make(
    "div",
    { role: "option", tabindex: "-1", "aria-selected": String(isShown), onclick: pick },
    label,
    make("span", { class: "rest", dir: "auto", lang: session.to }, translation.slice(end).trim()),
    bar(probability),
    make("span", { class: "number" }, percent(probability)),
  );
}

function onKey(event) {
  const options = [...box.querySelectorAll("[role='option']")];
  const here = options.indexOf(document.activeElement);
  const moves = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: options.length - 1 };
  if (event.key in moves) options.at(moves[event.key] % options.length)?.focus();
  else if (event.key === "Enter" || event.key === " ") document.activeElement.click();
  else if (event.key === "Escape" || event.key === "Tab") closeChoices({ refocus: true });
  else return;
  event.preventDefault();
  event.stopPropagation();
}
