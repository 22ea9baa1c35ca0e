// The numbers of a chart as a table, for screen readers and for those who want the number.

import { make } from "./element.js";

const MAX_ROWS = 200;

/** @param {string} title @param {object} data as a chart has it */
export function numbersTable(title, data) {
  const lines = data.lines.filter((line) => line.points.length && line.kind !== "faint");
  const rows = new Map(); // x → values by line
  for (const [place, line] of lines.entries()) {
    for (const [x, y] of line.points) {
      if (!rows.has(x)) rows.set(x, []);
      rows.get(x)[place] = y;
    }
  }
  const all = [...rows].sort(([a], [b]) => a - b);
  const every = Math.ceil(all.length / MAX_ROWS);
  const shown = all.filter((_, index) => (all.length - 1 - index) % every === 0);
  const head = [data.x.name, ...lines.map(({ name }) => name)];
  const caption = every > 1 ? `${title}, one of ${every} rows; the file has all` : title;
  const table = make(
    "table",
    {},
    make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
    make(
      "tbody",
      {},
      ...shown.map(([x, values]) =>
        make(
          "tr",
          {},
          make("th", { scope: "row" }, data.x.format(x)),
          ...lines.map((_, place) =>
            make("td", {}, values[place] === undefined ? "" : data.y.format(values[place])),
          ),
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
