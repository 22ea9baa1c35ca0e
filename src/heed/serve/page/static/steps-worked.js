// One number worked out from the inputs of its node, term by term.

const SHOWN_TERMS = 4;

/** A number as it is written in a sum. */
export function written(value) {
  if (value === -Infinity) return "−∞";
  const size = Math.abs(value);
  const digits =
    size >= 1000 || (size < 0.001 && size > 0)
      ? value.toExponential(2)
      : value.toFixed(size >= 100 ? 1 : 3);
  return digits.replace("-", "−");
}

/** a · b as {value, text}: the first terms, how many more there are, the sum. */
export function dot(a, b, start = 0) {
  let value = start;
  const terms = [];
  for (let index = 0; index < a.length; index += 1) {
    value += a[index] * b[index];
    if (index < SHOWN_TERMS) terms.push(`${bracketed(a[index])} · ${bracketed(b[index])}`);
  }
  const more = a.length - SHOWN_TERMS;
  const rest = more > 0 ? ` + … (${more} more)` : "";
  return { value, text: `${terms.join(" + ")}${rest}` };
}

const bracketed = (value) => (value < 0 ? `(${written(value)})` : written(value));

/** The softmax of a row at one place. */
export function softmaxAt(row, place) {
  const most = Math.max(...row);
  if (most === -Infinity) return { value: 0, text: "nothing may be read, so 0" };
  const sum = row.reduce((total, score) => total + Math.exp(score - most), 0);
  const shown = Array.from(row.slice(0, SHOWN_TERMS), (score) => `e^${bracketed(score)}`);
  const more = row.length - SHOWN_TERMS;
  return {
    value: Math.exp(row[place] - most) / sum,
    text: `e^${bracketed(row[place])} / (${shown.join(" + ")}${more > 0 ? ` + … (${more} more)` : ""})`,
  };
}

/** LayerNorm of a row at one place. */
export function layerNormAt(row, place, gain, shift, epsilon) {
  const mean = row.reduce((total, value) => total + value, 0) / row.length;
  const variance = row.reduce((total, value) => total + (value - mean) ** 2, 0) / row.length;
  const value = ((row[place] - mean) / Math.sqrt(variance + epsilon)) * gain + shift;
  return {
    value,
    text:
      `(${written(row[place])} − mean ${written(mean)}) / √(variance ${written(variance)})` +
      ` · ${bracketed(gain)} + ${bracketed(shift)}`,
  };
}

/**
 * How the number at `place` of a node came about.
 * @param {object} node
 * @param {number[]} place an index on each axis
 * @param {object} given `read(name)` → {data, shape}; `weight(name, row)` → Float32Array, a row of a
 *   matrix or a whole vector; `idAt(position)` of the token there
 * @returns {Promise<{value: number, text: string}|null>} null where no rule fits
 */
export async function worked(node, place, { read, weight, idAt }) {
  const rule = (FORMULAS[node.kind] ?? node.formula) === node.formula && RULES[node.kind];
  return rule ? rule({ node, place, read, weight, idAt, input: inputNamed(node) }) : null;
}

/** Where an option changes the formula, the one that the rule works out. */
const FORMULAS = {
  "attention.products": "Q Kᵀ",
  "attention.scores": "S = Q Kᵀ / √d_k",
  "attention.masked": "S, −∞ where reading is not allowed",
  "attention.weights": "A = softmax(S)",
};

/** The input of a node whose name ends so. */
const inputNamed = (node) => (ending) => node.inputs.find((name) => name.endsWith(ending));

/** A row along the last axis. */
function rowAt({ data, shape }, ...place) {
  const width = shape.at(-1);
  const index = place.reduce((sum, at, axis) => sum * shape[axis] + at, 0);
  return data.subarray(index * width, (index + 1) * width);
}

/** X W + b at one output: the rows of a fused matrix before it are skipped. */
async function projected({ node, read, weight, input, place }, row) {
  const from = node.inputs.find((name) => !/\.(weight|bias|table)$/.test(name));
  const matrix = input(".weight");
  if (!from || !matrix) return null;
  const x = rowAt(await read(from), place.at(-2));
  const bias = input(".bias");
  const shift = bias ? (await weight(bias))[row] : 0;
  const { value, text } = dot(x, await weight(matrix, row), shift);
  return { value, text: bias ? `${text} + bias ${bracketed(shift)}` : text };
}

/** Queries, keys and values: the rows of one matrix, head by head. */
function fused(part) {
  return async (asked) => {
    const [nHeads, , width] = asked.node.shape;
    const [head, , dimension] = asked.place;
    const query = await asked.read(asked.node.name.replace(/[a-z]+$/, "query"));
    const before = { query: 0, key: 1, value: 2 }[part] * nHeads * query.shape[2];
    return projected(asked, before + head * width + dimension);
  };
}

const same = async ({ node, place, read }) => {
  const value = rowAt(await read(node.inputs[0]), ...place.slice(0, -1))[place.at(-1)];
  return { value, text: `as in ${node.inputs[0]}` };
};

const added = async ({ node, place, read }) => {
  const parts = node.inputs.filter((name) => !/\.(weight|bias)$/.test(name));
  if (parts.length !== 2) return null;
  const [a, b] = await Promise.all(
    parts.map(async (name) => rowAt(await read(name), ...place.slice(0, -1))[place.at(-1)]),
  );
  return { value: a + b, text: `${written(a)} + ${bracketed(b)}` };
};

async function normalized({ node, place, read, weight, input }) {
  const from = node.inputs.find((name) => !/\.(weight|bias)$/.test(name));
  const [gains, shifts] = await Promise.all([weight(input(".weight")), weight(input(".bias"))]);
  const at = place.at(-1);
  return layerNormAt(rowAt(await read(from), place[0]), at, gains[at], shifts[at], 1e-6);
}

const isNormalized = ({ input }) => Boolean(input("norm.weight"));

const RULES = {
  "embedding.tokens": async ({ node, place: [row, column], weight, idAt }) => {
    const scale = node.formula.includes("√") ? Math.sqrt(node.shape[1]) : 1;
    const entry = (await weight(node.inputs[0], idAt(row)))[column];
    const text = `row ${idAt(row)} of the table, ${written(entry)}`;
    return { value: entry * scale, text: scale === 1 ? text : `${text}, · √${node.shape[1]}` };
  },
  "embedding.sum": async ({ node, place: [row, column], read, weight }) => {
    const token = rowAt(await read(node.inputs[0]), row)[column];
    if (!node.formula.includes("PE")) return { value: token, text: "as it was" };
    const table = node.name.replace(/sum$/, "positions.table");
    const position = (await weight(table, row))[column];
    return {
      value: token + position,
      text: `${written(token)} + PE(${row}, ${column}) = ${written(token)} + ${bracketed(position)}`,
    };
  },
  "layer.in": same,
  "layer.out": same,
  "residual.normed": normalized,
  "residual.sum": added,
  "residual.out": (asked) => (isNormalized(asked) ? normalized(asked) : added(asked)),
  "network.memory": (asked) => (isNormalized(asked) ? normalized(asked) : same(asked)),
  "network.states": (asked) => (isNormalized(asked) ? normalized(asked) : same(asked)),
  "attention.query": fused("query"),
  "attention.key": fused("key"),
  "attention.value": fused("value"),
  "attention.products": async ({ node, place: [head, row, column], read }) => {
    const [query, key] = await Promise.all(node.inputs.map((name) => read(name)));
    return dot(rowAt(query, head, row), rowAt(key, head, column));
  },
  "attention.scores": async ({ node, place, read }) => {
    const product = rowAt(await read(node.inputs[0]), ...place.slice(0, 2))[place[2]];
    const width = (await read(node.name.replace(/scores$/, "query"))).shape.at(-1);
    return { value: product / Math.sqrt(width), text: `${written(product)} / √${width}` };
  },
  "attention.masked": async ({ node, place: [head, row, column], read }) => {
    const score = rowAt(await read(node.inputs[0]), head, row)[column];
    const isHidden = rowAt(await read(node.name), head, row)[column] === -Infinity;
    return isHidden
      ? { value: -Infinity, text: "reading is not allowed" }
      : { value: score, text: `reading is allowed: ${written(score)}` };
  },
  "attention.weights": async ({ node, place: [head, row, column], read }) =>
    softmaxAt(rowAt(await read(node.inputs[0]), head, row), column),
  "attention.context": async ({ node, place: [head, row, dimension], read }) => {
    if (node.inputs.length !== 2) return null;
    const [weights, values] = await Promise.all(node.inputs.map((name) => read(name)));
    const column = Float32Array.from(
      { length: values.shape[1] },
      (_, at) => rowAt(values, head, at)[dimension],
    );
    return dot(rowAt(weights, head, row), column);
  },
  "attention.joined": async ({ node, place: [row, column], read }) => {
    const context = await read(node.inputs[0]);
    const width = context.shape[2];
    const head = Math.floor(column / width);
    const value = rowAt(context, head, row)[column % width];
    return { value, text: `head ${head}, number ${column % width} of its context` };
  },
  "attention.out": (asked) => projected(asked, asked.place[1]),
  "feed_forward.expanded": (asked) => projected(asked, asked.place[1]),
  "feed_forward.activated": async ({ node, place, read }) => {
    if (!node.formula.startsWith("F = max(0")) return null;
    const value = rowAt(await read(node.inputs[0]), place[0])[place[1]];
    return { value: Math.max(0, value), text: `max(0, ${written(value)})` };
  },
  "feed_forward.out": (asked) => projected(asked, asked.place[1]),
  "network.logits": (asked) => projected(asked, asked.place[1]),
  "network.log_probs": async ({ node, place: [row, piece], read }) => {
    const found = softmaxAt(rowAt(await read(node.inputs[0]), row), piece);
    return { value: Math.log(found.value), text: `log(${found.text})` };
  },
};
