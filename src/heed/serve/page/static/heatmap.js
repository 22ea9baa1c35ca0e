// A matrix as colored cells on a canvas: a cursor for mouse and keys, zoom, a legend, and a table
// for screen readers. The canvas has one pixel for each cell and is stretched, so that only marks
// above it move with the cursor.

import { colorTable, paint, redrawWithTheme, scaleOf } from "./colors.js";
import { make, onceAFrame } from "./element.js";
import { readPiece } from "./pieces.js";
import { tableSvg } from "./save.js";
import { onPointed, pieceNodes, placeOf, point, pointedAt } from "./tokens.js";

const NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const MAX_CELL = 36;
const MAX_ZOOM = 64;
const MIN_CELL = 1;
const MIN_LABELED = 10; // pixels a cell needs for its label
const TABLE_SIDE = 64; // rows and columns of the table; larger ones show a part
const PAGE = 10; // cells that Page Up and Page Down pass

/** A number as every view spells it. */
export const spell = (value) =>
  value === -Infinity ? "−∞" : NUMBER.format(value).replace("-", "−");

/**
 * @param {object} options
 * @param {string} options.label what the map shows
 * @param {string[]} options.rows labels
 * @param {string[]} options.columns labels
 * @param {ArrayLike<number>} options.values row by row; −Infinity is a masked cell
 * @param {number} [options.low] the number of the first color
 * @param {number} [options.high] the number of the last color
 * @param {string[]} [options.ends] labels at the right of the rows, such as the token written there
 * @param {string[]} [options.titles] what the labels of the rows are, left and right
 * @param {{rows: number[], columns: number[]}} [options.padding] places of padding in a batch
 * @param {object} [options.sides] tokens to mark with the cursor: {rows: {side, words}, columns}
 * @param {(row: number, column: number) => void} [options.onPoint] the cell under the cursor
 * @param {(row: number, column: number) => void} [options.onPick] a cell was clicked
 * @returns {HTMLElement} with `show({values, label, low, high})`, which changes the numbers;
 *   `light(row)`, which marks a row; `moveTo(row, column)`; `svg()` and `table()`, for files
 */
export function heatmap(options) {
  const { rows, columns, ends = [], titles = [], sides = {}, onPoint, onPick } = options;
  const { padding = { rows: [], columns: [] } } = options;
  let { label, values, low, high } = options;
  let scale = scaleOf(values, low, high);
  let cursor = null;
  let zoom = null; // pixels of a cell; null = as many as there is room for
  let cell = MIN_CELL; // pixels of a cell, as they were laid out last

  const canvas = make("canvas", {
    class: "cells",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "heat map",
  });
  const [cross, lit, spot] = ["cross", "lit", "spot"].map((name) =>
    make("div", { class: `mark-${name}`, "aria-hidden": "true", hidden: true }),
  );
  const isPadding = (which, place) => padding[which].includes(place);
  const kind = (which, place) => (isPadding(which, place) ? "padding" : null);
  const rowLabels = rows.map((row, place) =>
    make("span", { dir: "auto", class: kind("rows", place) }, ...pieceNodes(row)),
  );
  const endLabels = ends.map((end, place) =>
    make("span", { dir: "auto", class: kind("rows", place) }, ...pieceNodes(end)),
  );
  const columnLabels = columns.map((column, place) =>
    make(
      "span",
      { class: kind("columns", place) },
      make("b", { dir: "auto" }, ...pieceNodes(column)),
    ),
  );
  const padded = [
    ...runs(padding.columns).map(([first, count]) => stripe(first, 0, count, rows.length)),
    ...runs(padding.rows).map(([first, count]) => stripe(0, first, columns.length, count)),
  ];
  const scroller = make(
    "div",
    { class: "scroller" },
    make("div", { class: "corner", "aria-hidden": "true" }, titles[0]),
    make("div", { class: "heads", "aria-hidden": "true" }, ...columnLabels),
    make("div", { class: "corner end", "aria-hidden": "true" }, titles[1]),
    make("div", { class: "labels", "aria-hidden": "true" }, ...rowLabels),
    make("div", { class: "area" }, canvas, ...padded, lit, cross, spot),
    ends.length ? make("div", { class: "ends", "aria-hidden": "true" }, ...endLabels) : null,
  );
  const readout = make("p", { class: "readout", "aria-live": "polite" });
  const legend = make("div", { class: "legend" });
  const zooms = [
    ["−", "Smaller cells", () => zoomTo(cell / 1.5)],
    ["Fit", "Fit the map to the page", () => zoomTo(null)],
    ["+", "Larger cells", () => zoomTo(cell * 1.5)],
  ].map(([text, name, onclick]) =>
    make(
      "button",
      { type: "button", class: "quiet", title: name, "aria-label": name, onclick },
      text,
    ),
  );
  const element = make(
    "figure",
    { class: "heatmap" },
    scroller,
    make("div", { class: "under" }, readout, legend, make("div", { class: "zooms" }, ...zooms)),
    tableTwin(() => ({ label, rows, columns, values, cursor })),
  );

  const valueAt = (row, column) => values[row * columns.length + column];

  /** Reads the layout, so only where it may have changed. */
  function cellSize() {
    if (zoom) return zoom;
    const taken = [".labels", ".ends"].map((part) => element.querySelector(part)?.offsetWidth ?? 0);
    const room = element.clientWidth - taken[0] - Math.max(taken[1], 48);
    return Math.max(MIN_CELL, Math.min(MAX_CELL, Math.floor(room / columns.length)));
  }

  function zoomTo(size) {
    zoom = size && Math.max(MIN_CELL, Math.min(MAX_ZOOM, Math.round(size)));
    resize();
    if (cursor && zoom) spot.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function resize() {
    element.classList.remove("is-bare");
    cell = cellSize();
    element.style.setProperty("--cell", `${cell}px`);
    element.classList.toggle("is-bare", cell < MIN_LABELED);
    canvas.style.width = `${cell * columns.length}px`;
    canvas.style.height = `${cell * rows.length}px`;
    place();
  }

  function place() {
    const set = (mark, row, column, width) => {
      mark.style.transform = `translate(${column * cell}px, ${row * cell}px)`;
      mark.style.width = `${width * cell}px`;
      mark.style.height = `${cell}px`;
    };
    spot.hidden = cross.hidden = !cursor;
    if (!cursor) return;
    set(spot, ...cursor, 1);
    set(cross, cursor[0], 0, columns.length);
  }

  function redraw() {
    paint(canvas, values, columns.length, scale);
    canvas.setAttribute("aria-label", `${label}. The arrow keys move over the cells.`);
    drawLegend(legend, scale, padded.length > 0);
    if (cursor) read();
  }

  function read() {
    const [row, column] = cursor;
    const value = valueAt(row, column);
    const number = value === -Infinity ? "−∞ (masked)" : spell(value);
    const isPadded = isPadding("rows", row) || isPadding("columns", column);
    const shown = isPadded ? `${number}, padding` : number;
    readout.replaceChildren(
      make("bdi", {}, readPiece(rows[row])),
      " → ",
      make("bdi", {}, readPiece(columns[column])),
      `: ${shown}`,
    );
  }

  const marked = new Map(); // labels → class → the one that has it

  function mark(labels, index, name = "pointed") {
    if (!marked.has(labels)) marked.set(labels, {});
    const found = marked.get(labels);
    if (found[name] === labels[index]) return;
    found[name]?.classList.remove(name);
    found[name] = labels[index];
    found[name]?.classList.add(name);
  }

  function move(row, column) {
    if (cursor?.[0] === row && cursor[1] === column) return;
    if (row < 0 || column < 0 || row >= rows.length || column >= columns.length) return;
    cursor = [row, column];
    place();
    read();
    mark(rowLabels, row);
    mark(endLabels, row);
    mark(columnLabels, column);
    if (sides.rows) point(pointedAt(sides.rows.side, row, sides.rows.words));
    onPoint?.(row, column);
  }

  function cellUnder(event) {
    const box = canvas.getBoundingClientRect();
    return [
      Math.floor(((event.clientY - box.top) / box.height) * rows.length),
      Math.floor(((event.clientX - box.left) / box.width) * columns.length),
    ];
  }

  let last = null; // movement of the mouse
  const follow = onceAFrame(() => move(...cellUnder(last)));
  canvas.addEventListener("pointermove", (event) => {
    last = event;
    follow();
  });
  canvas.addEventListener("click", (event) => {
    move(...cellUnder(event));
    onPick?.(...cursor);
  });
  canvas.addEventListener("keydown", (event) => {
    const [row, column] = cursor ?? [0, 0];
    const [lastRow, lastColumn] = [rows.length - 1, columns.length - 1];
    const targets = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      PageUp: [Math.max(0, row - PAGE), column],
      PageDown: [Math.min(lastRow, row + PAGE), column],
      Home: [event.ctrlKey ? 0 : row, 0],
      End: [event.ctrlKey ? lastRow : row, lastColumn],
    };
    const zoomed = { "+": cell * 1.5, "=": cell * 1.5, "-": cell / 1.5, 0: null };
    if (event.key === "Enter" || event.key === " ") onPick?.(row, column);
    else if (targets[event.key]) {
      move(...(cursor ? targets[event.key] : [0, 0]));
      if (cursor) spot.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else if (event.key in zoomed && !event.ctrlKey && !event.metaKey) zoomTo(zoomed[event.key]);
    else return;
    event.preventDefault();
  });
  scroller.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoomTo(cell * (event.deltaY < 0 ? 1.2 : 1 / 1.2));
    },
    { passive: false },
  );
  onPointed(element, (pointed) => {
    for (const [which, labels] of [
      ["rows", rowLabels],
      ["columns", columnLabels],
    ]) {
      const of = sides[which];
      if (of) mark(labels, placeOf(pointed, of.side, of.words));
    }
  });
  new ResizeObserver(resize).observe(element);

  element.show = (changes) => {
    ({ label, values, low, high } = { label, values, low, high, ...changes });
    scale = scaleOf(values, low, high);
    redraw();
    element.twin.refill();
  };
  element.twin = element.lastElementChild;
  element.light = (row) => {
    lit.hidden = !Number.isInteger(row);
    mark(rowLabels, row, "lit");
    mark(endLabels, row, "lit");
    lit.style.top = `calc(var(--cell) * ${row})`;
    lit.style.width = `calc(var(--cell) * ${columns.length})`;
  };
  element.moveTo = move;
  element.redraw = redraw;
  element.table = () => [
    ["", ...columns],
    ...rows.map((row, index) => [row, ...columns.map((_, column) => valueAt(index, column))]),
  ];
  element.svg = () => tableSvg({ label, rows, columns, values, scale, padding });
  redrawWithTheme(element);
  redraw();
  return element;
}

/** Neighbors among places, as [first, count]. */
export function runs(places) {
  const found = [];
  for (const place of places) {
    const last = found.at(-1);
    if (last && last[0] + last[1] === place) last[1] += 1;
    else found.push([place, 1]);
  }
  return found;
}

/** A mark over cells; it grows with them. */
function stripe(column, row, width, height) {
  const element = make("div", { class: "mark-padding", "aria-hidden": "true" });
  const cells = (count) => `calc(var(--cell) * ${count})`;
  Object.assign(element.style, {
    left: cells(column),
    top: cells(row),
    width: cells(width),
    height: cells(height),
  });
  return element;
}

/** A bar of the colors with its first and last number, and what hatched cells are. */
function drawLegend(legend, scale, hasPadding) {
  const bar = make("canvas", { width: 128, height: 1, class: "scale", "aria-hidden": "true" });
  const table = colorTable(scale.isSigned);
  const image = new ImageData(128, 1);
  for (let step = 0; step < 128; step += 1) {
    image.data.set(table.subarray(step * 8, step * 8 + 4), step * 4);
  }
  bar.getContext("2d").putImageData(image, 0, 0);
  legend.replaceChildren(
    make("span", {}, spell(scale.low)),
    bar,
    make("span", {}, spell(scale.high)),
    ...(scale.isMasked
      ? [make("span", { class: "hatched", "aria-hidden": "true" }), make("span", {}, "masked (−∞)")]
      : []),
    ...(hasPadding
      ? [make("span", { class: "padding", "aria-hidden": "true" }), make("span", {}, "padding")]
      : []),
  );
}

/** The numbers as a table, made when it is opened; of a large map, the part around the cursor. */
function tableTwin(current) {
  const details = make("details", { class: "twin" }, make("summary", {}, "As a table"));
  details.addEventListener("toggle", () => details.refill());
  details.refill = () => {
    if (!details.open && !details.firstElementChild.nextSibling) return;
    details.replaceChildren(details.firstElementChild);
    if (!details.open) return;
    const { label, rows, columns, values, cursor } = current();
    const [y, x] = [rows.length, columns.length].map((length, axis) =>
      Math.max(0, Math.min(length - TABLE_SIDE, (cursor?.[axis] ?? 0) - TABLE_SIDE / 2)),
    );
    const shown = columns.slice(x, x + TABLE_SIDE);
    const head = make("tr", {}, make("td", {}), ...shown.map((one) => header("col", one)));
    const body = rows.slice(y, y + TABLE_SIDE).map((row, index) => {
      const start = (y + index) * columns.length + x;
      const cells = shown.map((_, place) => make("td", {}, spell(values[start + place])));
      return make("tr", {}, header("row", row), ...cells);
    });
    const isPart = rows.length > TABLE_SIDE || columns.length > TABLE_SIDE;
    const caption = isPart ? `${label}: the part around the cursor` : label;
    const table = make(
      "table",
      {},
      make("caption", {}, caption),
      make("thead", {}, head),
      make("tbody", {}, ...body),
    );
    const box = { class: "scroll", tabindex: "0", role: "region", "aria-label": label };
    details.append(make("div", box, table));
  };
  return details;
}

const header = (scope, text) => make("th", { scope, dir: "auto" }, readPiece(text));
