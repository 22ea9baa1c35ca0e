// Tokens on the page. The one under the mouse or the focus is marked wherever it is shown.

import { make } from "./element.js";
import { looked } from "./looked.js";
import { PADDING, directionOf, readPiece } from "./pieces.js";

export { readPiece };

/** The nodes of a piece: a thin mark in the place of each blank, then its text. */
export function pieceNodes(piece) {
  return piece
    .split(/(▁)/)
    .filter(Boolean)
    .map((part) => (part === "▁" ? make("i", { class: "blank", "aria-hidden": "true" }) : part));
}

/**
 * @param {string[]} tokens
 * @param {"src"|"tgt"} side
 * @param {object} [options]
 * @param {(index: number) => void} [options.onPick] makes the tokens buttons
 * @param {object[]} [options.words] of `wordsOf`, if the tokens are words and not pieces
 * @returns {HTMLElement} with `tint(shares)`, which colors each token by a share from 0 to 1, and
 *   `choose(index)`, which shows the one that was picked
 */
export function tokenRow(tokens, side, { onPick, words } = {}) {
  const elements = tokens.map((token, index) =>
    make(
      onPick ? "button" : "span",
      {
        ...(onPick ? { type: "button", onclick: () => onPick(index) } : {}),
        class: token === PADDING ? "token padding" : "token",
        dir: "auto",
        title: onPick ? null : readPiece(token),
        onmouseenter: () => point(pointedAt(side, index, words)),
        onmouseleave: () => point(null),
        onfocus: () => point(pointedAt(side, index, words)),
      },
      ...pieceNodes(token),
    ),
  );
  const row = make("div", { class: "tokens", dir: directionOf(tokens) }, ...elements);
  row.tint = (shares) => tint(elements, shares);
  row.choose = (chosen) =>
    elements.forEach((element, index) => element.setAttribute("aria-pressed", index === chosen));
  let marked = null;
  onPointed(row, (pointed) => {
    marked?.classList.remove("pointed");
    marked = elements[placeOf(pointed, side, words)];
    marked?.classList.add("pointed");
  });
  return row;
}

/** Color elements by shares from 0 to 1, in steps of a hundredth; only those that change. */
export function tint(elements, shares) {
  elements.forEach((element, index) => {
    const share = Math.min(1, shares?.[index] ?? 0).toFixed(2);
    if (element.share === share) return;
    element.share = share;
    element.style.setProperty("--share", share);
  });
}

/** Mark a token everywhere: {side, index} or null. */
export function point(pointed) {
  const { pointed: before } = looked;
  if (before?.side === pointed?.side && before?.index === pointed?.index) return;
  looked.set({ pointed });
}

/** What `point` takes for the token at this place of a row, which may be of words. */
export const pointedAt = (side, place, words) => ({
  side,
  index: words ? words[place].first : place,
});

/** The place of the pointed token in a row of this side, which may be of words; −1 = not there. */
export function placeOf(pointed, side, words) {
  if (pointed?.side !== side) return -1;
  const { index } = pointed;
  return words ? words.findIndex(({ first, end }) => first <= index && index < end) : index;
}

/** Call `listener` with the pointed token now, and later while `element` is on the page. */
export function onPointed(element, listener) {
  element.pointedListener = listener; // lives as long as the element
  marked.add(new WeakRef(element));
  listener(looked.pointed);
}

const marked = new Set();

looked.on(["pointed"], ({ pointed }) => {
  for (const reference of marked) {
    const element = reference.deref();
    if (!element) marked.delete(reference);
    else if (element.isConnected) element.pointedListener(pointed);
  }
});
