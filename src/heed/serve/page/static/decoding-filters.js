// The filters of sampling, recomputed from the log-probs of a step exactly as the search applies
// them: temperature, top-k, top-p, min-p. `heed.decode.sampling` is the definition.

export const NEUTRAL = { temperature: 1, topK: 0, topP: 1, minP: 0 };

/**
 * The distribution before and after the filters.
 * @param {Float32Array} logProbs of the whole vocabulary, by the model
 * @param {Float32Array} scores after all constraints, minus infinity where a token is not allowed
 * @param {{temperature: number, topK: number, topP: number, minP: number}} filters
 * @returns {{base: Float64Array, final: Float64Array, removed: Array<string>, order: Int32Array,
 *   isSorted: boolean, nAllowed: number, nNucleus: number, baseEntropy: number,
 *   finalEntropy: number}} `order`: ids, likeliest first. `removed`: by id, the filter that removed
 *   it or "". `isSorted`: whether tokens are drawn in that order, and not in that of ids.
 *   `nNucleus`: tokens that top-p leaves.
 */
export function filtered(logProbs, scores, filters) {
  const size = logProbs.length;
  const { temperature, topK, topP, minP } = filters;
  const order = sortedIds(scores);
  const removed = new Array(size).fill("");
  const chances = new Float64Array(size);
  const best = scores[order[0]];
  for (let id = 0; id < size; id += 1) {
    const share = Math.fround(Math.fround(scores[id] - best) / Math.fround(temperature));
    chances[id] = Math.fround(Math.exp(share));
    if (scores[id] === -Infinity) removed[id] = "constraints";
    else if (chances[id] === 0) removed[id] = "temperature";
  }
  const remove = (id, filter) => {
    if (!removed[id]) removed[id] = filter;
    chances[id] = 0;
  };
  if (topK > 0) for (const id of order.subarray(topK)) remove(id, "top_k");
  let nNucleus = order.length;
  if (topP < 1) {
    const total = sum(chances);
    let before = 0;
    nNucleus = 0;
    for (const id of order) {
      const chance = chances[id];
      if (before / total > topP) remove(id, "top_p");
      else if (chance > 0) nNucleus += 1;
      before += chance;
    }
  }
  if (minP > 0) {
    const floor = minP * chances[order[0]];
    for (const id of order) if (chances[id] < floor) remove(id, "min_p");
  }
  const base = Float64Array.from(logProbs, Math.exp);
  return {
    base: normalized(base),
    final: normalized(chances),
    removed,
    order,
    isSorted: topK > 0 || topP < 1,
    nAllowed: chances.reduce((count, chance) => count + (chance > 0), 0),
    nNucleus,
    baseEntropy: entropy(normalized(base)),
    finalEntropy: entropy(normalized(chances)),
  };
}

/** How often each token is drawn: Map of id → count, for numbers from 0 to below 1. */
export function drawn(found, numbers) {
  const { final, order, isSorted } = found;
  const ids = isSorted ? order : Int32Array.from(final.keys());
  const ends = new Float64Array(ids.length);
  let end = 0;
  ids.forEach((id, place) => {
    end += final[id];
    ends[place] = end;
  });
  const counts = new Map();
  for (const number of numbers) {
    const wanted = number * end;
    let [low, high] = [0, ids.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[middle] > wanted) high = middle;
      else low = middle + 1;
    }
    counts.set(ids[low], (counts.get(ids[low]) ?? 0) + 1);
  }
  return counts;
}

const orders = new WeakMap(); // scores → ids; sliders change neither

/** Ids by score, the largest first, the lower id first among equals. */
function sortedIds(scores) {
  if (!orders.has(scores)) {
    const ids = Int32Array.from(scores.keys());
    orders.set(
      scores,
      ids.sort((a, b) => scores[b] - scores[a] || a - b),
    );
  }
  return orders.get(scores);
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

function normalized(values) {
  const total = sum(values);
  return values.map((value) => value / total);
}

/** In bits. */
function entropy(probabilities) {
  return probabilities.reduce((bits, p) => (p > 0 ? bits - p * Math.log2(p) : bits), 0);
}
