// Neighbors of a piece, and arithmetic with three pieces, by cosine.

import * as api from "./api.js";
import { bar, make } from "./element.js";
import { pictureOf } from "./picture.js";
import { readPiece } from "./pieces.js";
import { saveButtons } from "./save.js";

const COSINE = new Intl.NumberFormat("en", { minimumFractionDigits: 3, maximumFractionDigits: 3 });
const EXAMPLES = [
  ["king", "man", "woman"],
  ["Männer", "Mann", "Frau"],
  ["men", "man", "woman"],
  ["running", "run", "walk"],
];

/**
 * @param {string} model
 * @param {string} piece
 * @param {string} side
 * @returns {Promise<{list: object[], draw: Function}>}
 */
export async function neighbors(model, piece, side) {
  const query = new URLSearchParams({
    model,
    piece,
    k: 15,
    ...(side === "target" ? { side } : {}),
  });
  try {
    const { neighbors: list } = await api.get(`embeddings/neighbors?${query}`);
    return { list, draw: (of, onPick, title) => drawn(piece, list, of, onPick, title) };
  } catch (error) {
    return {
      list: [],
      draw: () => [make("p", { class: "message", role: "status" }, error.message)],
    };
  }
}

function drawn(piece, list, side, onPick, title) {
  const items = list.map((one) =>
    make("li", {}, ...row(one.piece, one.cosine, () => onPick(one.piece, side))),
  );
  const ranked = make("ol", { class: "ranking" }, ...items);
  return [
    make("h3", {}, "Neighbors of ", make("bdi", { class: "piece" }, readPiece(piece))),
    make("p", { class: "hint" }, title ? `${title} · cosine` : "Cosine of the angle"),
    ranked,
    saveButtons("neighbors", {
      svg: () => pictureOf(`Neighbors of ${readPiece(piece)}, by cosine`, ranked),
      table: () => [["piece", "cosine"], ...list.map((one) => [one.piece, one.cosine])],
      json: () => ({ piece, neighbors: list }),
    }),
  ];
}

function row(piece, cosine, onPick) {
  const button = make(
    "button",
    { type: "button", class: "link", onclick: onPick },
    make("bdi", {}, readPiece(piece)),
  );
  return [button, bar(cosine), make("span", { class: "number" }, COSINE.format(cosine))];
}

/** The box for king − man + woman. */
export function arithmetic(data, indices, onPick) {
  const side = data.sides.length > 1 ? sidePicker(data.sides) : null;
  const sideOf = () => side?.value ?? data.sides[0].side;
  const inputs = ["start", "minus", "plus"].map((name) =>
    make("input", {
      type: "text",
      dir: "auto",
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": {
        start: "The word to start at",
        minus: "The word to take away",
        plus: "The word to add",
      }[name],
    }),
  );
  const [first, second, third] = inputs;
  const found = make("div", { class: "found", "aria-live": "polite" });
  const knows = (word) => [`▁${word}`, word].some((piece) => indices.get(sideOf())?.has(piece));
  const fitting = EXAMPLES.filter((words) => words.every(knows));
  (fitting[0] ?? EXAMPLES[0]).forEach((word, index) => {
    inputs[index].placeholder = word;
  });
  const form = make(
    "form",
    { class: "sum" },
    first,
    make("span", { "aria-hidden": "true" }, "−"),
    second,
    make("span", { "aria-hidden": "true" }, "+"),
    third,
    side,
    make("button", { type: "submit", class: "button" }, "Compute"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const [word, minus, plus] = inputs.map((input) => input.value.trim() || input.placeholder);
    const asked = { model: data.model, word, minus, plus, k: 10 };
    if (sideOf() === "target") asked.side = "target";
    try {
      const answer = await api.get(`embeddings/analogy?${new URLSearchParams(asked)}`);
      found.replaceChildren(...ranking(answer, (piece) => onPick(piece, sideOf())));
    } catch (error) {
      found.replaceChildren(make("p", { class: "message" }, error.message));
    }
  });
  return make(
    "section",
    { class: "card inset", "aria-label": "Arithmetic with pieces" },
    make(
      "header",
      { class: "part-head" },
      make("h2", {}, "Arithmetic with pieces"),
      make(
        "p",
        { class: "hint" },
        "The pieces nearest to a − b + c. The three words of the query cannot be the answer; the " +
          "table shows where they would stand. Often one of them would be first.",
      ),
    ),
    form,
    found,
  );
}

function ranking({ query, ranking: list }, onPick) {
  let place = 0;
  const rows = list.map((one) => {
    if (!one.is_query) place += 1;
    const note = one.is_query ? "a word of the query: left out" : "";
    return make(
      "tr",
      { class: one.is_query ? "left-out" : null },
      make("td", { class: "number" }, one.is_query ? "–" : place),
      make(
        "th",
        { scope: "row" },
        make(
          "button",
          { type: "button", class: "link", onclick: () => onPick(one.piece) },
          make("bdi", {}, readPiece(one.piece)),
        ),
      ),
      make("td", {}, bar(one.cosine)),
      make("td", { class: "number" }, COSINE.format(one.cosine)),
      make("td", { class: "hint" }, note),
    );
  });
  const [word, minus, plus] = query.map(readPiece);
  const head = ["Rank", "Piece", "", "Cosine", ""].map((name) =>
    name ? make("th", { scope: "col" }, name) : make("td"),
  );
  const caption = make("caption", {});
  caption.append(
    make("bdi", {}, word),
    " − ",
    make("bdi", {}, minus),
    " + ",
    make("bdi", {}, plus),
  );
  const ranks = make(
    "table",
    { class: "ranks" },
    caption,
    make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows),
  );
  return [
    ranks,
    saveButtons("arithmetic", {
      svg: () => pictureOf(`The pieces nearest to ${word} − ${minus} + ${plus}`, ranks),
      table: () => [
        ["piece", "cosine", "left out"],
        ...list.map((one) => [one.piece, one.cosine, one.is_query ? "a word of the query" : ""]),
      ],
      json: () => ({ query, ranking: list }),
    }),
  ];
}

function sidePicker(sides) {
  const select = make("select", { "aria-label": "Side" });
  select.append(...sides.map(({ side }) => make("option", { value: side }, side)));
  return select;
}
