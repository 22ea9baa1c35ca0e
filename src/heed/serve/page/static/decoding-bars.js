// The next token at one step: a bar for each of the likeliest, before and after the filters.

import { make, refill } from "./element.js";
import { drawn, filtered } from "./decoding-filters.js";
import { distributions, numbersAt, searched, vocabulary } from "./decoding-search.js";
import { REASONS, byWhom, fixed, percent, plural } from "./decoding-words.js";
import { readPiece, topIds } from "./pieces.js";

export const N_BARS = 20;
export const N_DRAWS = 100;

/**
 * @param {(id: number) => void} onForce a token was chosen to be forced here
 * @returns {{element: HTMLElement, show: Function}}
 */
export function barsView(onForce) {
  const list = make("ol", { class: "bars" });
  const by = make("span");
  const heads = make(
    "p",
    { class: "bars-heads", "aria-hidden": "true" },
    make("span", { class: "key" }, make("i", { class: "base" }), by),
    make("span", { class: "key" }, make("i", { class: "final" }), "after the filters"),
    make("span", { class: "key draws" }, make("i", { class: "draws" }), `of ${N_DRAWS} draws`),
    make("span", { class: "key nucleus" }, make("i", { class: "bracket" }), "the nucleus of top-p"),
  );
  const rest = make("p", { class: "hint rest" });
  const facts = make("dl", { class: "facts" });
  let fillTable = () => {};
  const twin = make(
    "details",
    { class: "twin", ontoggle: () => fillTable() },
    make("summary", {}, "As a table"),
    make("div", {
      class: "scroll",
      tabindex: "0",
      role: "group",
      "aria-label": "Table of the likeliest tokens",
    }),
  );
  const element = make("div", { class: "distribution" }, facts, heads, list, rest, twin);
  let wanted = 0;
  let listed = []; // what is shown, for files

  /**
   * @param {number} number of the step
   * @param {number} slot of the hypothesis
   * @param {{temperature, topK, topP, minP}} filters
   * @param {{seed: number, isOn: boolean}} draws
   * @param {Set<number>} taken ids of the tokens with which the search went on
   * @param {Map<number, string>} forbidden which constraint forbids a token, where it is known
   */
  async function show({ number, slot, filters, draws, taken, forbidden }) {
    wanted += 1;
    const mine = wanted;
    let read;
    try {
      read = await Promise.all([
        distributions(number),
        vocabulary(),
        draws.isOn ? numbersAt(number, draws.seed, N_DRAWS) : [],
      ]);
    } catch (error) {
      if (mine !== wanted) return;
      // A page that is a file holds some steps only.
      const said = [make("dt", {}, "No numbers"), make("dd", {}, error.message)];
      facts.replaceChildren(make("div", {}, ...said));
      list.replaceChildren();
      rest.textContent = "";
      return;
    }
    if (mine !== wanted || !searched.answer) return; // the sentence was cleared meanwhile
    const [rows, pieces, numbers] = read;
    const row = rows.find((one) => one.slot === slot) ?? rows[0];
    const found = filtered(row.logProbs, row.scores, filters);
    for (const [id, reason] of forbidden) if (found.removed[id]) found.removed[id] = reason;
    const counts = drawn(found, numbers);
    // Ordered by the model, so that what a filter or a constraint removed stays in its place.
    const shownIds = [...topIds(row.logProbs, N_BARS)];
    const most = Math.max(...shownIds.map((id) => Math.max(found.base[id], found.final[id])));
    const context = { found, counts, pieces, taken, most, draws, hasNucleus: filters.topP < 1 };
    listed = shownIds.map((id) => ({
      id,
      piece: pieces[id],
      base: found.base[id],
      final: found.final[id],
      removed: found.removed[id],
    }));
    by.textContent = byWhom(searched.answer);
    drawRows(shownIds, context);
    list.dataset.step = number;
    element.classList.toggle("has-draws", draws.isOn);
    element.classList.toggle("has-nucleus", filters.topP < 1);
    drawFacts(found, pieces.length, filters);
    drawRest(shownIds, found, counts, draws);
    fillTable = () => twin.open && twin.lastElementChild.replaceChildren(table(shownIds, context));
    fillTable();
  }

  const rows = []; // that are there, to be filled anew

  function drawRows(ids, context) {
    const { found, hasNucleus } = context;
    const isInside = (id) => !found.removed[id] || found.removed[id] === "min_p";
    const first = ids.findIndex(isInside);
    const last = ids.findLastIndex(isInside);
    // A nucleus that goes on below the list has no lower end here.
    const isWhole = ids.filter(isInside).length === found.nNucleus;
    ids.forEach((id, place) => {
      rows[place] ??= barRow(onForce);
      const isIn = hasNucleus && first >= 0 && place >= first && place <= last;
      rows[place].show(id, context, {
        nucleus: isIn,
        first: isIn && place === first,
        last: isIn && place === last && isWhole,
      });
    });
    refill(
      list,
      rows.slice(0, ids.length).map(({ item }) => item),
    );
  }

  function drawFacts(found, size, { topP }) {
    const pairs = [
      [`Entropy ${byWhom(searched.answer)}`, `${fixed(found.baseEntropy, 2)} bits`],
      ["after the filters", `${fixed(found.finalEntropy, 2)} bits`],
      ["Tokens that may be drawn", `${found.nAllowed} of ${size}`],
      ...(topP < 1 ? [[`Nucleus above ${topP.toFixed(2)}`, plural(found.nNucleus, "token")]] : []),
    ];
    facts.replaceChildren(
      ...pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))),
    );
  }

  function drawRest(ids, found, counts, draws) {
    const share = (all) => Math.max(0, 1 - ids.reduce((sum, id) => sum + all[id], 0));
    const n = found.base.length - ids.length;
    const others = draws.isOn
      ? N_DRAWS - ids.reduce((sum, id) => sum + (counts.get(id) ?? 0), 0)
      : 0;
    rest.textContent =
      `The other ${plural(n, "token")}: ${percent(share(found.base))} ${byWhom(searched.answer)}, ` +
      `${percent(share(found.final))} after the filters` +
      `${draws.isOn ? `, ${others} of ${N_DRAWS} draws` : ""}.`;
  }

  return { element, show, listed: () => listed };
}

/** A bar with its numbers: {item, show(id, context, places)}, which changes what differs only. */
function barRow(onForce) {
  let id = null;
  const piece = make("span", { class: "piece", dir: "auto" });
  const tracks = ["base", "final"].map((name) => make("span", { class: `track ${name}` }));
  const figures = ["base", "final"].map((name) => make("span", { class: name }));
  const button = make(
    "button",
    { type: "button", class: "force", onclick: () => onForce(id) },
    piece,
    make("span", { class: "tracks", "aria-hidden": "true" }, ...tracks),
    make("span", { class: "figures", "aria-hidden": "true" }, ...figures),
  );
  const dots = make("span", { class: "dots", "aria-hidden": "true" });
  const number = make("span");
  const draws = make("span", { class: "drawn" }, dots, number);
  const item = make("li", { class: "bar-row" }, button);

  function show(next, context, { nucleus, first, last }) {
    id = next;
    const { found, counts, pieces, taken, most } = context;
    const [base, final] = [found.base[id], found.final[id]];
    const why = found.removed[id];
    const isFixed = searched.answer.control_ids.includes(id);
    const count = counts.get(id) ?? 0;
    const text = readPiece(pieces[id]);
    put(piece, text);
    put(figures[0], percent(base));
    put(figures[1], why ? REASONS[why][0] : percent(final));
    share(tracks[0], base / most);
    share(tracks[1], final / most);
    button.disabled = isFixed;
    button.title = isFixed ? "" : `Force ${text} here and search on`;
    button.setAttribute("aria-label", spoken(pieces[id], base, final, why, taken.has(id)));
    const kinds = { cut: why, taken: taken.has(id), nucleus, first, last };
    for (const [name, isSo] of Object.entries(kinds)) item.classList.toggle(name, Boolean(isSo));
    item.dataset.id = id;
    if (!context.draws.isOn) draws.remove();
    else if (!draws.parentNode) item.append(draws);
    draws.title = `${count} of ${N_DRAWS} draws`;
    share(dots, count / N_DRAWS);
    put(number, `${count}`);
  }

  return { item, show };
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function share(element, value) {
  const text = value.toFixed(4);
  if (element.style.getPropertyValue("--share") !== text)
    element.style.setProperty("--share", text);
}

function spoken(piece, base, final, why, isTaken) {
  const after = why ? REASONS[why][1] : `${percent(final)} after the filters`;
  const before = `${percent(base)} ${byWhom(searched.answer)}`;
  return `${readPiece(piece)}: ${before}, ${after}${isTaken ? "; taken" : ""}. Force it`;
}

function table(ids, { found, counts, pieces, draws }) {
  const heads = [
    "Piece",
    `p ${byWhom(searched.answer)}`,
    "p after the filters",
    "Removed by",
    ...(draws.isOn ? ["Draws"] : []),
  ];
  return make(
    "table",
    {},
    make("caption", {}, "The likeliest next tokens"),
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make(
      "tbody",
      {},
      ...ids.map((id) =>
        make(
          "tr",
          {},
          make("th", { scope: "row", dir: "auto" }, readPiece(pieces[id])),
          make("td", {}, found.base[id].toFixed(6)),
          make("td", {}, found.final[id].toFixed(6)),
          make("td", {}, found.removed[id] ? REASONS[found.removed[id]][0] : ""),
          draws.isOn ? make("td", {}, `${counts.get(id) ?? 0}`) : null,
        ),
      ),
    ),
  );
}
