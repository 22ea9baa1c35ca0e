// Files of what is shown: SVG, PNG, CSV and JSON.

import { colorTable } from "./colors.js";
import { draw, make } from "./element.js";
import { readPiece } from "./pieces.js";

const CELL = 22;
const PIXELS = 2; // of a PNG for each of the drawing's
const INK = "#1b1e21";

/**
 * Buttons that save a view.
 * @param {string} name of the files
 * @param {object} makers of those that the view has, called when a button is pressed
 * @param {() => string} [makers.svg] the drawing; PNG is made from it
 * @param {() => any[][]} [makers.table] rows for CSV, the first one the head
 * @param {() => any} [makers.json]
 * @returns {HTMLElement}
 */
export function saveButtons(name, { svg, table, json }) {
  const kinds = {
    SVG: svg && (() => new Blob([svg()], { type: "image/svg+xml" })),
    PNG: svg && (() => pngOf(svg())),
    CSV: table && (() => new Blob([csv(table())], { type: "text/csv" })),
    JSON: json && (() => new Blob([JSON.stringify(json(), null, 1)], { type: "application/json" })),
  };
  const buttons = Object.entries(kinds)
    .filter(([, maker]) => maker)
    .map(([kind, maker]) =>
      make(
        "button",
        {
          type: "button",
          class: "quiet",
          "aria-label": `Save as ${kind}`,
          onclick: async () => download(`${name}.${kind.toLowerCase()}`, await maker()),
        },
        kind,
      ),
    );
  return make("div", { class: "save", role: "group", "aria-label": "Save" }, "Save", ...buttons);
}

/** Rows as CSV (RFC 4180). A cell that a spreadsheet would compute gets an apostrophe. */
export function csv(rows) {
  const cell = (value) => {
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : `${value}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** An empty drawing on white, for a file. */
export function sheet(label, { width, height }, properties = {}) {
  const box = { viewBox: `0 0 ${width} ${height}`, width, height };
  return draw(
    "svg",
    { ...box, "font-family": "sans-serif", ...properties },
    draw("title", {}, label),
    draw("rect", { width, height, fill: "#fff" }),
  );
}

/** A drawing as the content of a file. */
export const svgText = (svg) => new XMLSerializer().serializeToString(svg);

/** A heat map as a drawing, on white in the colors of the light theme. */
export function tableSvg({ label, rows, columns, values, scale, padding }) {
  const longest = (labels) => Math.max(...labels.map((text) => [...text].length), 1) * 8 + 12;
  const [left, top] = [longest(rows), longest(columns) * 0.8 + 34];
  const width = left + columns.length * CELL + longest(columns) * 0.6;
  const height = top + rows.length * CELL + 12;
  const svg = sheet(label, { width, height }, { "font-size": 13 });
  svg.append(draw("text", { x: 8, y: 18, fill: INK, "font-weight": 600 }, label));
  const colors = colorTable(scale.isSigned, "light");
  const colorAt = (index) => `rgb(${colors.subarray(index * 4, index * 4 + 3).join(" ")})`;
  rows.forEach((row, y) => {
    const place = { x: left - 6, y: top + y * CELL + 15, "text-anchor": "end", fill: INK };
    svg.append(draw("text", place, readPiece(row)));
    columns.forEach((_, x) => {
      const value = values[y * columns.length + x];
      const fill = Number.isFinite(value) ? colorAt(scale.indexOf(value)) : "#ddd";
      const box = { x: left + x * CELL, y: top + y * CELL, width: CELL, height: CELL, fill };
      svg.append(draw("rect", box));
      if (!padding?.rows.includes(y) && !padding?.columns.includes(x)) return;
      const [right, bottom] = [box.x + CELL, box.y + CELL];
      const d = `M${box.x} ${box.y}L${right} ${bottom}`;
      svg.append(draw("rect", { ...box, fill: "#eee", "fill-opacity": 0.7 }));
      svg.append(draw("path", { d, stroke: "#8b9095" }));
    });
  });
  columns.forEach((column, x) => {
    const [middle, end] = [left + x * CELL + 15, top - 6];
    const transform = `translate(${middle} ${end}) rotate(-50)`;
    svg.append(draw("text", { transform, fill: INK }, readPiece(column)));
  });
  return svgText(svg);
}

/** A drawing as a picture. */
async function pngOf(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = make("canvas", { width: image.width * PIXELS, height: image.height * PIXELS });
  const context = canvas.getContext("2d");
  context.scale(PIXELS, PIXELS);
  context.drawImage(image, 0, 0);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function download(name, blob) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
