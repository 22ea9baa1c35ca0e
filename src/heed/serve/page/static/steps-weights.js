// A weight of the model as a heat map, read when it is opened.

import { make } from "./element.js";
import { weight } from "./looked.js";
import { plane } from "./positions-plane.js";
import { saveButtons } from "./save.js";
import { written } from "./steps-worked.js";

const MOST = 4_500_000; // numbers; tables of large vocabularies have more

/**
 * @param {string} name of the weight
 * @returns {HTMLDetailsElement}
 */
export function weightView(name) {
  const box = make("div", { class: "weight" });
  const element = make(
    "details",
    { dataset: { weight: name }, ontoggle: () => element.open && !box.firstChild && fill(name, box) },
    make("summary", {}, make("code", {}, name)),
    box,
  );
  return element;
}

async function fill(name, box) {
  box.replaceChildren(make("p", { class: "hint", role: "status" }, "Reading …"));
  try {
    const row = await weight(name, 0);
    const isVector = row.length === 1; // of a bias, a row is one number
    const values = await weight(name);
    box.replaceChildren(...shown(name, values, isVector ? values.length : row.length));
  } catch (error) {
    box.replaceChildren(make("p", { class: "hint" }, error.message)); // a page that is a file
  }
}

function shown(name, values, nColumns) {
  const nRows = values.length / nColumns;
  const shape = `${nRows} × ${nColumns}`;
  if (values.length > MOST) {
    return [make("p", { class: "hint" }, `${shape}: too many numbers for a map.`)];
  }
  const readout = make("p", { class: "hint", "aria-live": "polite" }, shape);
  const map = plane({
    label: `${name}, ${shape}: outputs down, inputs across.`,
    values,
    shape: [nRows, nColumns],
    names: ["output", "input"],
    onPick: (row, column) => {
      map.mark(row, column);
      readout.textContent = `${row}, ${column}: ${written(values[row * nColumns + column])}`;
    },
  });
  const rows = () =>
    Array.from({ length: nRows }, (_, row) => [
      row,
      ...values.subarray(row * nColumns, (row + 1) * nColumns),
    ]);
  const head = ["", ...Array.from({ length: nColumns }, (_, column) => column)];
  const files = { svg: map.svg, table: () => [head, ...rows()] };
  return [map.element, readout, saveButtons(name, files)];
}
