// The hard alignment of source and target: a line for each link, and Pharaoh's format.

import { JOINS, linksOf } from "./attention-maps.js";
import { copy, draw, fill, make } from "./element.js";
import { sheet, svgText } from "./save.js";
import { tokenRow } from "./tokens.js";

const GAP = 96; // between the rows

/**
 * @param {object} map of `mapOf`, of cross-attention, without special pieces
 * @param {string} join one of `JOINS`
 * @param {(join: string) => void} onJoin
 * @returns {HTMLElement} with `links` and `svg(label)`
 */
export function linkView({ values, n, rows, columns }, join, onJoin) {
  const links = linksOf(values, n, join);
  const source = tokenRow(columns.labels, "src", { words: columns.words });
  const target = tokenRow(rows.labels, "tgt", { words: rows.words });
  const svg = draw("svg", { class: "links", height: GAP, "aria-hidden": "true" });
  const stage = make("div", { class: "stage" }, source, svg, target);
  const pharaoh = links.map(([from, to]) => `${from}-${to}`).join(" ");
  const button = make("button", {
    type: "button",
    class: "icon",
    "aria-label": "Copy the links",
    title: "Copy",
  });
  button.addEventListener("click", () => copy(pharaoh, button));
  fill(button, "copy");
  const select = make("select", {
    "aria-label": "Which links",
    onchange: () => onJoin(select.value),
  });
  select.append(...Object.entries(JOINS).map(([value, text]) => make("option", { value }, text)));
  select.value = join;
  const element = make(
    "div",
    { class: "alignment" },
    make(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Alignment" },
      stage,
    ),
    make(
      "div",
      { class: "pharaoh" },
      make("label", {}, "Strongest for ", select),
      make("code", { class: "links-text" }, pharaoh),
      button,
    ),
  );
  const place = () => {
    const box = stage.getBoundingClientRect();
    svg.replaceChildren(
      ...links.map(([from, to]) => {
        const [top, bottom] = [source.children[from], target.children[to]].map((token) => {
          const { left, width } = token.getBoundingClientRect();
          return left + width / 2 - box.left;
        });
        const weight = values[to * n + from];
        return draw("path", {
          d: `M${top} 0C${top} ${GAP / 2} ${bottom} ${GAP / 2} ${bottom} ${GAP}`,
          class: "link",
          "stroke-opacity": (0.35 + 0.65 * Math.min(1, weight)).toFixed(3),
          "data-source": from,
          "data-target": to,
        });
      }),
    );
  };
  new ResizeObserver(place).observe(stage);
  const mark = ({ side, index } = {}) => {
    for (const path of svg.children) {
      const isAway =
        index !== undefined && Number(path.dataset[side === "src" ? "source" : "target"]) !== index;
      path.classList.toggle("away", isAway);
    }
  };
  for (const [row, side] of [
    [source, "src"],
    [target, "tgt"],
  ]) {
    [...row.children].forEach((token, index) => {
      token.addEventListener("mouseenter", () => mark({ side, index }));
      token.addEventListener("mouseleave", () => mark());
    });
  }
  element.links = pharaoh;
  element.svg = (label) => drawing(label, links, columns.labels, rows.labels);
  return element;
}

function drawing(label, links, source, target) {
  const width = (text) => [...text].length * 9.5 + 16;
  const places = (labels) => {
    let end = 12;
    return labels.map((text) => {
      const middle = end + width(text) / 2;
      end += width(text) + 6;
      return { text, middle, end };
    });
  };
  const [above, below] = [places(source), places(target)];
  const size = {
    width: Math.max(above.at(-1)?.end ?? 0, below.at(-1)?.end ?? 0) + 12,
    height: GAP + 100,
  };
  const inks = { "font-size": 15, fill: "#1b1e21", "text-anchor": "middle" };
  const svg = sheet(label, size, inks);
  for (const [from, to] of links) {
    const [x, y] = [above[from].middle, below[to].middle];
    const d = `M${x} 52C${x} ${52 + GAP / 2} ${y} ${52 + GAP / 2} ${y} ${52 + GAP}`;
    svg.append(draw("path", { d, fill: "none", stroke: "#0c6b66", "stroke-width": 2 }));
  }
  for (const { text, middle } of above) svg.append(draw("text", { x: middle, y: 42 }, text));
  for (const { text, middle } of below) svg.append(draw("text", { x: middle, y: GAP + 72 }, text));
  return svgText(svg);
}
