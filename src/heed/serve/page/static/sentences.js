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

/** Tint `elements` (one for each word; null for what is no word) by their weights. */
export function tint(elements, weights) {
  elements.forEach((element, index) => {
    if (!element) return;
    const weight = weights?.[index] ?? 0;
    element.classList.toggle("tinted", weight > FAINT);
    element.style.setProperty("--weight", Math.min(1, weight).toFixed(2));
  });
}
