// The words of each sentence in both texts and their alignment, computed when first wanted.

import { isAligned } from "./answer.js";
import { session } from "./session.js";
import { alignWords, splitWords } from "./words.js";

const known = new WeakMap();

/** @returns {{words, sourceWords, weights}} ranges within the sentence; weights or null */
export function readSentence(segment) {
  if (!known.has(segment)) {
    const words = splitWords(segment.text, session.to);
    const sourceWords = splitWords(segment.source, session.answer.source);
    const weights = isAligned(segment) ? alignWords(words, sourceWords, segment) : null;
    known.set(segment, { words, sourceWords, weights });
  }
  return known.get(segment);
}

const FAINT = 0.08; // weaker links are noise

/** A function that tints elements (one a word; null for no word) by weights, and the last no more. */
export function makeTint() {
  let tinted = [];
  return (elements, weights) => {
    for (const element of tinted) element.classList.remove("tinted");
    tinted = elements.filter((element, index) => element && weights?.[index] > FAINT);
    for (const element of tinted) {
      const weight = Math.min(1, weights[elements.indexOf(element)]);
      element.style.setProperty("--weight", weight.toFixed(2));
      element.classList.add("tinted");
    }
  };
}
