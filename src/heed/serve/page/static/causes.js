// What causes what: parts of the model switched off, words left out, layers read early.

import { attributionView } from "./causes-attribution.js";
import { lensView } from "./causes-lens.js";
import { partsView } from "./causes-parts.js";
import { make } from "./element.js";
import { looked, traceOfOne } from "./looked.js";
import { setParams } from "./route.js";
import { textBar } from "./textbar.js";
import { tokenRow } from "./tokens.js";

/** By the name in the address: the title, what draws it, and whether it is about one token. */
const VIEWS = {
  parts: { title: "Switch off", make: partsView, isByToken: true },
  attribution: { title: "Attribution", make: attributionView, isByToken: true },
  layers: { title: "Layer by layer", make: lensView, isByToken: false },
};

let params = {};
let page = null;

export function show(root, changed) {
  params = changed;
  if (!page) {
    page = build(root);
    looked.on(["trace"], draw);
    looked.on(["text"], drawEmpty);
  } else draw();
}

function build(root) {
  const views = {};
  const buttons = Object.entries(VIEWS).map(([name, { title }]) =>
    make(
      "button",
      { type: "button", dataset: { view: name }, onclick: () => setParams({ view: name }) },
      title,
    ),
  );
  const choice = make("div", { class: "choice", role: "group", "aria-label": "View" }, ...buttons);
  const tokens = make("div", { class: "card explained" });
  const view = make("div", { class: "view" });
  const empty = make(
    "p",
    { class: "hint empty" },
    "Type a sentence: what changes its translation is shown, part by part and word by word.",
  );
  const body = make("div", { class: "causes-body", hidden: true }, choice, tokens, view);
  root.append(make("h1", { class: "unseen" }, "Causes"), textBar(), empty, body);
  return { body, empty, buttons, tokens, view, views };
}

function draw() {
  const trace = traceOfOne();
  page.body.hidden = !trace;
  if (!trace) return;
  const name = Object.hasOwn(VIEWS, params.view ?? "") ? params.view : "parts";
  for (const button of page.buttons) {
    button.setAttribute("aria-pressed", String(button.dataset.view === name));
  }
  const token = tokenOf(trace);
  page.tokens.hidden = !VIEWS[name].isByToken;
  drawTokens(trace, token);
  page.views[name] ??= VIEWS[name].make();
  if (page.view.firstElementChild !== page.views[name]) page.view.replaceChildren(page.views[name]);
  page.views[name].show({ trace, token, params });
}

function drawEmpty() {
  page.empty.hidden = Boolean(looked.text.trim());
}

/** The target token that is explained; −1 is all of them. */
function tokenOf({ expected_tokens: expected }) {
  const token = Number(params.at ?? -1);
  return Number.isInteger(token) && token >= 0 && token < expected.length ? token : -1;
}

/** The translation, to choose what is explained. */
function drawTokens({ expected_tokens: expected }, token) {
  const row = tokenRow(expected, "tgt", { onPick: (index) => setParams({ at: index }) });
  const all = make(
    "button",
    { type: "button", class: "token", onclick: () => setParams({ at: null }) },
    "the whole translation",
  );
  row.prepend(all);
  [...row.children].forEach((element, index) => {
    element.setAttribute("aria-pressed", String(index - 1 === token));
  });
  row.setAttribute("role", "group");
  row.setAttribute("aria-label", "Explain");
  const focused = [...page.tokens.querySelectorAll("button")].indexOf(document.activeElement);
  page.tokens.replaceChildren(
    make("span", { class: "hint", "aria-hidden": "true" }, "Explain"),
    row,
  );
  if (focused >= 0) row.children[focused]?.focus();
}
