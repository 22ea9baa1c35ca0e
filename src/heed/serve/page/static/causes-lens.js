// What each layer would say if it were the last: a table of layers and positions.

import { ask, failed, percent, tint, titleOf } from "./causes-data.js";
import { bar, make } from "./element.js";
import { looked } from "./looked.js";
import { pictureOf } from "./picture.js";
import { setParams } from "./route.js";
import { saveButtons } from "./save.js";
import { pieceNodes, readPiece } from "./tokens.js";

const K = 8;
const SIDES = {
  decoder: [
    "Decoder",
    "The likeliest next piece if the layers behind were passed by (logit lens). The last row is the " +
      "model’s own prediction; a frame marks the piece that the translation has.",
  ],
  encoder: [
    "Encoder",
    "The piece whose embedding points most nearly where the layer’s output points, with the " +
      "cosine. A frame marks the token itself.",
  ],
};

/** @returns {HTMLElement} with `show({trace, params})` */
export function lensView() {
  const buttons = Object.entries(SIDES).map(([side, [title]]) =>
    make(
      "button",
      { type: "button", dataset: { side }, onclick: () => setParams({ side }) },
      title,
    ),
  );
  const about = make("p", { class: "hint" });
  const message = make("p", { class: "hint", role: "status" });
  const table = make("div", {
    class: "lens-scroll",
    tabindex: "0",
    role: "region",
    "aria-label": "Layers and positions",
  });
  const detail = make("div", { class: "lens-detail", "aria-live": "polite" });
  const save = make("div", {});
  const element = make(
    "div",
    { class: "card lens" },
    make("div", { class: "choice", role: "group", "aria-label": "Side" }, ...buttons),
    about,
    message,
    table,
    detail,
    save,
  );

  element.show = async ({ trace, params }) => {
    message.textContent = "Computing …";
    let found;
    try {
      found = await ask(`lens?k=${K}`);
    } catch (error) {
      message.textContent = failed(error);
      table.replaceChildren();
      detail.replaceChildren();
      return;
    }
    if (looked.trace !== trace) return;
    message.textContent = "";
    const side = params.side === "encoder" && found.encoder.length ? "encoder" : "decoder";
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.side === side));
      button.hidden = !found[button.dataset.side].length;
    }
    about.textContent = SIDES[side][1];
    const own = side === "decoder" ? trace.expected_tokens : trace.source_tokens;
    const readings = found[side];
    table.replaceChildren(
      lensTable(readings, own, side, (reading, position) => {
        detail.replaceChildren(...detailOf(reading, position, own[position], side));
      }),
    );
    detail.replaceChildren(...detailOf(readings.at(-1), 0, own[0], side));
    save.replaceChildren(
      saveButtons(`lens-${side}`, {
        svg: () => pictureOf(`Layer by layer: ${SIDES[side][0]}`, table),
        table: () => [
          ["layer", ...own],
          ...readings.map(({ layer, pieces }) => [layer, ...pieces.map(([best]) => best)]),
        ],
        json: () => readings,
      }),
    );
  };
  return element;
}

const amount = (side, value) =>
  side === "decoder" ? percent(value) : value.toFixed(2).replace("-", "−");

function lensTable(readings, own, side, onPick) {
  const cells = [];
  const rows = readings.map((reading) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, titleOf(reading.layer)),
      ...reading.pieces.map((pieces, position) => {
        const value = reading.values[position][0];
        const label = `${titleOf(reading.layer)}, ${readPiece(own[position])}: ${readPiece(pieces[0])}, ${amount(side, value)}`;
        const button = make(
          "button",
          {
            type: "button",
            class: `guess${pieces[0] === own[position] ? " is-own" : ""}`,
            "aria-label": label,
            "aria-pressed": "false",
            onclick: () => {
              for (const cell of cells) cell.setAttribute("aria-pressed", String(cell === button));
              onPick(reading, position);
            },
          },
          make("span", { dir: "auto" }, ...pieceNodes(pieces[0])),
          make("small", {}, amount(side, value)),
        );
        tint(button, Math.max(0, value), 1);
        cells.push(button);
        return make("td", {}, button);
      }),
    ),
  );
  const head = own.map((piece) => make("th", { scope: "col", dir: "auto" }, ...pieceNodes(piece)));
  return make(
    "table",
    {},
    make("thead", {}, make("tr", {}, make("td", {}), ...head)),
    make("tbody", {}, ...rows),
  );
}

/** The best pieces of one layer at one position. */
function detailOf({ layer, pieces, values, own }, position, piece, side) {
  const what = side === "decoder" ? "instead of" : "nearest to";
  return [
    make(
      "h2",
      {},
      `${titleOf(layer)}, ${what} `,
      make("bdi", {}, readPiece(piece)),
      ` (${amount(side, own[position])})`,
    ),
    make(
      "ol",
      { class: "guesses" },
      ...pieces[position].map((one, index) =>
        make(
          "li",
          {},
          make("span", { dir: "auto" }, ...pieceNodes(one)),
          bar(values[position][index]),
          make("span", { class: "number" }, amount(side, values[position][index])),
        ),
      ),
    ),
  ];
}
