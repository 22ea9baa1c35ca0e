// Files of the decoding screen: its tree and its bars as drawings, its numbers as tables.

import { draw } from "./element.js";
import { sheet, svgText } from "./save.js";

const KEPT = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "font-size",
  "font-weight",
  "font-style",
];
const ROW = 22;
const LEFT = 140;
const LONGEST = 320; // of a bar

/** The tree as it is shown, with its colors inside. */
export function treeFile(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map((one) => [one, ...one.querySelectorAll("*")]);
  from.forEach((element, index) => {
    const style = getComputedStyle(element);
    for (const name of KEPT) to[index].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "role", "tabindex", "aria-label", "aria-pressed"])
      to[index].removeAttribute(name);
  });
  copy.setAttribute("font-family", "sans-serif");
  const paper = getComputedStyle(svg.parentElement).backgroundColor;
  copy.prepend(draw("rect", { width: "100%", height: "100%", fill: paper }));
  return svgText(copy);
}

/** Every candidate of every step as rows. */
export function candidatesTable(answer) {
  const heads = [
    "step",
    "parent",
    "id",
    "piece",
    "log_prob",
    "total",
    "score",
    "fate",
    "reason",
    "slot",
  ];
  const rows = answer.steps.flatMap(({ number, candidates }) =>
    candidates.map((one) => [number, ...heads.slice(1).map((name) => one[name] ?? "")]),
  );
  return [heads, ...rows];
}

/** The bars, on white: by the model above, after the filters below. */
export function barsFile(title, shown) {
  const [width, height] = [LEFT + LONGEST + 190, 44 + shown.length * ROW];
  const svg = sheet(title, { width, height }, { "font-size": 13 });
  svg.append(draw("text", { x: 8, y: 20, "font-weight": 600 }, title));
  const most = Math.max(...shown.flatMap(({ base, final }) => [base, final]));
  shown.forEach(({ piece, base, final, removed }, index) => {
    const y = 34 + index * ROW;
    const text = (words, x) =>
      draw("text", { x, y: y + 13, fill: removed ? "#585e66" : "#1b1e21" }, words);
    svg.append(
      text(piece, 8),
      draw("rect", {
        x: LEFT,
        y: y + 2,
        height: 6,
        width: (base / most) * LONGEST,
        fill: "#8b9095",
      }),
      draw("rect", {
        x: LEFT,
        y: y + 10,
        height: 6,
        width: (final / most) * LONGEST,
        fill: "#0c6b66",
      }),
      text(`${base.toFixed(4)}`, LEFT + LONGEST + 16),
      text(removed || final.toFixed(4), LEFT + LONGEST + 90),
    );
  });
  return svgText(svg);
}

/** The bars as rows; a guide makes other probabilities than those of the model. */
export const barsTable = (shown, { match }) => [
  ["id", "piece", match ? "p_guided" : "p_model", "p_filtered", "removed_by"],
  ...shown.map(({ id, piece, base, final, removed }) => [id, piece, base, final, removed]),
];
