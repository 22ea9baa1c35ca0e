// One cell in numbers: the query, the key, their product, and what becomes of it.

import { isDotProduct, sublayers } from "./attention-data.js";
import { paint, redrawWithTheme, scaleOf } from "./colors.js";
import { make, math } from "./element.js";
import { spell } from "./heatmap.js";
import { nodeOf, tensor } from "./looked.js";
import { pictureOf } from "./picture.js";
import { saveButtons } from "./save.js";
import { pieceNodes } from "./tokens.js";

const number = (value) => math("mn", spell(value));
const letter = (text) => math("mi", text);
const sign = (text) => math("mo", text);

/**
 * @param {object} cell use, layer, head, row, column, texts: labels of both, unscaled: the weight
 *   without √d_k, or null
 * @returns {Promise<HTMLElement>}
 */
export async function cellView({ use, layer, head, row, column, texts, unscaled }) {
  const sublayer = sublayers(use)[layer];
  const title = make(
    "h3",
    {},
    make("bdi", {}, ...pieceNodes(texts[0])),
    " reads ",
    make("bdi", {}, ...pieceNodes(texts[1])),
  );
  const at = (name) => numberAt(`${sublayer}.${name}`, head, row, column);
  const [product, score, bias, masked, weight] = await Promise.all(
    ["products", "scores", "bias", "masked", "weights"].map(at),
  );
  const values = { product, score, bias, masked, weight };
  const vectors = await vectorsOf(sublayer, head, row, column);
  const formula =
    vectors && isDotProduct(sublayer) ? written(values, vectors) : listed(sublayer, values);
  const hint = unscaled === null ? null : `Without √d_k, the softmax is ${spell(unscaled)}.`;
  const parts = [
    title,
    make("div", { class: "formula" }, formula),
    hint && make("p", { class: "hint" }, hint),
    vectors && strips(vectors.query, vectors.key),
  ].filter(Boolean);
  const names = { use, layer, head, row, column };
  const stages = Object.entries(values).filter(([, value]) => value !== null);
  return make(
    "section",
    { class: "cell-numbers", "aria-label": "The numbers of a cell" },
    ...parts,
    saveButtons(`cell-${use}-${layer}-${head}-${row}-${column}`, {
      svg: () => pictureOf(`${sublayer}, head ${head}`, ...parts),
      table: () => [
        ["number", "value"],
        ...stages,
        ...["query", "key"].flatMap((name) =>
          Array.from(vectors?.[name] ?? [], (value, place) => [`${name} ${place}`, value]),
        ),
      ],
      json: () => ({ ...names, texts, ...Object.fromEntries(stages), ...listsOf(vectors) }),
    }),
  );
}

/** The vectors as lists, for JSON. */
const listsOf = (vectors) =>
  vectors ? { query: [...vectors.query], key: [...vectors.key] } : {};

/** q · k and what becomes of it, as one line. */
function written({ product, score, bias, masked, weight }, { query }) {
  const root = math("msqrt", math("mn", `${query.length}`));
  const steps = [
    [letter("q"), sign("·"), letter("k"), sign("="), number(product)],
    [sign("/"), root, sign("="), number(score)],
  ];
  if (bias !== null) steps.push([sign("+"), letter("b"), sign("="), number(score + bias)]);
  if (masked === -Infinity) steps.push([math("mtext", "masked"), sign("="), sign("−∞")]);
  steps.push([math("mtext", "softmax"), sign("="), number(weight)]);
  const last = steps.length - 1;
  return make(
    "p",
    { class: "formula-steps" },
    ...steps.map((step, index) => math("math", ...step, ...(index < last ? [sign(",")] : []))),
  );
}

/** The stages of another kind of attention, each with its own formula. */
function listed(sublayer, { product, score, weight }) {
  const stages = Object.entries({ products: product, scores: score, weights: weight });
  const spelled = stages
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${nodeOf(`${sublayer}.${name}`).formula}: ${spell(value)}`);
  return make("p", {}, spelled.join("; "));
}

async function numberAt(name, head, row, column) {
  if (!nodeOf(name)) return null;
  const { data, shape } = await tensor(name);
  const [, nRows, n] = shape.slice(-3);
  // What distances add may be the same for all heads.
  const place = shape.length === 3 && shape[0] > 1 ? head * nRows * n : 0;
  return data[place + row * n + column];
}

async function vectorsOf(sublayer, head, row, column) {
  const [query, key] = await Promise.all([
    vector(sublayer, "query", head, row),
    vector(sublayer, "key", head, column),
  ]);
  return query && key && query.length === key.length ? { query, key } : null;
}

async function vector(sublayer, which, head, place) {
  const name = [`${sublayer}.rotated_${which}`, `${sublayer}.${which}`].find((one) => nodeOf(one));
  if (!name) return null;
  const { data, shape } = await tensor(name);
  const [, length, width] = shape;
  if (shape.length !== 3 || place >= length) return null;
  const start = (head * length + place) * width;
  return data.subarray(start, start + width);
}

/** The vectors and their products, a cell for each number. */
function strips(query, key) {
  const products = query.map((value, place) => value * key[place]);
  const most = Math.max(...[...query, ...key].map(Math.abs));
  const largest = Math.max(...[...products].map(Math.abs));
  const rows = [
    ["q", query, most],
    ["k", key, most],
    ["q × k", products, largest],
  ];
  const table = make("table", { class: "strips" });
  for (const [name, values, bound] of rows) {
    const canvas = make("canvas", {
      role: "img",
      "aria-label": `${name}: ${[...values].map(spell).join(", ")}`,
    });
    canvas.redraw = () => paint(canvas, values, values.length, scaleOf(values, -bound, bound));
    canvas.redraw();
    redrawWithTheme(canvas);
    const readout = make("td", { class: "number" });
    canvas.addEventListener("pointermove", (event) => {
      const place = Math.floor((event.offsetX / canvas.clientWidth) * values.length);
      readout.textContent = place in values ? `${place}: ${spell(values[place])}` : "";
    });
    const end = name === "q × k" ? "sum = q·k" : `${values.length} numbers`;
    readout.textContent = end;
    canvas.addEventListener("pointerleave", () => (readout.textContent = end));
    table.append(
      make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, canvas), readout),
    );
  }
  return table;
}
