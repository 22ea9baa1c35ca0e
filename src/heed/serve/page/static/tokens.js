// A row of tokens. The token under the mouse or the focus is marked in every row of the page.

import { make } from "./element.js";
import { looked } from "./looked.js";

/** A piece as it is shown: a thin mark in the place of the blank before it. */
export function readPiece(piece) {
  return piece.replaceAll("▁", "\u2423");
}

/**
 * @param {string[]} tokens
 * @param {"src"|"tgt"} side
 * @param {(index: number) => void} [onPick] makes the tokens buttons
 * @returns {HTMLElement}
 */
export function tokenRow(tokens, side, onPick) {
  const elements = tokens.map((token, index) =>
    make(
      onPick ? "button" : "span",
      {
        ...(onPick ? { type: "button", onclick: () => onPick(index) } : {}),
        class: "token",
        dir: "auto",
        onmouseenter: () => point({ side, index }),
        onmouseleave: () => point(null),
        onfocus: () => point({ side, index }),
      },
      readPiece(token),
    ),
  );
  const row = make("div", { class: "tokens", dir: "auto" }, ...elements);
  row.mark = ({ pointed }) =>
    elements.forEach((element, index) => {
      const isPointed = pointed?.side === side && pointed.index === index;
      element.classList.toggle("pointed", isPointed);
    });
  marked.add(new WeakRef(row));
  return row;
}

/** Mark a token in every row: {side, index} or null. */
export function point(pointed) {
  looked.set({ pointed });
}

const marked = new Set();

looked.on(["pointed"], (state) => {
  for (const reference of marked) {
    const row = reference.deref();
    if (row) row.mark(state);
    else marked.delete(reference);
  }
});
