// Step through the computation: one node of the trace after the other, with its numbers.

import { blockOf, diagram } from "./steps-diagram.js";
import { forcedTable } from "./steps-forced.js";
import { growthSlider, stepControls } from "./steps-controls.js";
import { icon, make, refill } from "./element.js";
import { heatmap } from "./heatmap.js";
import { idsOf, looked, nodeOf, paddingOf, pieces, tensor, weight } from "./looked.js";
import { mathOf } from "./formula.js";
import { pictureOf } from "./picture.js";
import { setParams } from "./route.js";
import { saveButtons } from "./save.js";
import { textBar } from "./textbar.js";
import { topIds } from "./pieces.js";
import { readPiece, tokenRow } from "./tokens.js";
import { withoutTensors } from "./steps-around.js";
import { sentenceOf } from "./steps-words.js";
import { weightView } from "./steps-weights.js";
import { worked, written } from "./steps-worked.js";

/** How deep one looks: which nodes are steps. */
const DEPTHS = {
  overview: ["Overview", /^(embed.*\.sum|(encoder|decoder)\.\d+\.out|memory|states|log_probs)$/],
  block: [
    "Blocks",
    /(sum|attention\.out|feed_forward\.out|around_\w+\.out|memory|states|logits|log_probs)$/,
  ],
  operation: ["Operations", /(?<!\.\d+\.in)$/],
};
const PLAY_MS = 1200;
const TOP = 12;
const CLOSE = 2e-3; // of numbers that came in 32 bits and were added up in another order

let params = {};
let root = null;
let view = null;
let empty = null; // what to do, while there is no sentence
let columns = null; // of the view: the diagram, the tensor, what happens
let moves = null; // the controls
let grown = null; // the slider of keys and values
let playing = 0;
let kept = {}; // of one sentence: what need not be drawn anew

export function show(section, changed) {
  params = changed;
  if (root) return draw();
  root = section;
  moves = stepControls(DEPTHS, {
    go,
    play,
    onDepth: (depth) => setParams({ depth }),
    onStep: ({ name }) => pick(name),
  });
  grown = growthSlider((step) => setParams({ step }));
  columns = make("div", { class: "steps-columns" }, make("div", { class: "step-tensor card" }));
  view = make("div", { class: "steps-view", hidden: true }, moves, columns);
  empty = make(
    "p",
    { class: "hint empty" },
    "Type a sentence: every step of its translation is shown, with its numbers.",
  );
  root.append(
    make("h1", { class: "unseen" }, "Step through the computation"),
    textBar({ isBatched: true }),
    empty,
    view,
  );
  root.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea, canvas, [role=slider]")) return;
    if (event.key === "ArrowRight") go(1);
    if (event.key === "ArrowLeft") go(-1);
  });
  looked.on(["text"], () => (empty.hidden = Boolean(looked.text.trim())));
  return looked.on(["trace"], draw);
}

export function leave() {
  stop();
}

const depthShown = () =>
  Object.hasOwn(DEPTHS, params.depth ?? "") ? params.depth : "operation";

function steps() {
  const [, pattern] = DEPTHS[depthShown()];
  return withoutTensors(looked.trace.nodes.filter(({ name }) => pattern.test(name)));
}

function current() {
  const all = steps();
  const asked = all.find(({ name }) => name === params.node) ?? nodeOf(params.node);
  return asked ?? all[0];
}

/** The node that many steps on, or null. */
function neighbor(by) {
  const all = steps();
  const at = all.indexOf(current());
  if (at < 0) return all[0];
  return all[at + by] ?? null;
}

function go(by) {
  const next = neighbor(by);
  if (next) pick(next.name);
  return Boolean(next);
}

function pick(name) {
  setParams({ node: name, row: null, column: null });
}

function play() {
  if (playing) return stop();
  playing = setInterval(() => go(1) || stop(), PLAY_MS);
  return draw();
}

function stop() {
  clearInterval(playing);
  playing = 0;
  if (view) draw();
}

async function draw() {
  const { trace } = looked;
  view.hidden = !trace;
  if (!trace) return;
  if (kept.trace !== trace) kept = { trace, weights: new Map() };
  const node = current();
  const found = node.show ? null : await tensor(node.name);
  const asked = params;
  const isLate = () => looked.trace !== trace || current() !== node || params !== asked;
  if (isLate()) return; // another one was chosen meanwhile
  const why = await explanation(node, found);
  const parts = await (found ? shown(node, found, isLate) : once(node.name, node.show));
  if (isLate()) return;
  const focused = view.contains(document.activeElement) && document.activeElement.dataset.key;
  const all = steps();
  moves.show({ all, at: all.indexOf(node), depth: depthShown(), isPlaying: Boolean(playing) });
  const tensorCard = columns.querySelector(".step-tensor");
  refill(tensorCard, withBatch(parts, found ? 2 : 1));
  refill(columns, [diagramOf(node.name), tensorCard, why]);
  if (focused) view.querySelector(`[data-key="${focused}"]`)?.focus();
}

/** What `draw` makes, once for a sentence. */
function once(name, draw) {
  kept[name] ??= draw();
  return kept[name];
}

/** The diagram, drawn anew when another block is lit. */
function diagramOf(name) {
  const lit = `${blockOf(name)} ${name.split(".", 2)}`;
  if (kept.lit !== lit) kept.diagram = diagram(kept.trace.nodes, name, pick);
  kept.lit = lit;
  return kept.diagram;
}

const isSequence = (axis) => ["src", "tgt", "src+tgt"].includes(axis);

function tokensOf(axis) {
  const { source_tokens: source, target_tokens: target } = looked.trace;
  return { src: source, tgt: target, "src+tgt": [...source, ...target] }[axis];
}

function labelsOf(axis, length) {
  return isSequence(axis) ? tokensOf(axis) : Array.from({ length }, (_, index) => String(index));
}

/** The axes that are shown as rows and columns, and the index on the others. */
function placeOf({ shape, axes }, expectedId = () => 0) {
  const head = axes[0] === "head" ? clamp(params.head, shape[0]) : null;
  const [rows, columns] = shape.slice(-2);
  const row = clamp(params.row, rows);
  const column = clamp(params.column ?? (axes.at(-1) === "piece" ? expectedId(row) : 0), columns);
  return { head, row, column, indices: head === null ? [row, column] : [head, row, column] };
}

const clamp = (text, length) =>
  Math.max(0, Math.min(Math.trunc(Number(text ?? 0)) || 0, length - 1));

async function shown(node, found, isLate) {
  const { data, shape, axes } = found;
  const title = make("h2", {}, make("code", {}, node.name));
  const facts = make("p", { class: "shape" }, shapeText(node));
  const parts = [title, facts];
  if (shape.length < 2)
    return [
      ...parts,
      make("p", { class: "vector" }, Array.from(data.slice(0, 64), written).join("  ")),
    ];
  const { head, row } = placeOf(found);
  if (head !== null) {
    parts.push(axisChips("Head", shape[0], head, (index) => setParams({ head: index })));
  }
  const [nRows, nColumns] = shape.slice(-2);
  const upTo = growth(node, parts);
  const slice = data.slice((head ?? 0) * nRows * nColumns, ((head ?? 0) + 1) * nRows * nColumns);
  if (upTo !== null) slice.fill(-Infinity, (upTo + 1) * nColumns);
  const json = () => ({ ...node, head, values: Array.from(slice) });
  if (axes.at(-1) === "piece") {
    const onPick = (index) => setParams({ row: index });
    const tokens = once("tokens", () => tokenRow(tokensOf(axes[0]), "tgt", { onPick }));
    tokens.choose(row);
    const names = await pieces("tgt");
    const scores = slice.subarray(row * nColumns, (row + 1) * nColumns);
    const table = () => [["piece", node.name], ...names.map((name, id) => [name, scores[id]])];
    const best = await likeliest(node, slice, row, nColumns);
    const svg = () => pictureOf(node.name, tokens, best);
    return [...parts, tokens, best, saveButtons(fileName(node), { svg, table, json })];
  }
  if (isLate()) return [];
  const what = { node, head, upTo, slice, axes, nRows, nColumns };
  const map = mapOf(what);
  const save = saveButtons(fileName(node), { svg: map.svg, table: map.table, json });
  return [...parts, kept.box, save];
}

/** The heat map of a tensor: the one that is there, with other numbers, if it has the same labels. */
function mapOf({ node, head, upTo, slice, axes, nRows, nColumns }) {
  const isWeight = /\.weights$/.test(node.name);
  const range = isWeight ? { low: 0, high: 1 } : { low: undefined, high: undefined };
  const numbers = { label: node.name, values: slice, ...range };
  const layout = [...axes.slice(-2), nRows, nColumns].join(" ");
  const drawn = [node.name, head, upTo].join(" ");
  if (kept.layout !== layout) {
    const map = heatmap({
      ...numbers,
      rows: labelsOf(axes.at(-2), nRows),
      columns: labelsOf(axes.at(-1), nColumns),
      padding: { rows: paddingOf(axes.at(-2)), columns: paddingOf(axes.at(-1)) },
      onPick: (at, column) => setParams({ row: at, column }),
    });
    kept.map = map;
    kept.box = make("div", { class: "scroll-x" }, map);
  } else if (kept.drawn !== drawn) kept.map.show(numbers);
  Object.assign(kept, { layout, drawn });
  return kept.map;
}

const fileName = ({ name }) => {
  const { batch } = looked.trace;
  return batch === undefined ? name : `${name}-${batch}`;
};

function shapeText(node) {
  const { nSentences } = looked.trace;
  const axes = node.axes.map((axis, index) => `${axis} ${node.shape[index]}`);
  return [...(nSentences ? [`batch ${nSentences}`] : []), ...axes].join(" × ");
}

/** The parts of a step, with the axis of the batch selectable if there is one. */
function withBatch(parts, place) {
  const { batch, nSentences } = looked.trace;
  if (!nSentences) return parts;
  const chips = axisChips("Batch", nSentences, batch, (index) => setParams({ batch: index }));
  return [...parts.slice(0, place), chips, ...parts.slice(place)];
}

/** An index on an axis, to be chosen. */
function axisChips(name, count, chosen, onPick) {
  const buttons = Array.from({ length: count }, (_, index) =>
    make(
      "button",
      {
        type: "button",
        class: "chip",
        dataset: { key: `${name}-${index}` },
        "aria-pressed": String(index === chosen),
        onclick: () => onPick(index),
      },
      String(index),
    ),
  );
  return make(
    "div",
    { class: "chips", role: "group", "aria-label": name },
    make("span", {}, name),
    ...buttons,
  );
}

/** Up to which row the table of keys and values of the decoder has grown; null for other tensors. */
function growth(node, parts) {
  const isTable = /^decoder\.\d+\.(self|joint)_attention\.(key|value)$/.test(node.name);
  if (!isTable) return null;
  const last = looked.trace.target_tokens.length - looked.trace.target_padding - 1;
  const upTo = params.step === undefined ? last : clamp(params.step, last + 1);
  grown.show(upTo, last, readPiece(looked.trace.target_tokens[upTo]));
  parts.push(grown);
  return upTo;
}

/** The most probable pieces of one position, with bars. */
async function likeliest(node, values, row, width) {
  const names = await pieces("tgt");
  const scores = values.subarray(row * width, (row + 1) * width);
  const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const sum = scores.reduce((total, score) => total + Math.exp(score - most), 0);
  const order = topIds(scores, TOP);
  const expected = looked.trace.expected_tokens[row];
  return make(
    "table",
    { class: "likeliest" },
    make("caption", {}, `After “${readPiece(looked.trace.target_tokens[row])}”`),
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        ...["Piece", node.kind.endsWith("logits") ? "Logit" : "log p", "Probability"].map((one) =>
          make("th", { scope: "col" }, one),
        ),
        make("td", {}),
      ),
    ),
    make(
      "tbody",
      {},
      ...order.map((id) => {
        const probability = Math.exp(scores[id] - most) / sum;
        const meter = make("span", { class: "meter" });
        meter.style.setProperty("--share", probability);
        return make(
          "tr",
          { class: names[id] === expected ? "is-expected" : null },
          make(
            "th",
            { scope: "row", dir: "auto" },
            make(
              "button",
              { type: "button", class: "link", onclick: () => setParams({ column: id }) },
              readPiece(names[id]),
            ),
          ),
          make("td", {}, written(scores[id])),
          make("td", {}, written(probability)),
          make("td", { "aria-hidden": "true" }, meter),
        );
      }),
    ),
  );
}

async function explanation(node, found) {
  const parts = [make("h2", {}, node.operation), ...formula(node), make("p", {}, sentenceOf(node))];
  if (!found)
    return make("aside", { class: "step-why card", "aria-label": "What happens here" }, ...parts);
  if (found.shape.length > 1) parts.push(await example(node, found));
  parts.push(inputs(node));
  if (/^(logits|log_probs)$/.test(node.name)) parts.push(await once("forced", forcedTable));
  return make("aside", { class: "step-why card", "aria-label": "What happens here" }, ...parts);
}

/** The formula, and what stands behind it in words. */
function formula(node) {
  if (!node.formula) return [];
  const [math, ...words] = node.formula.split(/, (?=−∞|0 where|divided)/);
  const rest = words.length ? make("span", { class: "hint" }, `, ${words.join(", ")}`) : null;
  return [make("p", { class: "formula" }, mathOf(math), rest)];
}

/** One number of the tensor, worked out from its inputs. */
async function example(node, found) {
  const { data, shape, axes } = found;
  const vocabularyOfTarget = await pieces("tgt");
  const { indices, head, row, column } = placeOf(found, (position) =>
    vocabularyOfTarget.indexOf(looked.trace.expected_tokens[position]),
  );
  const index = indices.reduce((sum, at, axis) => sum * shape[axis] + at, 0);
  const value = data[index];
  const names = axes.at(-1) === "piece" ? vocabularyOfTarget : labelsOf(axes.at(-1), shape.at(-1));
  const where = `${readPiece(labelsOf(axes.at(-2), shape.at(-2))[row])}, ${readPiece(names[column])}`;
  const box = make("div", { class: "worked" }, make("h3", {}, "One number"));
  box.append(make("p", {}, `${head === null ? "" : `head ${head}, `}${where}:`));
  if (paddingOf(axes.at(-2)).includes(row)) {
    box.append(make("p", { class: "hint" }, "A row of padding: computed, and read by nothing."));
  }
  const side = isSequence(axes.at(-2)) && axes.at(-2) === "tgt" ? "tgt" : "src";
  const ids = idsOf(side);
  const rule = await worked(node, indices, {
    read: tensor,
    weight,
    idAt: (position) => ids[position],
  }).catch((error) => ({ missing: error.message })); // a page that is a file has no weights
  if (!rule || rule.missing) {
    box.append(make("p", { class: "sum" }, written(value)));
    if (rule) box.append(make("p", { class: "hint" }, rule.missing));
    return box;
  }
  const isEqual =
    rule.value === value || Math.abs(rule.value - value) <= CLOSE * (1 + Math.abs(value));
  box.append(make("p", { class: "sum" }, `${rule.text} = ${written(rule.value)}`));
  if (!isEqual) box.append(make("p", { class: "hint" }, `The model computed ${written(value)}.`));
  else box.append(make("p", { class: "hint agreed" }, icon("check"), "the same as the model’s"));
  return box;
}

/** A weight stays open while steps change. */
function keptWeight(name) {
  const found = /\.(weight|bias|table)$/.test(name) ? weightView(name) : make("code", {}, name);
  kept.weights.set(name, found);
  return found;
}

function inputs(node) {
  const links = node.inputs.map((name) =>
    make(
      "li",
      {},
      nodeOf(name)
        ? make("button", { type: "button", class: "link", onclick: () => pick(name) }, name)
        : kept.weights.get(name) ?? keptWeight(name),
    ),
  );
  return make(
    "details",
    { class: "inputs" },
    make("summary", {}, `Computed from ${node.inputs.length}`),
    make("ul", {}, ...links),
  );
}
