// The screen of positions and embeddings: where tokens stand, which pieces are alike, and how the
// states of a sentence move from layer to layer. Each view is a module that is loaded when opened.

import * as api from "./api.js";
import { make } from "./element.js";
import { setParams } from "./route.js";

/** Name in the address → title and module. */
const VIEWS = {
  positions: ["Positions", () => import("./positions-table.js")],
  pieces: ["Pieces", () => import("./embeddings.js")],
  states: ["States of a sentence", () => import("./embeddings-states.js")],
};
if (document.documentElement.dataset.only) delete VIEWS.pieces; // a file has no neighbors

const shown = {}; // name → {module, root}
let tabs = null;
let panel = null;
let models = null; // promise of [{name, directions}, …]
let current = "";

/** The models of the server: promise of [{name, …}]. */
export function allModels() {
  models ??= api.get("models").catch(() => {
    models = null; // the same may be asked again
    return [];
  });
  return models;
}

/** A choice of the model, or null where there is one only. */
export async function modelPicker(chosen) {
  const all = await allModels();
  if (all.length < 2) return null;
  const select = make("select", {
    onchange: () => setParams({ model: select.value, piece: null }),
  });
  select.append(...all.map(({ name }) => make("option", { value: name }, name)));
  select.value = chosen;
  return make("label", { class: "setting" }, make("span", {}, "Model"), select);
}

export function show(root, params) {
  if (!tabs) {
    panel = make("div", { id: "positions-view", role: "tabpanel" });
    tabs = new Map(Object.entries(VIEWS).map(([name, [title]]) => [name, tab(name, title)]));
    const list = make("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
    list.append(...tabs.values());
    list.addEventListener("keydown", move);
    root.append(make("h1", { class: "unseen" }, "Positions and embeddings"), list, panel);
  }
  open(Object.hasOwn(VIEWS, params.view ?? "") ? params.view : "positions", params);
}

export function leave() {
  shown[current]?.module?.leave?.();
}

async function open(name, params) {
  current = name;
  for (const [each, button] of tabs) {
    const isChosen = each === name;
    button.setAttribute("aria-selected", isChosen);
    button.tabIndex = isChosen ? 0 : -1;
  }
  panel.setAttribute("aria-labelledby", `tab-${name}`);
  shown[name] ??= { root: make("div", { class: "view" }) };
  if (panel.firstElementChild !== shown[name].root) panel.replaceChildren(shown[name].root);
  shown[name].module ??= await VIEWS[name][1]();
  if (current === name) shown[name].module.show(shown[name].root, params);
}

function tab(name, title) {
  return make(
    "button",
    {
      type: "button",
      role: "tab",
      id: `tab-${name}`,
      "aria-controls": "positions-view",
      onclick: () => setParams({ view: name }),
    },
    title,
  );
}

/** The arrow keys choose the next tab. */
function move(event) {
  const names = [...tabs.keys()];
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = names[(names.indexOf(current) + step + names.length) % names.length];
  setParams({ view: next });
  tabs.get(next).focus();
}
