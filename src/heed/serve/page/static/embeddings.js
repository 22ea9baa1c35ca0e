// The pieces of a model: a map of all, the neighbors of one, and arithmetic with three.

import * as api from "./api.js";
import { unpacked } from "./drawing.js";
import { make } from "./element.js";
import { scatter } from "./embeddings-map.js";
import { arithmetic, neighbors } from "./embeddings-near.js";
import { modelPicker } from "./positions.js";
import { setParams } from "./route.js";
import { saveButtons } from "./save.js";
import { readPiece } from "./pieces.js";

const COLORS = { shared: "accent", source: "accent", target: "second" };
const TITLES = { shared: "Both sides share these", source: "Source", target: "Target" };
const COUNT = new Intl.NumberFormat("en");
const SHARE = new Intl.NumberFormat("en", {
  style: "percent",
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});
const MOST_FOUND = 40;

const read = new Map(); // address → promise of the map
let view = null;
let wanted = ""; // the address of the map that was asked for last

export async function show(root, params) {
  const address = `embeddings${params.model ? `?${new URLSearchParams({ model: params.model })}` : ""}`;
  wanted = address;
  if (view?.address !== address || view.root !== root) {
    if (!read.has(address)) {
      view = null; // it is no longer there if its model is chosen again
      root.replaceChildren(make("p", { class: "message card inset", role: "status" }, "Reading …"));
      read.set(address, api.get(address));
    }
    try {
      const map = await read.get(address);
      if (wanted !== address) return;
      view = await build(root, address, map);
    } catch (error) {
      read.delete(address);
      if (wanted !== address) return;
      view = null;
      root.replaceChildren(
        make("p", { class: "message card inset", role: "status" }, error.message),
      );
      return;
    }
  }
  await choose(params);
}

async function build(root, address, data) {
  const found = { address, root, data, chosen: null };
  const starts = [];
  data.sides.reduce((start, { count }) => (starts.push(start), start + count), 0);
  found.sideOf = (index) => data.sides[starts.findLastIndex((start) => start <= index)].side;
  found.indices = new Map(); // side → piece → index
  data.sides.forEach(({ side, count }, group) => {
    const [start, end] = [starts[group], starts[group] + count];
    found.indices.set(
      side,
      new Map(data.pieces.slice(start, end).map((piece, index) => [piece, start + index])),
    );
  });
  const points = unpacked(data.points);
  found.map = scatter({
    label: `${data.pieces.length} pieces in the plane of their two largest variances`,
    pieces: data.pieces,
    points,
    groups: data.sides.map(({ side, count }) => ({ count, color: COLORS[side] })),
    onPick: (index) => pick(data.pieces[index], found.sideOf(index)),
  });
  found.near = make("div", { class: "near" });
  const shares = data.shares.map((share) => SHARE.format(share)).join(" and ");
  root.replaceChildren(
    make(
      "section",
      { class: "card inset", "aria-label": "The map of pieces" },
      make(
        "header",
        { class: "part-head" },
        make("h2", {}, "Which pieces are alike"),
        make(
          "p",
          { class: "hint" },
          `${COUNT.format(data.pieces.length)} pieces, by principal components. The axes explain ` +
            `${shares} of the variance of ${data.d_model} dimensions: near on the map may be far ` +
            "apart, so neighbors are found by the whole vectors.",
        ),
      ),
      make(
        "div",
        { class: "controls" },
        await modelPicker(data.model),
        search(found),
        legend(found),
      ),
      make("div", { class: "two wide" }, found.map.element, found.near),
      saveButtons("pieces", {
        svg: () => found.map.svg(),
        table: () => [
          ["piece", "side", "x", "y"],
          ...data.pieces.map((piece, index) => [
            piece,
            found.sideOf(index),
            points[2 * index],
            points[2 * index + 1],
          ]),
        ],
      }),
    ),
    arithmetic(data, found.indices, pick),
  );
  return found;
}

const pick = (piece, side) => setParams({ piece, side: side === "shared" ? null : side });

/** Show the piece that the address names and its neighbors. */
async function choose(params) {
  const { data, indices, map, near } = view;
  const side = indices.has(params.side) ? params.side : data.sides[0].side;
  const index = indices.get(side).get(params.piece ?? "");
  if (index === undefined) {
    view.chosen = null;
    map.mark(-1);
    near.replaceChildren(
      make("h3", {}, "Neighbors"),
      make("p", { class: "hint" }, "Choose a point, or search a piece."),
    );
    return;
  }
  const key = `${side} ${params.piece}`;
  if (view.chosen === key) return;
  view.chosen = key;
  const found = await neighbors(data.model, params.piece, side);
  if (view?.chosen !== key) return;
  const places = found.list.map(({ piece }) => indices.get(side).get(piece));
  map.mark(
    index,
    places.filter((place) => place !== undefined),
  );
  near.replaceChildren(...found.draw(side, pick, data.sides.length > 1 ? TITLES[side] : ""));
}

/** A field that finds pieces by their letters. */
function search(found) {
  const { data } = found;
  const list = make("datalist", { id: "found-pieces" });
  const input = make("input", {
    type: "search",
    id: "search-piece",
    dir: "auto",
    list: "found-pieces",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "city",
  });
  const said = make("span", { class: "hint", role: "status" });
  const folded = data.pieces.map((piece) => piece.toLowerCase());
  function matches() {
    const typed = input.value.trim().replaceAll("␣", "▁").toLowerCase();
    if (!typed) return [];
    const ranked = [];
    folded.forEach((piece, index) => {
      const bare = piece.replace(/^▁/, "");
      if (bare === typed || piece === typed) ranked.push([0, index]);
      else if (bare.startsWith(typed)) ranked.push([1, index]);
      else if (piece.includes(typed)) ranked.push([2, index]);
    });
    return ranked.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, index]) => index);
  }
  input.addEventListener("input", () => {
    const all = matches();
    list.replaceChildren(
      ...all
        .slice(0, MOST_FOUND)
        .map((index) => make("option", { value: readPiece(data.pieces[index]) })),
    );
    said.textContent = input.value.trim() ? `${COUNT.format(all.length)} found` : "";
    if (all.length && readPiece(data.pieces[all[0]]) === input.value) take(all[0]);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const [first] = matches();
    if (first !== undefined) take(first);
  });
  const take = (index) => pick(data.pieces[index], found.sideOf(index));
  return make(
    "div",
    { class: "setting search" },
    make("label", { for: "search-piece" }, "Search a piece"),
    make("span", { class: "inline" }, input, said),
    list,
  );
}

/** The sides and their colors; where there are two, each can be hidden. */
function legend(found) {
  const { sides } = found.data;
  if (sides.length < 2) return null;
  return make(
    "fieldset",
    { class: "sides" },
    make("legend", { class: "unseen" }, "Sides"),
    ...sides.map(({ side, count }, group) => {
      const box = make("input", { type: "checkbox", checked: true });
      box.addEventListener("change", () => found.map.toggle(group, box.checked));
      return make(
        "label",
        { class: `side ${side}` },
        box,
        make("span", { class: "swatch", "aria-hidden": "true" }),
        `${TITLES[side]} (${COUNT.format(count)})`,
      );
    }),
  );
}
