// The steps that are no tensors: the text becomes numbers, masks are made, a piece is chosen.

import { make } from "./element.js";
import { heatmap } from "./heatmap.js";
import { idsOf, looked, paddingOf, tensor } from "./looked.js";
import { readPiece } from "./tokens.js";
import { written } from "./steps-worked.js";

const OWN_MASK = /^decoder\.\d+\.self_attention\.masked$/;
const EMBEDDED = /^embedding\.((src|tgt)_)?tokens$|^network\.embedded_/;
const N_FIRST = 4; // numbers of an embedding

const step = (name, operation, show) => ({
  name,
  operation,
  show,
  formula: "",
  kind: name,
  shape: [],
  axes: [],
  inputs: [],
});
const PIECES = step("pieces", "split the text", piecesShown);
const MASKS = step("masks", "make the masks", masksShown);
const CHOICE = step("choice", "choose, and feed back", choiceShown);

/** The nodes that are steps, with these in their places. */
export function withoutTensors(nodes) {
  const layers = nodes.findIndex(({ name }) => /^(encoder|decoder)\./.test(name));
  const at = layers < 0 ? nodes.length : layers;
  const hasAttention = looked.trace.nodes.some(({ kind }) => kind === "attention.weights");
  const masks = hasAttention ? [MASKS] : [];
  return [PIECES, ...nodes.slice(0, at), ...masks, ...nodes.slice(at), CHOICE];
}

/** Each piece, its id in the vocabulary, and the beginning of its row in the table. */
async function piecesShown() {
  const { trace } = looked;
  const parts = [make("h2", {}, "Text → pieces → ids")];
  for (const [side, title, tokens] of [
    ["src", "Source", trace.source_tokens],
    ["tgt", "Target, as the decoder reads it", trace.target_tokens],
  ]) {
    const ids = idsOf(side);
    const embedding = trace.nodes.find(
      ({ kind, axes }) => EMBEDDED.test(kind) && axes[0] === side,
    );
    const vectors = embedding && (await tensor(embedding.name));
    const numbers = (index) => {
      const start = index * vectors.shape[1];
      return `${Array.from(vectors.data.subarray(start, start + N_FIRST), written).join("  ")} …`;
    };
    const rows = tokens.map((token, index) =>
      make(
        "tr",
        { class: paddingOf(side).includes(index) ? "padding" : null },
        make("th", { scope: "row", dir: "auto" }, readPiece(token)),
        make("td", {}, String(ids[index])),
        vectors && make("td", {}, numbers(index)),
      ),
    );
    parts.push(table(title, ["Piece", "Id", ...(vectors ? ["Embedding"] : [])], rows));
  }
  return parts;
}

function table(title, heads, rows) {
  return make(
    "table",
    { class: "likeliest" },
    make("caption", {}, title),
    make("thead", {}, make("tr", {}, ...heads.map((one) => make("th", { scope: "col" }, one)))),
    make("tbody", {}, ...rows),
  );
}

/** Who may read whom: 1 where reading is allowed. */
async function masksShown() {
  const { source_tokens: source, target_tokens: target } = looked.trace;
  const all = (rows, columns, isAllowed) =>
    Float32Array.from({ length: rows.length * columns.length }, (_, place) =>
      isAllowed(Math.floor(place / columns.length), place % columns.length) ? 1 : -Infinity,
    );
  const [read, written] = ["src", "tgt"].map(paddingOf);
  const masked = looked.trace.nodes.find(({ name }) => OWN_MASK.test(name));
  const { data, shape } = masked ? await tensor(masked.name) : {};
  // Of the first head: some models read the last positions only.
  const mayRead = (row, column) =>
    data ? data[row * shape.at(-1) + column] > -Infinity : column <= row;
  const map = (label, rows, columns, isAllowed, padded) =>
    heatmap({
      label,
      rows,
      columns,
      values: all(rows, columns, isAllowed),
      low: 0,
      high: 1,
      padding: { rows: written, columns: padded },
    });
  return [
    make("h2", {}, "Who may read whom"),
    make("h3", {}, "Decoder: no position reads a later one"),
    map("The causal mask", target, target, mayRead, written),
    make("h3", {}, `Source: every piece may be read${read.length ? ", and padding never" : ""}`),
    map("The padding mask", target, source, (_, column) => !read.includes(column), read),
  ];
}

/** At each position the piece that is chosen, which the decoder reads at the next one. */
function choiceShown() {
  const { target_tokens: read, expected_tokens: chosen } = looked.trace;
  const text = read.slice(0, read.length - looked.trace.target_padding);
  const rows = text.map((token, position) =>
    make(
      "tr",
      {},
      make("td", {}, String(position)),
      make("td", { dir: "auto" }, readPiece(token)),
      make("td", { dir: "auto" }, readPiece(chosen[position])),
    ),
  );
  return [
    make("h2", {}, "Each choice is the next input"),
    table("Until the end of the sentence", ["Position", "Reads", "Writes"], rows),
  ];
}
