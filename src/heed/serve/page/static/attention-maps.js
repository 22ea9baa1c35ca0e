// What is computed from maps of attention, as heed.explain.attention does it. Pure functions; maps
// are arrays row by row, with `n` columns.

/** Weights of scores: e^x divided by the sum of its row. */
export function softmax(scores, n) {
  const weights = new Float32Array(scores.length);
  for (let start = 0; start < scores.length; start += n) {
    let most = -Infinity;
    for (let place = start; place < start + n; place += 1) most = Math.max(most, scores[place]);
    let total = 0;
    for (let place = start; place < start + n; place += 1) {
      weights[place] = Math.exp(scores[place] - most);
      total += weights[place];
    }
    for (let place = start; place < start + n; place += 1) weights[place] /= total;
  }
  return weights;
}

/** H = −Σ p log₂ p of each row, in bits. */
export function entropies(weights, n) {
  const found = new Float32Array(weights.length / n);
  for (let row = 0; row < found.length; row += 1) {
    let bits = 0;
    for (let place = row * n; place < (row + 1) * n; place += 1) {
      if (weights[place] > 0) bits -= weights[place] * Math.log2(weights[place]);
    }
    found[row] = bits;
  }
  return found;
}

/** The mean of maps, each counting as much as its share. */
export function meanOf(maps, shares) {
  const total = shares.reduce((sum, share) => sum + share, 0) || 1;
  const mean = new Float32Array(maps[0].length);
  maps.forEach((map, index) => {
    const share = shares[index] / total;
    if (share)
      for (let place = 0; place < mean.length; place += 1) mean[place] += share * map[place];
  });
  return mean;
}

/** Weights without some columns, the others divided by their new sum; and the share left out. */
export function withoutColumns(weights, n, columns) {
  const kept = Float32Array.from(weights);
  const nRows = weights.length / n;
  let hidden = 0;
  for (let row = 0; row < nRows; row += 1) {
    let [left, total] = [0, 0];
    for (let column = 0; column < n; column += 1) {
      const place = row * n + column;
      if (columns.has(column)) {
        left += kept[place];
        kept[place] = 0;
      } else total += kept[place];
    }
    hidden += left / nRows;
    if (total > 0)
      for (let place = row * n; place < (row + 1) * n; place += 1) kept[place] /= total;
  }
  return { kept, hidden };
}

/** A map without some rows and columns, which are sets of their places. */
export function cut(values, n, rows, columns) {
  const kept = [];
  for (let place = 0; place < values.length; place += 1) {
    if (!rows.has(Math.floor(place / n)) && !columns.has(place % n)) kept.push(values[place]);
  }
  return { values: Float32Array.from(kept), n: n - columns.size };
}

/** The product of two matrices, the first one `(rows, inner)`, the second `(inner, n)`. */
function product(one, other, inner, n) {
  const found = new Float32Array((one.length / inner) * n);
  for (let row = 0; row * inner < one.length; row += 1) {
    for (let k = 0; k < inner; k += 1) {
      const factor = one[row * inner + k];
      if (!factor) continue;
      for (let column = 0; column < n; column += 1) {
        found[row * n + column] += factor * other[k * n + column];
      }
    }
  }
  return found;
}

const halfway = (one, other) => one.map((value, place) => (value + other[place]) / 2);

function identity(n) {
  const found = new Float32Array(n * n);
  for (let place = 0; place < n; place += 1) found[place * (n + 1)] = 1;
  return found;
}

/** Rollout of self-attention (Abnar and Zuidema 2020) over layers that are means of heads. */
export function rollout(layers, n) {
  return layers.reduce(
    (shares, weights) => halfway(shares, product(weights, shares, n, n)),
    identity(n),
  );
}

/** Rollout of a decoder to the source, through its own layers and those of the encoder. */
export function rolloutToSource(selfLayers, crossLayers, memories, nTarget, nSource) {
  return crossLayers.reduce(
    (shares, weights, layer) => {
      const own = halfway(shares, product(selfLayers[layer], shares, nTarget, nSource));
      return halfway(own, product(weights, memories[layer], nSource, nSource));
    },
    new Float32Array(nTarget * nSource),
  );
}

/** A smaller map: each cell the largest of those it stands for. At most `side` rows and columns. */
export function pooled(values, n, side) {
  const nRows = values.length / n;
  const step = Math.ceil(Math.max(nRows, n) / side);
  if (step === 1) return { values, n };
  const width = Math.ceil(n / step);
  const found = new Float32Array(Math.ceil(nRows / step) * width);
  for (let row = 0; row < nRows; row += 1) {
    for (let column = 0; column < n; column += 1) {
      const place = Math.floor(row / step) * width + Math.floor(column / step);
      found[place] = Math.max(found[place], values[row * n + column]);
    }
  }
  return { values: found, n: width };
}

/** For each row, the column of the largest weight: links as [column, row]. */
export function strongest(weights, n) {
  const links = [];
  for (let row = 0; row * n < weights.length; row += 1) {
    let best = 0;
    for (let column = 1; column < n; column += 1) {
      if (weights[row * n + column] > weights[row * n + best]) best = column;
    }
    links.push([best, row]);
  }
  return links;
}

/** For each column, the row that reads it most: links as [column, row]. */
function readers(weights, n) {
  const links = [];
  for (let column = 0; column < n; column += 1) {
    let best = 0;
    for (let row = 1; row * n < weights.length; row += 1) {
      if (weights[row * n + column] > weights[best * n + column]) best = row;
    }
    links.push([column, best]);
  }
  return links;
}

/** Ways to join the links of rows and of columns. */
export const JOINS = {
  none: "each target word",
  intersection: "both directions",
  "grow-diag": "grow-diag",
  union: "either direction",
};

/** The hard alignment of a map, as [source, target] in the order of the target. */
export function linksOf(weights, n, join) {
  const key = ([source, target]) => `${source}-${target}`;
  const forth = new Map(strongest(weights, n).map((link) => [key(link), link]));
  if (join === "none") return [...forth.values()];
  const back = new Map(readers(weights, n).map((link) => [key(link), link]));
  const union = new Map([...forth, ...back]);
  const both = new Map([...forth].filter(([name]) => back.has(name)));
  const found = { union, intersection: both, "grow-diag": grown(both, union, key) }[join];
  return [...found.values()].sort((one, other) => one[1] - other[1] || one[0] - other[0]);
}

/** grow-diag of Koehn, Och and Marcu 2003: neighbors are added that lack a partner. */
function grown(both, union, key) {
  const links = new Map(both);
  const has = (axis, place) => [...links.values()].some((link) => link[axis] === place);
  for (let hasGrown = true; hasGrown;) {
    hasGrown = false;
    const ordered = [...links.values()].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    for (const [source, target] of ordered) {
      for (const [i, j] of [-1, 0, 1].flatMap((a) => [-1, 0, 1].map((b) => [a, b]))) {
        const link = [source + i, target + j];
        const name = key(link);
        if (!union.has(name) || links.has(name) || (has(0, link[0]) && has(1, link[1]))) continue;
        links.set(name, link);
        hasGrown = true;
      }
    }
  }
  return links;
}
