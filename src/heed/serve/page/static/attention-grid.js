// All heads of one use at a glance: a small map for each, to choose from.

import { USES, allWeights, axesOf, hiddenColumns } from "./attention-data.js";
import { cut, entropies, pooled, withoutColumns } from "./attention-maps.js";
import { highOf, paint, redrawWithTheme, scaleOf } from "./colors.js";
import { make } from "./element.js";
import { pictureOf } from "./picture.js";
import { saveButtons } from "./save.js";

const SIDE = 96; // cells of a small map
const ORDERS = { layer: "by layer", sharp: "sharpest first", flat: "flattest first" };
const BITS = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/**
 * @param {object} chosen as in `mapOf`, with `order`
 * @param {object} events onHead(layer, head, isMore), onOrder(order)
 * @returns {Promise<HTMLElement>} with `mark(chosen)`, which shows the chosen heads
 */
export async function headGrid(chosen, { onHead, onOrder }) {
  const { use, order } = chosen;
  const layers = await allWeights(use);
  const { rows, columns } = axesOf(use);
  const hidden = hiddenColumns(columns.tokens, chosen.hidden);
  const heads = layers.flatMap(({ heads: maps, n }, layer) =>
    maps.map((map, head) => {
      const kept = hidden.size ? withoutColumns(map, n, hidden).kept : map;
      const text = cut(kept, n, rows.padding, columns.padding);
      const bits = entropies(text.values, text.n);
      const small = chosen.isPadded ? { values: blank(kept, n, rows, columns), n } : text;
      return {
        layer,
        head,
        ...small,
        entropy: bits.reduce((sum, one) => sum + one, 0) / bits.length,
      };
    }),
  );
  if (order !== "layer") {
    heads.sort((a, b) => (order === "sharp" ? a.entropy - b.entropy : b.entropy - a.entropy));
  }
  const high = highOf(...heads.map(({ values }) => values));
  const buttons = heads.map((one) => thumbnail(one, use, high, onHead));
  const select = make("select", {
    "aria-label": "Order of the heads",
    onchange: () => onOrder(select.value),
  });
  select.append(...Object.entries(ORDERS).map(([value, text]) => make("option", { value }, text)));
  select.value = order;
  const grid = make(
    "div",
    { class: "thumbs", role: "group", "aria-label": `Heads of ${USES[use].title}` },
    ...buttons,
  );
  const byLayer = order === "layer";
  grid.classList.toggle("by-layer", byLayer);
  grid.style.setProperty("--heads", layers[0].heads.length);
  const element = make(
    "div",
    { class: "overview" },
    make("div", { class: "title" }, make("h2", {}, "Layers × heads"), select),
    grid,
    make(
      "p",
      { class: "hint" },
      "The number is the mean entropy of a row, in bits. Shift-click adds a head.",
    ),
    saveButtons(`heads-${use}`, {
      svg: () => pictureOf(`Heads of ${USES[use].title}`, grid),
      table: () => [
        ["layer", "head", "entropy in bits"],
        ...heads.map(({ layer, head, entropy }) => [layer, head, entropy]),
      ],
    }),
  );
  element.mark = ({ heads: marked, mix }) => {
    heads.forEach(({ layer, head }, index) => {
      const isOne = !mix && marked.some((one) => one.layer === layer && one.head === head);
      buttons[index].setAttribute("aria-pressed", isOne);
    });
  };
  grid.addEventListener("keydown", (event) => {
    const width = byLayer
      ? layers[0].heads.length
      : Math.max(1, Math.round(grid.clientWidth / buttons[0].offsetWidth));
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width };
    const next = buttons[buttons.indexOf(document.activeElement) + steps[event.key]];
    if (!next) return;
    next.focus();
    event.preventDefault();
  });
  return element;
}

/** A map whose cells of padding have no number, and so no color. */
function blank(values, n, rows, columns) {
  if (!rows.padding.size && !columns.padding.size) return values;
  return values.map((value, place) =>
    rows.padding.has(Math.floor(place / n)) || columns.padding.has(place % n) ? NaN : value,
  );
}

function thumbnail({ layer, head, n, values, entropy }, use, high, onHead) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  const small = pooled(values, n, SIDE);
  const button = make(
    "button",
    {
      type: "button",
      class: "thumb",
      "aria-pressed": "false",
      "aria-label": `Layer ${layer}, head ${head}, ${BITS.format(entropy)} bits`,
      title: `${USES[use].title}, layer ${layer}, head ${head}`,
      onclick: (event) => onHead(layer, head, event.shiftKey || event.ctrlKey || event.metaKey),
    },
    canvas,
    make("span", {}, make("b", {}, `${layer}.${head}`), make("span", {}, BITS.format(entropy))),
  );
  button.redraw = () => paint(canvas, small.values, small.n, scaleOf(small.values, 0, high));
  button.redraw();
  redrawWithTheme(button);
  return button;
}
