// The maps of the current trace: which there are, how they are read, and what is chosen of them.

import {
  cut,
  meanOf,
  rollout,
  rolloutToSource,
  softmax,
  withoutColumns,
} from "./attention-maps.js";
import { looked, nodeOf, paddingOf, tensor } from "./looked.js";
import { betweenWords, isPunctuation, isSpecial, wordsOf } from "./pieces.js";

/** Kinds of attention, in the order of their tabs. */
export const USES = {
  encoder: {
    title: "Encoder",
    about: "self-attention",
    pattern: /^encoder(\.\d+)?\.self_attention$/,
  },
  decoder: {
    title: "Decoder (masked)",
    about: "masked self-attention",
    pattern: /^decoder(\.\d+)?\.self_attention$/,
  },
  cross: {
    title: "Cross",
    about: "attention to the source",
    pattern: /^(decoder(\.\d+)?\.)?cross_attention$/,
  },
  joint: {
    title: "Joint",
    about: "attention to source and target",
    pattern: /^decoder(\.\d+)?\.joint_attention$/,
  },
};

/** From the inner products to the weights: title, and the names of tensors, the wanted one first. */
export const STAGES = {
  products: { title: "Raw", tensors: ["products"] },
  scores: { title: "Scaled", tensors: ["biased", "scores"] },
  masked: { title: "Masked", tensors: ["masked", "biased", "scores"] },
  weights: { title: "Softmax", tensors: ["weights"] },
};

/** Names of the sublayers of a use, first layer first. */
export const sublayers = (use) =>
  looked.trace.nodes
    .map(({ name }) => name)
    .filter((name) => name.endsWith(".weights"))
    .map((name) => name.slice(0, -".weights".length))
    .filter((name) => USES[use].pattern.test(name));

/** The uses that this model has. */
export const usesOf = () => Object.keys(USES).filter((use) => sublayers(use).length);

/** The name of the tensor of a stage, or undefined. */
export const stageName = (sublayer, stage) =>
  STAGES[stage].tensors.map((part) => `${sublayer}.${part}`).find((name) => nodeOf(name));

/**
 * Tokens along both axes of a use: {side, tokens, words, padding}; a joint axis has the side of its
 * end, and padding is a set of places.
 */
export function axesOf(use) {
  const [rows, columns] = nodeOf(`${sublayers(use)[0]}.weights`).axes.slice(-2);
  return { rows: axis(rows), columns: axis(columns) };
}

function axis(name) {
  const { source_tokens: src, target_tokens: tgt } = looked.trace;
  const tokens = name.split("+").flatMap((side) => ({ src, tgt })[side]);
  return { side: name, tokens, words: wordsOf(tokens), padding: new Set(paddingOf(name)) };
}

/** A stage of one layer: {heads: one map for each head, n: columns}. */
export async function layerMaps(sublayer, stage) {
  const { data, shape } = await tensor(stageName(sublayer, stage), "f16");
  const [nHeads, nRows, n] = shape;
  const size = nRows * n;
  return {
    n,
    heads: Array.from({ length: nHeads }, (_, head) =>
      data.subarray(head * size, (head + 1) * size),
    ),
  };
}

/** The weights of all layers of a use. */
export const allWeights = (use) =>
  Promise.all(sublayers(use).map((sublayer) => layerMaps(sublayer, "weights")));

/** Softmax of the products themselves, not divided by √d_k; what is masked stays so. */
async function unscaledWeights(sublayer) {
  const [products, masked] = await Promise.all(
    ["products", "masked"].map((stage) => layerMaps(sublayer, stage)),
  );
  const { n } = products;
  const heads = products.heads.map((map, head) =>
    softmax(
      map.map((value, place) => (Number.isFinite(masked.heads[head][place]) ? value : -Infinity)),
      n,
    ),
  );
  return { n, heads };
}

/** Whether scores are q · k / √d_k, and no other measure of likeness. */
export const isDotProduct = (sublayer) =>
  nodeOf(`${sublayer}.products`)?.formula === "Q Kᵀ" &&
  nodeOf(`${sublayer}.scores`)?.formula.startsWith("S = Q Kᵀ / √d_k");

/** Whether the softmax can be computed anew: what positions add would have to be scaled too. */
export const canBeUnscaled = (sublayer) =>
  isDotProduct(sublayer) &&
  !nodeOf(`${sublayer}.bias`) &&
  (nodeOf(`${sublayer}.masked`)?.operation ?? "mask") === "mask";

/**
 * The map that is shown.
 * @param {object} chosen use, stage, heads: [{layer, head, share}], mix: "", "layers" or "rollout",
 *   isUnscaled, hidden: kinds of columns to leave out, isByWord, isPadded: whether padding is shown
 * @returns {Promise<{values, n, rows, columns, hidden: number, isWeights: boolean}>} rows and
 *   columns are {side, labels, words, padding: places, places: of the rows of the tensor}
 */
export async function mapOf(chosen) {
  const { use, stage, mix } = chosen;
  const isWeights = mix !== "" || stage === "weights";
  let { values, n } = await (mix ? mixed(chosen) : meanOfHeads(chosen));
  let axes = axesOf(use);
  let hidden = 0;
  if (isWeights) {
    const columns = hiddenColumns(axes.columns.tokens, chosen.hidden);
    if (columns.size) {
      const text = cut(values, n, axes.rows.padding, new Set());
      ({ hidden } = withoutColumns(text.values, n, columns));
      values = withoutColumns(values, n, columns).kept;
    }
  }
  if (!chosen.isPadded) {
    ({ values, n } = cut(values, n, axes.rows.padding, axes.columns.padding));
    axes = { rows: withoutPadding(axes.rows), columns: withoutPadding(axes.columns) };
  }
  const isByWord = chosen.isByWord && isWeights;
  if (isByWord) {
    values = betweenWords(values, n, axes.rows.words, axes.columns.words);
    n = axes.columns.words.length;
  }
  return {
    values,
    n,
    hidden,
    isWeights,
    rows: shown(axes.rows, isByWord),
    columns: shown(axes.columns, isByWord),
  };
}

function withoutPadding({ side, tokens, padding }) {
  const places = [...tokens.keys()].filter((place) => !padding.has(place));
  const kept = places.map((place) => tokens[place]);
  return { side, tokens: kept, words: wordsOf(kept), padding: new Set(), places };
}

const shown = ({ side, tokens, words, padding, places }, isByWord) => ({
  side,
  labels: isByWord ? words.map(({ text }) => text) : tokens,
  words: isByWord ? words : undefined,
  padding: isByWord
    ? [...words.keys()].filter((word) => padding.has(words[word].first))
    : [...padding],
  places,
});

/** Columns of special pieces or of punctuation. */
export function hiddenColumns(tokens, kinds) {
  const tests = { special: isSpecial, punctuation: isPunctuation };
  const isHidden = (piece) => kinds.some((kind) => tests[kind]?.(piece));
  return new Set(tokens.flatMap((piece, place) => (isHidden(piece) ? [place] : [])));
}

async function meanOfHeads({ use, stage, heads, isUnscaled }) {
  const names = sublayers(use);
  const read = isUnscaled ? unscaledWeights : (name) => layerMaps(name, stage);
  const layers = new Map();
  await Promise.all(
    [...new Set(heads.map(({ layer }) => layer))].map(async (layer) =>
      layers.set(layer, await read(names[layer])),
    ),
  );
  const { n } = layers.get(heads[0].layer);
  const maps = heads.map(({ layer, head }) => layers.get(layer).heads[head]);
  if (maps.length === 1) return { n, values: maps[0] };
  return {
    n,
    values: meanOf(
      maps,
      heads.map(({ share }) => share),
    ),
  };
}

/** The mean over all layers, or rollout; a layer with chosen heads is the mean of these. */
async function mixed({ use, heads, mix, isSeveral }) {
  const means = await layerMeans(use, isSeveral ? heads : []);
  const { n } = means;
  if (mix === "layers")
    return {
      n,
      values: meanOf(
        means.layers,
        means.layers.map(() => 1),
      ),
    };
  if (use !== "cross") return { n, values: rollout(means.layers, n) };
  const [own, encoder] = await Promise.all([layerMeans("decoder", []), layerMeans("encoder", [])]);
  const isOfSameLayer = looked.trace.nodes.some(({ name }) => name === "memory.0");
  const last = rollout(encoder.layers, n);
  const memories = means.layers.map((_, layer) =>
    isOfSameLayer ? rollout(encoder.layers.slice(0, layer + 1), n) : last,
  );
  return { n, values: rolloutToSource(own.layers, means.layers, memories, own.n, n) };
}

async function layerMeans(use, heads) {
  const layers = await allWeights(use);
  return {
    n: layers[0].n,
    layers: layers.map((each, layer) => {
      const own = heads.filter((one) => one.layer === layer);
      const shares = each.heads.map((_, head) =>
        own.length ? (own.find((one) => one.head === head)?.share ?? 0) : 1,
      );
      return meanOf(each.heads, shares);
    }),
  };
}

/** Whether rollout can be computed: every layer of every use on the way has self-attention. */
export const hasRollout = (use) =>
  use === "cross"
    ? sublayers("encoder").length > 0 && sublayers("decoder").length === sublayers("cross").length
    : use !== "joint";

/**
 * The map between the tokens, or words, of source and translation by which they are aligned.
 * @param {object} by heads: [{layer, head, share}], isShifted: a token is aligned by the step that
 *   reads it, and not by the one that writes it
 * @param {boolean} isByWord
 */
export async function alignmentMap({ heads, isShifted }, isByWord) {
  const { values, n } = await meanOfHeads({ use: "cross", stage: "weights", heads });
  const { rows, columns } = axesOf("cross");
  // Row t of the tokens: the step before it writes token t.
  const own = new Float32Array(values.length);
  if (isShifted) own.set(values);
  else own.set(values.subarray(0, values.length - n), n);
  const units = ({ tokens, words }) =>
    (isByWord ? words : tokens.map((text, first) => ({ text, first, end: first + 1 }))).filter(
      ({ first }) => !isSpecial(tokens[first]),
    );
  const [read, reading] = [units(columns), units(rows)];
  const side = (name, words) => ({ side: name, labels: words.map(({ text }) => text), words });
  return {
    values: betweenWords(own, n, reading, read),
    n: read.length,
    rows: side("tgt", reading),
    columns: side("src", read),
  };
}
