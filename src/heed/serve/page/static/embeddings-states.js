// The states of a sentence in the plane: each token's way from its embedding through the layers.

import * as api from "./api.js";
import { isDark } from "./colors.js";
import { painted } from "./drawing.js";
import { draw as drawn, make } from "./element.js";
import { looked, traceOfOne } from "./looked.js";
import { readPiece } from "./pieces.js";
import { setParams } from "./route.js";
import { saveButtons, sheet, svgText } from "./save.js";
import { textBar } from "./textbar.js";
import { point } from "./tokens.js";

const SHARE = new Intl.NumberFormat("en", {
  style: "percent",
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
});
const NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const MARGIN = 44;
const EMPTY = "Give a sentence above to see its states.";

let parts = null;
let params = {};
let states = null; // the answer
let layer = 0;
let draw = () => {};

export function show(root, changed) {
  params = changed;
  if (!parts) {
    parts = build();
    root.append(textBar(), parts.card);
    looked.on(["trace"], load);
    looked.on(["text"], sayEmpty);
    looked.on(["pointed"], () => draw());
  } else if (states?.side !== sideOf()) load();
  else setLayer();
}

const sideOf = () => (params.side === "target" ? "target" : "source");

function build() {
  const canvas = make("canvas", {
    class: "map",
    role: "img",
    "aria-label": "States layer by layer",
  });
  draw = painted(canvas, drawStates);
  const side = make("select", { onchange: () => setParams({ side: side.value, layer: null }) });
  side.append(
    make("option", { value: "source" }, "Encoder"),
    make("option", { value: "target" }, "Decoder"),
  );
  const range = make("input", { type: "range", id: "slider-layer", min: 0, step: 1 });
  range.addEventListener("input", () => setParams({ layer: range.value }));
  const output = make("output", { for: "slider-layer" });
  const hint = make("p", { class: "hint" });
  const twin = make("div", {
    class: "scroll",
    tabindex: "0",
    role: "region",
    "aria-label": "States",
  });
  const details = make(
    "details",
    { class: "twin", ontoggle: writeTable },
    make("summary", {}, "As a table"),
    twin,
  );
  const message = make("p", { class: "message", role: "status" });
  const body = make(
    "div",
    { class: "stack" },
    make(
      "div",
      { class: "controls" },
      make("label", { class: "setting" }, make("span", {}, "Side"), side),
      make(
        "div",
        { class: "slider" },
        make("label", { for: "slider-layer" }, "Up to"),
        range,
        output,
      ),
    ),
    make("div", { class: "map-frame" }, canvas),
    details,
    saveButtons("states", { svg: svgOf, table: tableOf, json: () => states }),
  );
  const card = make(
    "section",
    { class: "card inset", "aria-label": "States of a sentence" },
    make(
      "header",
      { class: "part-head" },
      make("h2", {}, "How states move from layer to layer"),
      hint,
    ),
    message,
    body,
  );
  canvas.addEventListener("pointermove", (event) => pointAt(event, canvas));
  canvas.addEventListener("pointerleave", () => point(null));
  return { card, canvas, side, range, output, hint, twin, details, message, body };
}

async function load() {
  const trace = traceOfOne();
  const side = sideOf();
  parts.side.value = side;
  states = null;
  parts.body.hidden = true;
  parts.hint.textContent = "";
  if (!trace) return sayEmpty();
  parts.message.textContent = "Computing …";
  try {
    const answer = await api.get(`embeddings/states/${trace.id}?${new URLSearchParams({ side })}`);
    if (looked.trace !== trace || sideOf() !== side) return;
    states = { ...answer, side };
  } catch (error) {
    if (looked.trace === trace && sideOf() === side) parts.message.textContent = error.message;
    return;
  }
  parts.message.textContent = "";
  const shares = states.shares.map((share) => SHARE.format(share)).join(" and ");
  parts.hint.textContent =
    `Each line is a token: it begins at the embedding and ends at the last layer. Principal ` +
    `components of all these states together, which explain ${shares} of their variance.`;
  parts.range.max = states.names.length - 1;
  parts.body.hidden = false;
  setLayer();
}

/** Without a sentence say what to do; why a sentence has no trace is said above. */
function sayEmpty() {
  if (!traceOfOne()) parts.message.textContent = looked.text.trim() ? "" : EMPTY;
}

function setLayer() {
  if (!states) return;
  const last = states.names.length - 1;
  const asked = Number.parseInt(params.layer ?? "", 10);
  layer = Number.isNaN(asked) ? last : Math.max(0, Math.min(last, asked));
  parts.range.value = layer;
  parts.output.textContent = layer === 0 ? "the embeddings" : `layer ${layer} of ${last}`;
  draw();
  writeTable();
}

/** From the plane to the canvas. */
function placing(width, height) {
  const flat = states.points.flat();
  const [xs, ys] = [flat.map(([x]) => x), flat.map(([, y]) => y)];
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [low, high] = [Math.min(...ys), Math.max(...ys)];
  return ([x, y]) => [
    MARGIN + ((x - left) / (right - left || 1)) * (width - 3 * MARGIN),
    height - MARGIN - ((y - low) / (high - low || 1)) * (height - 2 * MARGIN),
  ];
}

/** A color for each token, around the wheel. */
const colorOf = (index, count) =>
  `oklch(${isDark() ? 0.78 : 0.52} 0.12 ${Math.round((index / count) * 360 + 190)})`;

function drawStates(context, width, height, inks) {
  if (!states) return;
  const place = placing(width, height);
  const { tokens, points } = states;
  const side = states.side === "target" ? "tgt" : "src";
  const pointed = looked.pointed?.side === side ? looked.pointed.index : -1;
  context.font = `13px ${inks.font}`;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  tokens.forEach((token, index) => {
    const path = points.slice(0, layer + 1).map((states_) => place(states_[index]));
    const isFaint = pointed >= 0 && pointed !== index;
    context.globalAlpha = isFaint ? 0.18 : 1;
    context.strokeStyle = colorOf(index, tokens.length);
    context.fillStyle = context.strokeStyle;
    context.lineWidth = pointed === index ? 3 : 1.75;
    context.beginPath();
    path.forEach(([x, y], step) => (step ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.stroke();
    path.forEach(([x, y], step) => {
      const isLast = step === path.length - 1;
      context.beginPath();
      context.arc(x, y, isLast ? 5 : 2.5, 0, 2 * Math.PI);
      if (step === 0 && !isLast) {
        context.fillStyle = inks.surface;
        context.fill();
        context.fillStyle = context.strokeStyle;
        context.stroke();
      } else context.fill();
    });
  });
  tokens.forEach((token, index) => {
    const [x, y] = place(points[layer][index]);
    context.globalAlpha = pointed >= 0 && pointed !== index ? 0.3 : 1;
    context.lineWidth = 4;
    context.strokeStyle = inks.surface;
    context.strokeText(readPiece(token), x + 9, y);
    context.fillStyle = inks.ink;
    context.fillText(readPiece(token), x + 9, y);
  });
  context.globalAlpha = 1;
}

function pointAt(event, canvas) {
  if (!states) return;
  const box = canvas.getBoundingClientRect();
  const place = placing(box.width, box.height);
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let best = null;
  let least = 16;
  states.points.slice(0, layer + 1).forEach((row) =>
    row.forEach((at, index) => {
      const [px, py] = place(at);
      const distance = Math.hypot(px - x, py - y);
      if (distance < least) [best, least] = [index, distance];
    }),
  );
  const side = states.side === "target" ? "tgt" : "src";
  point(best === null ? null : { side, index: best });
}

/** The ways as a file, on white. */
function svgOf() {
  const [width, height] = [900, 560];
  const place = placing(width, height);
  const svg = sheet("States of the tokens", { width, height });
  states.tokens.forEach((token, index) => {
    const path = states.points.slice(0, layer + 1).map((row) => place(row[index]));
    const stroke = `hsl(${Math.round((index / states.tokens.length) * 360)} 60% 38%)`;
    const points = path.map((at) => at.map((number) => number.toFixed(1)).join()).join(" ");
    const [x, y] = path.at(-1);
    svg.append(
      drawn("polyline", { points, fill: "none", stroke, "stroke-width": 2 }),
      drawn("circle", { cx: x, cy: y, r: 4.5, fill: stroke }),
      drawn("text", { x: x + 9, y: y + 4, "font-size": 13 }, readPiece(token)),
    );
  });
  return svgText(svg);
}

function tableOf() {
  const { names, tokens, points } = states;
  const head = ["token", ...names.flatMap((name) => [`${name} x`, `${name} y`])];
  return [head, ...tokens.map((token, index) => [token, ...points.flatMap((row) => row[index])])];
}

function writeTable() {
  if (!parts.details.open || !states) return;
  const { names, tokens, points } = states;
  const cell = ([x, y]) => make("td", {}, `${NUMBER.format(x)}, ${NUMBER.format(y)}`);
  const head = ["Token", ...names].map((name) => make("th", { scope: "col" }, name));
  const rows = tokens.map((token, index) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, make("bdi", {}, readPiece(token))),
      ...points.map((row) => cell(row[index])),
    ),
  );
  parts.twin.replaceChildren(
    make(
      "table",
      {},
      make("caption", {}, "Coordinates of each state"),
      make("thead", {}, make("tr", {}, ...head)),
      make("tbody", {}, ...rows),
    ),
  );
}
