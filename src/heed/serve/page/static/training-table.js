// The numbers of a chart as a table, for screen readers and for those who want the number, and the
// chart as a file.

import { draw, make } from "./element.js";
import { svgText } from "./save.js";

const MAX_ROWS = 200;
const STYLES = [
  ...["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "display"],
  ...["font-family", "font-size", "text-anchor"],
];
const TOP = 30; // for the title
const ROW = 18; // for the name of a line

/** The head and the rows of a chart's table, as numbers; undefined where a line has none. */
export function rowsOf(data) {
  const lines = data.lines.filter((line) => line.points.length && line.kind !== "faint");
  const rows = new Map(); // x → values by line
  for (const [place, line] of lines.entries()) {
    for (const [x, y] of line.points) {
      if (!rows.has(x)) rows.set(x, []);
      rows.get(x)[place] = y;
    }
  }
  const all = [...rows].sort(([a], [b]) => a - b);
  const names = lines.map(({ name }) => name || "value");
  return [
    [data.x.name, ...names],
    ...all.map(([x, values]) => [x, ...lines.map((_, place) => values[place])]),
  ];
}

/** @param {string} title @param {object} data as a chart has it */
export function numbersTable(title, data) {
  const [head, ...all] = rowsOf(data);
  const every = Math.ceil(all.length / MAX_ROWS);
  const shown = all.filter((_, index) => (all.length - 1 - index) % every === 0);
  const caption = every > 1 ? `${title}, one of ${every} rows; the file has all` : title;
  const table = make(
    "table",
    {},
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
    make(
      "tbody",
      {},
      ...shown.map(([x, ...values]) =>
        make(
          "tr",
          {},
          make("th", { scope: "row" }, data.x.format(x)),
          ...values.map((y) => make("td", {}, y === undefined ? "" : data.y.format(y))),
        ),
      ),
    ),
  );
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
    table,
  );
}

/** A chart as the content of a file that needs no styles of the page; below it, its lines. */
export function standalone(title, svg, { lines }) {
  const copy = svg.cloneNode(true);
  const copies = copy.querySelectorAll("*");
  svg.querySelectorAll("*").forEach((element, place) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) copies[place].setAttribute(name, style.getPropertyValue(name));
  });
  const [width, above] = ["width", "height"].map((name) => Number(svg.getAttribute(name)));
  const { backgroundColor, color, fontFamily } = getComputedStyle(svg.closest("figure"));
  const names = legend(svg, lines);
  const height = TOP + above + names.length * ROW + (names.length && ROW / 2);
  names.forEach((text, row) => {
    text.setAttribute("x", 12);
    text.setAttribute("y", TOP + above + (row + 0.75) * ROW);
  });
  const font = { "font-family": fontFamily, "font-size": 13 };
  return svgText(
    draw(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        width,
        height,
        ...font,
      },
      draw("rect", { width, height, fill: backgroundColor }),
      draw("text", { x: 12, y: 22, fill: color, "font-size": 16, "font-weight": 600 }, title),
      draw("g", { transform: `translate(0 ${TOP})` }, ...copy.childNodes),
      ...names,
    ),
  );
}

/** The names of a chart's lines, each in the color of its line. */
function legend(svg, lines) {
  const drawn = [...svg.querySelectorAll(".line")];
  return lines.flatMap(({ name, kind }, place) => {
    const shape = drawn[place].querySelector(".curve, circle");
    if (kind === "faint" || !name || !shape) return [];
    const { fill, stroke } = getComputedStyle(shape);
    const sign = kind === "points" ? "●" : "―";
    return [draw("text", { fill: stroke === "none" ? fill : stroke }, `${sign} ${name}`)];
  });
}
