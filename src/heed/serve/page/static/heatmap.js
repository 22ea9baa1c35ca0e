// A matrix as colored cells on a canvas: a cursor for mouse and keys, a table for screen readers.

import { colorTable } from "./colors.js";
import { make } from "./element.js";
import { readPiece } from "./tokens.js";

const NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const MAX_CELL = 36;
const MIN_LABELED = 11; // pixels a cell needs for its label
const MAX_TABLE = 64 * 64; // cells of a table

/**
 * @param {object} options
 * @param {string} options.label what the map shows
 * @param {string[]} options.rows labels
 * @param {string[]} options.columns labels
 * @param {ArrayLike<number>} options.values row by row; −Infinity is a masked cell
 * @param {number} [options.low] the number of the first color
 * @param {number} [options.high] the number of the last color
 * @param {(row: number, column: number) => void} [options.onPoint] the cell under the cursor
 * @param {(row: number, column: number) => void} [options.onPick] a cell was clicked
 * @returns {HTMLElement}
 */
export function heatmap({ label, rows, columns, values, low, high, onPoint, onPick }) {
  const finite = Array.from(values).filter(Number.isFinite);
  const least = low ?? Math.min(0, ...finite);
  const most = high ?? Math.max(...finite, least + 1e-9);
  const isSigned = least < 0;
  const bound = Math.max(-least, most);
  const scale = isSigned ? (value) => (value / bound + 1) / 2 : (value) => (value - least) / (most - least);
  const canvas = make("canvas", {
    class: "cells",
    tabindex: "0",
    role: "img",
    "aria-label": `${label}. The arrow keys move over the cells.`,
  });
  const readout = make("p", { class: "readout", "aria-live": "polite" });
  const element = make(
    "figure",
    { class: "heatmap" },
    make("div", { class: "labels" }, ...rows.map((row) => make("span", { dir: "auto" }, readPiece(row)))),
    make("div", { class: "heads" }, ...columns.map((column) => make("span", { dir: "auto" }, readPiece(column)))),
    canvas,
    readout,
    tableTwin(label, rows, columns, values),
  );
  let cursor = null;

  function draw() {
    const cell = Math.max(2, Math.min(MAX_CELL, Math.floor((element.clientWidth - 110) / columns.length)));
    element.style.setProperty("--cell", `${cell}px`);
    element.classList.toggle("is-bare", cell < MIN_LABELED);
    const table = colorTable(isSigned);
    const image = new ImageData(columns.length, rows.length);
    for (let place = 0; place < values.length; place += 1) {
      if (values[place] === -Infinity) continue; // what lies under the canvas is hatched
      const color = Math.max(0, Math.min(255, Math.round(scale(values[place]) * 255))) * 4;
      image.data.set(table.subarray(color, color + 4), place * 4);
    }
    canvas.width = columns.length;
    canvas.height = rows.length;
    canvas.style.width = `${cell * columns.length}px`;
    canvas.style.height = `${cell * rows.length}px`;
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  function move(row, column) {
    if (row < 0 || column < 0 || row >= rows.length || column >= columns.length) return;
    cursor = [row, column];
    const value = values[row * columns.length + column];
    const shown = value === -Infinity ? "masked (−∞)" : NUMBER.format(value);
    readout.textContent = `${readPiece(rows[row])} → ${readPiece(columns[column])}: ${shown}`;
    onPoint?.(row, column);
  }

  function placeOf(event) {
    const box = canvas.getBoundingClientRect();
    return [
      Math.floor(((event.clientY - box.top) / box.height) * rows.length),
      Math.floor(((event.clientX - box.left) / box.width) * columns.length),
    ];
  }

  canvas.addEventListener("mousemove", (event) => move(...placeOf(event)));
  canvas.addEventListener("click", (event) => onPick?.(...placeOf(event)));
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const [row, column] = cursor ?? [0, 0];
    if (event.key === "Enter") onPick?.(row, column);
    else if (steps[event.key]) {
      const [down, right] = cursor ? steps[event.key] : [0, 0];
      move(row + down, column + right);
      event.preventDefault();
    }
  });
  new ResizeObserver(draw).observe(element);
  return element;
}

/** The numbers as a table, made when it is first opened. */
function tableTwin(label, rows, columns, values) {
  const details = make("details", { class: "twin" }, make("summary", {}, "As a table"));
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    if (values.length > MAX_TABLE) {
      details.append(make("p", {}, "The table is too large to show; save the numbers instead."));
      return;
    }
    const head = make("tr", {}, make("td", {}), ...columns.map((one) => make("th", { scope: "col" }, one)));
    const body = rows.map((row, index) =>
      make(
        "tr",
        {},
        make("th", { scope: "row" }, row),
        ...columns.map((_, column) => {
          const value = values[index * columns.length + column];
          return make("td", {}, value === -Infinity ? "−∞" : NUMBER.format(value));
        }),
      ),
    );
    const table = make("table", {}, make("caption", {}, label), make("thead", {}, head), make("tbody", {}, ...body));
    details.append(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table));
  });
  return details;
}
