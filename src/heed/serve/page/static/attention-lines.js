// Attention as lines between two columns of tokens: on the left what reads, on the right what is
// read; the stronger the weight, the darker the line.

import { draw, make } from "./element.js";
import { readPiece } from "./pieces.js";
import { sheet, svgText } from "./save.js";
import { onPointed, pieceNodes, placeOf, point, pointedAt, tint } from "./tokens.js";

const HEIGHT = 30; // of a token
const WIDTH = 220; // of the lines
const LEAST = 0.02; // weights below are not drawn
const MAX_LINES = 12_000;

/**
 * @param {object} map of `mapOf`
 * @param {object} events onRow(row): a reading token was clicked
 * @returns {HTMLElement} with `light(row)` and `svg(label)`
 */
export function lineView({ values, n, rows, columns }, { onRow }) {
  const lines = linesOf(values, n, new Set(rows.padding));
  const height = Math.max(rows.labels.length, columns.labels.length) * HEIGHT;
  const svg = draw("svg", {
    viewBox: `0 0 ${WIDTH} ${height}`,
    width: WIDTH,
    height,
    "aria-hidden": "true",
  });
  const paths = lines.map(({ row, column, weight }) =>
    draw("path", { d: curve(row, column), class: "line", "stroke-opacity": weight.toFixed(3) }),
  );
  svg.append(...paths);
  const left = column(rows, (index) =>
    make(
      "button",
      {
        type: "button",
        class: kindOf(rows, index),
        dir: "auto",
        onclick: () => onRow(index),
        ...events(rows, index),
      },
      ...pieceNodes(rows.labels[index]),
    ),
  );
  const right = column(columns, (index) =>
    make(
      "span",
      { class: kindOf(columns, index), dir: "auto", ...events(columns, index) },
      ...pieceNodes(columns.labels[index]),
    ),
  );
  const element = make(
    "div",
    { class: "lines" },
    make("div", { class: "side" }, make("p", {}, "reads"), ...left),
    svg,
    make("div", { class: "side" }, make("p", {}, "is read"), ...right),
  );
  const ofRow = left.map(() => []);
  const ofColumn = right.map(() => []);
  lines.forEach(({ row, column: at }, index) => {
    ofRow[row].push(paths[index]);
    ofColumn[at].push(paths[index]);
  });
  let shown = paths;
  let pointedTokens = [];
  let lit = -1;
  let pointed = null;
  let marked = ""; // what is marked, so that thousands of lines change only with it
  const mark = () => {
    const isSame = rows.side === columns.side;
    const row = lit >= 0 ? lit : placeOf(pointed, rows.side, rows.words);
    const read = lit >= 0 || isSame ? -1 : placeOf(pointed, columns.side, columns.words);
    if (marked === `${row} ${read}`) return;
    marked = `${row} ${read}`;
    const next = row >= 0 ? ofRow[row] : read >= 0 ? ofColumn[read] : paths;
    // Of thousands of lines, those change that are shown now or were before.
    for (const path of shown) path.classList.add("away");
    for (const path of next) path.classList.remove("away");
    shown = next;
    for (const token of pointedTokens) token?.classList.remove("pointed");
    pointedTokens = [left[row], right[read]];
    for (const token of pointedTokens) token?.classList.add("pointed");
    tint(right, row >= 0 ? values.subarray(row * n, (row + 1) * n) : []);
  };
  element.light = (row) => {
    lit = row ?? -1;
    mark();
  };
  onPointed(element, (now) => {
    pointed = now;
    mark();
  });
  element.svg = (label) => drawing(label, lines, rows.labels, columns.labels, height);
  return element;
}

function events({ side, words }, index) {
  const here = () => point(pointedAt(side, index, words));
  return {
    onmouseenter: here,
    onfocus: here,
    onmouseleave: () => point(null),
    onblur: () => point(null),
  };
}

const column = ({ labels }, makeOne) => labels.map((_, index) => makeOne(index));

const kindOf = ({ padding }, index) => (padding?.includes(index) ? "token padding" : "token");

/** The strongest lines of text, weak ones first, so that strong ones lie above them. */
function linesOf(values, n, padding) {
  const lines = [];
  for (let place = 0; place < values.length; place += 1) {
    const weight = values[place];
    const row = Math.floor(place / n);
    if (weight >= LEAST && !padding.has(row)) lines.push({ row, column: place % n, weight });
  }
  lines.sort((one, other) => one.weight - other.weight);
  return lines.slice(-MAX_LINES);
}

const curve = (row, column, left = 0, width = WIDTH, top = 0) => {
  const [from, to] = [row, column].map((place) => top + (place + 0.5) * HEIGHT);
  return `M${left} ${from}C${left + width / 2} ${from} ${left + width / 2} ${to} ${left + width} ${to}`;
};

function drawing(label, lines, rows, columns, height) {
  const side = (labels) => Math.max(...labels.map((text) => [...text].length)) * 9 + 20;
  const [left, right, top] = [side(rows), side(columns), 34];
  const size = { width: left + WIDTH + right, height: height + top };
  const svg = sheet(label, size, { "font-size": 15, fill: "#1b1e21" });
  svg.append(draw("text", { x: 8, y: 20, "font-weight": 600 }, label));
  for (const { row, column: to, weight } of lines) {
    const d = curve(row, to, left, WIDTH, top);
    svg.append(
      draw("path", {
        d,
        fill: "none",
        stroke: "#0c6b66",
        "stroke-width": 2,
        "stroke-opacity": weight.toFixed(3),
      }),
    );
  }
  const text = (labels, x, anchor) =>
    labels.map((piece, index) =>
      draw(
        "text",
        { x, y: top + (index + 0.5) * HEIGHT + 5, "text-anchor": anchor },
        readPiece(piece),
      ),
    );
  svg.append(...text(rows, left - 8, "end"), ...text(columns, left + WIDTH + 8, "start"));
  return svgText(svg);
}
