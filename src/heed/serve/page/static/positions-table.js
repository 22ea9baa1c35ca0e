// The table of positions: a heat map, the wave of one dimension, the vector of one position, and how
// alike positions are.

import * as api from "./api.js";
import { make } from "./element.js";
import { looked } from "./looked.js";
import { unpacked } from "./drawing.js";
import { modelPicker } from "./positions.js";
import { curve } from "./positions-curve.js";
import { formulaOf, termOf } from "./positions-formula.js";
import { plane } from "./positions-plane.js";
import { setParams } from "./route.js";
import { saveButtons } from "./save.js";
import { readPiece } from "./pieces.js";

const KINDS = {
  sinusoidal: "Sines and cosines, added to the embeddings",
  sinusoidal_halves: "Sines, then cosines, added to the embeddings",
  learned: "Learned rows, added to the embeddings",
  rotary: "Angles by which queries and keys turn: cosines, then sines",
  absolute: "The number itself, in the first dimension",
  seed1: "Waves of other lengths, for comparison",
  shaw: "A learned vector of each distance, added to the keys",
  alibi: "What each head adds to its scores, by distance",
};
const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 4, minimumFractionDigits: 4 });
const LENGTH = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });

const read = new Map(); // address → promise of a table
let view = null; // of the table that is shown
let wanted = ""; // the address of the table that was asked for last

looked.on(["trace"], () => view && drawTokens(view));

export async function show(root, params) {
  const query = new URLSearchParams();
  for (const name of ["model", "side"]) if (params[name]) query.set(name, params[name]);
  const address = `positions?${query}`;
  wanted = address;
  if (view?.address === address && view.root === root) return mark(params);
  if (!read.has(address)) {
    view = null;
    root.replaceChildren(make("p", { class: "message card inset", role: "status" }, "Reading …"));
    read.set(address, api.get(address));
  }
  try {
    const table = await read.get(address);
    if (wanted !== address) return;
    view = await build(root, address, table);
  } catch (error) {
    read.delete(address);
    if (wanted !== address) return;
    view = null;
    const picker = await modelPicker(params.model ?? "");
    root.replaceChildren(
      make("div", { class: "controls" }, picker),
      make("p", { class: "message card inset", role: "status" }, error.message),
    );
    return;
  }
  mark(params);
}

async function build(root, address, table) {
  const [nRows, nColumns] = table.shape;
  const found = {
    address,
    root,
    table,
    values: unpacked(table.values),
    products: unpacked(table.similarity),
    byDistance: ["shaw", "alibi"].includes(table.kind),
  };
  const rowName = found.byDistance ? "distance" : "position";
  const columnName = table.kind === "alibi" ? "head" : "dimension";
  found.names = [rowName, columnName];
  const facts =
    `${KINDS[table.kind]} · ${nRows} ${rowName}s × ${nColumns} ${columnName}s` +
    (table.trained_len ? ` · training sentences had up to ${table.trained_len} tokens` : "");
  found.position = slider(rowName, table.first, table.first + nRows - 1, "pos");
  found.dimension = slider(columnName, 0, nColumns - 1, "dim");
  found.map = plane({
    label: `The table: ${rowName}s down, ${columnName}s across. The sliders choose a cell.`,
    values: found.values,
    shape: table.shape,
    first: table.first,
    names: found.names,
    end: table.trained_len,
    onPick: (row, column) => setParams({ pos: table.first + row, dim: column }),
  });
  // ALiBi's pairs are of positions, which begin at 0, as its distances do.
  found.pairName = table.kind === "alibi" ? "position" : rowName;
  found.alike = plane({
    label: `${titleOfPairs(table)}, ${found.pairName}s down and across.`,
    values: found.products,
    shape: [nRows, nRows],
    first: table.first,
    firstColumn: table.first,
    names: [found.pairName, found.pairName],
    end: table.trained_len,
    isEndAcross: true,
    onPick: (row) => setParams({ pos: table.first + row }),
  });
  found.term = make("p", { class: "term", "aria-live": "polite" });
  found.wave = make("figure", { class: "chart" });
  found.vector = make("figure", { class: "chart" });
  found.row = make("figure", { class: "chart" });
  found.lengths = make("figure", { class: "chart" });
  found.tokens = make("div", { class: "places" });
  found.drawn = {}; // chart → what it shows
  found.terms = make("div", { class: "scroll", tabindex: "0", role: "region" });
  found.details = make(
    "details",
    { class: "twin", ontoggle: () => writeOut(found) },
    make("summary", {}, `One ${rowName}, term by term`),
    found.terms,
  );
  const side = table.kind === "learned" ? sidePicker(address) : null;
  root.replaceChildren(
    make(
      "section",
      { class: "card inset", "aria-label": "The table of positions" },
      make(
        "header",
        { class: "part-head" },
        make("h2", {}, "Where a token stands"),
        make("p", { class: "hint" }, facts),
      ),
      formulaOf(table),
      make(
        "div",
        { class: "controls" },
        await modelPicker(table.model),
        side,
        found.position.element,
        found.dimension.element,
      ),
      found.tokens,
      make(
        "div",
        { class: "two" },
        found.map.element,
        make("div", { class: "stack" }, found.term, found.wave, found.vector),
      ),
      found.details,
      saveButtons("positions", {
        svg: found.map.svg,
        table: () => tableOf(found.values, table.shape, table.first, columnName),
        json: () => ({
          kind: table.kind,
          formula: table.formula,
          waves: table.waves,
          values: rowsOf(found.values, nColumns),
        }),
      }),
    ),
    make(
      "section",
      { class: "card inset", "aria-label": titleOfPairs(table) },
      make(
        "header",
        { class: "part-head" },
        make("h2", {}, titleOfPairs(table)),
        make("p", { class: "hint" }, alikeWords(table)),
      ),
      make(
        "div",
        { class: "two" },
        found.alike.element,
        make("div", { class: "stack" }, found.row, found.lengths),
      ),
      saveButtons("similarity", {
        svg: found.alike.svg,
        table: () =>
          tableOf(found.products, [nRows, nRows], table.first, found.pairName, table.first),
        json: () => rowsOf(found.products, nRows),
      }),
    ),
  );
  return found;
}

const rowsOf = (values, nColumns) =>
  Array.from({ length: values.length / nColumns }, (_, row) =>
    Array.from(values.subarray(row * nColumns, (row + 1) * nColumns)),
  );

/** Rows for a file, with a head. */
function tableOf(values, [, nColumns], first, columnName, firstColumn = 0) {
  const head = Array.from(
    { length: nColumns },
    (_, column) => `${columnName} ${firstColumn + column}`,
  );
  const rows = rowsOf(values, nColumns).map((row, index) => [first + index, ...row]);
  return [["", ...head], ...rows];
}

function titleOfPairs({ kind }) {
  if (kind === "alibi") return "What is added for two positions";
  return kind === "shaw" ? "How alike distances are" : "How alike positions are";
}

function alikeWords({ kind }) {
  if (kind === "alibi") return "The mean over heads of what is added to a score.";
  if (["sinusoidal", "sinusoidal_halves", "rotary"].includes(kind)) {
    return (
      "PE·PEᵀ: the product of two positions depends on their distance alone, so every diagonal " +
      "has one color. That is how attention can tell distances."
    );
  }
  return "PE·PEᵀ: the products of the vectors of two rows.";
}

/** Mark the cell that the address names. */
function mark(params) {
  const { table, values } = view;
  const [nRows, nColumns] = table.shape;
  const limit = (text, low, high, usual) => {
    const number = Number.parseInt(text ?? "", 10);
    return Math.max(low, Math.min(high, Number.isNaN(number) ? usual : number));
  };
  const last = table.first + nRows - 1;
  const position = limit(params.pos, table.first, last, Math.min(5, last));
  const dimension = limit(params.dim, 0, nColumns - 1, Math.min(4, nColumns - 1));
  const row = position - table.first;
  view.at = { position, dimension };
  view.position.set(position);
  view.dimension.set(dimension);
  view.map.mark(row, dimension);
  view.alike.mark(row, null);
  view.term.replaceChildren(
    ...termOf(table, position, dimension, values[row * nColumns + dimension]),
  );
  const wave = table.waves[dimension];
  drawWave(dimension, position);
  drawVector(position, dimension);
  drawProducts(position);
  if (wave) drawLengths(dimension);
  drawTokens(view);
  writeOut(view);
}

/** Draw a chart if `key` is another one than before; else move its mark only. */
function chart(name, key, at, parts) {
  const known = view.drawn[name];
  if (known?.key === key) return known.curve.mark(at);
  const [caption, options] = parts();
  const drawn = curve({ ...options, at });
  view[name].replaceChildren(make("figcaption", {}, ...caption), drawn);
  view.drawn[name] = { key, curve: drawn };
}

/** One dimension at every position. */
function drawWave(dimension, position) {
  const { table, values, names } = view;
  const [nRows, nColumns] = table.shape;
  const wave = table.waves[dimension];
  chart("wave", dimension, position, () => {
    const exact = wave && !table.is_normalized && table.kind !== "seed1" ? functionOf(wave) : null;
    const about = wave
      ? `: a ${wave.function === "sin" ? "sine" : "cosine"} that repeats every ${LENGTH.format(wave.wavelength)} positions`
      : "";
    const title = capital(`${names[1]} ${dimension}`);
    return [
      [make("b", {}, title), about],
      {
        label: `${title} at every ${names[0]}${about}`,
        name: names[0],
        values: Float32Array.from({ length: nRows }, (_, row) => values[row * nColumns + dimension]),
        first: table.first,
        wave: exact,
        end: table.trained_len,
        range: wave ? [-1, 1] : undefined,
      },
    ];
  });
}

/** The vector of one position. */
function drawVector(position, dimension) {
  const { table, values, names } = view;
  const nColumns = table.shape[1];
  const start = (position - table.first) * nColumns;
  chart("vector", position, dimension, () => [
    [make("b", {}, capital(`${names[0]} ${position}`)), `: its ${nColumns} numbers`],
    {
      label: `The numbers of ${names[0]} ${position}`,
      name: names[1],
      values: values.subarray(start, start + nColumns),
      isBars: true,
      range: table.waves[dimension] ? [-1, 1] : undefined,
    },
  ]);
}

/** The products of one position with every position. */
function drawProducts(position) {
  const { table, products, pairName } = view;
  const nRows = table.shape[0];
  const start = (position - table.first) * nRows;
  const row = products.subarray(start, start + nRows);
  const largest = row.reduce((most, value) => Math.max(most, value), -Infinity);
  chart("row", position, position, () => [
    [
      make("b", {}, capital(`${pairName} ${position}`)),
      table.kind === "alibi"
        ? `: what is added to its scores of every ${pairName}, in the mean over heads`
        : ` with every ${pairName}; the largest is ${LENGTH.format(largest)}`,
    ],
    {
      label:
        table.kind === "alibi"
          ? `What is added to the scores of position ${position} and every position`
          : `The products of ${pairName} ${position} with every ${pairName}`,
      name: pairName,
      values: row,
      first: table.first,
      end: table.trained_len,
    },
  ]);
}

/** The wavelength of each dimension. */
function drawLengths(dimension) {
  const { table, names } = view;
  chart("lengths", "", dimension, () => {
    const lengths = table.waves.map(({ wavelength }) => Math.log10(wavelength));
    const [least, most] = [Math.min(...lengths), Math.max(...lengths)].map((power) => 10 ** power);
    return [
      [
        make("b", {}, "Wavelengths"),
        `: from ${LENGTH.format(least)} to ${LENGTH.format(most)} positions`,
      ],
      {
        label: "The wavelength of each dimension",
        name: names[1],
        values: lengths,
        format: (power) => (Number.isInteger(power) ? LENGTH.format(10 ** power) : ""),
      },
    ];
  });
}

const functionOf = (wave) => {
  const speed = (2 * Math.PI) / wave.wavelength;
  return (position) => Math[wave.function](position * speed);
};
const capital = (words) => words[0].toUpperCase() + words.slice(1);

/** The tokens of the sentence that is looked at: a press chooses the position of one. */
function drawTokens(found) {
  const { trace } = looked;
  if (!trace || found.byDistance || !found.at) {
    found.trace = null;
    return found.tokens.replaceChildren();
  }
  if (found.trace !== trace) {
    found.trace = trace;
    found.places = trace.source_tokens.slice(0, found.table.shape[0]).map((token, index) =>
      make(
        "button",
        {
          type: "button",
          class: "place",
          "aria-pressed": "false",
          onclick: () => setParams({ pos: index }),
        },
        make("bdi", {}, readPiece(token)),
        make("span", { class: "number" }, index),
      ),
    );
    found.tokens.replaceChildren(
      make("span", { class: "hint" }, "In your sentence"),
      ...found.places,
    );
  }
  found.pressed?.setAttribute("aria-pressed", "false");
  found.pressed = found.places[found.at.position];
  found.pressed?.setAttribute("aria-pressed", "true");
}

/** The formula of one number of a position, in a line of text. */
function ruleOf({ kind }, wave, position) {
  if (wave) return `${wave.function}(${position} · 2π / ${LENGTH.format(wave.wavelength)})`;
  if (kind === "alibi") return `−m · ${position}`;
  return ["learned", "shaw"].includes(kind) ? "learned" : "";
}

function writeOut({ details, terms, table, values, at, names }) {
  if (!details.open || !at) return;
  const [, nColumns] = table.shape;
  const start = (at.position - table.first) * nColumns;
  const head = [names[1], "i", "wavelength", "formula", "value"];
  const rows = Array.from({ length: nColumns }, (_, dimension) => {
    const wave = table.waves[dimension];
    return make(
      "tr",
      { class: dimension === at.dimension ? "now" : null },
      make("th", { scope: "row" }, dimension),
      make("td", {}, wave?.pair ?? ""),
      make("td", {}, wave ? LENGTH.format(wave.wavelength) : ""),
      make("td", {}, ruleOf(table, wave, at.position)),
      make("td", {}, NUMBER.format(values[start + dimension])),
    );
  });
  const caption = capital(`${names[0]} ${at.position}`);
  terms.setAttribute("aria-label", caption);
  terms.replaceChildren(
    make(
      "table",
      {},
      make("caption", {}, caption),
      make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...rows),
    ),
  );
}

function slider(name, low, high, param) {
  const id = `slider-${param}`;
  const range = make("input", { type: "range", id, min: low, max: high, step: 1 });
  const output = make("output", { for: id, class: "number" });
  range.addEventListener("input", () => setParams({ [param]: range.value }));
  const label = make("label", { for: id }, capital(name));
  return {
    element: make("div", { class: "slider" }, label, range, output),
    set(value) {
      range.value = value;
      output.textContent = value;
    },
  };
}

function sidePicker(address) {
  const chosen = new URLSearchParams(address.split("?")[1]).get("side") ?? "source";
  const select = make("select", { onchange: () => setParams({ side: select.value }) });
  for (const side of ["source", "target"]) select.append(make("option", { value: side }, side));
  select.value = chosen;
  return make("label", { class: "setting" }, make("span", {}, "Side"), select);
}
