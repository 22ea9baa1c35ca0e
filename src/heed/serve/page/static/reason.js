// The small box beside a doubtful word: why it is doubtful.

import { byId, make } from "./element.js";

const box = byId("reason");
const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumSignificantDigits: 2 });

export const percent = (share) => PERCENT.format(share);

/**
 * @param {Element} word beside which it stands
 * @param {string|undefined} doubt a sentence; without one the box stays away
 * @param {number|null} probability of the word
 */
export function showReason(word, doubt, probability) {
  if (!doubt) return hideReason();
  const number =
    probability === null || doubt.includes("%")
      ? null
      : make("span", { class: "number" }, `Probability ${percent(probability)}`);
  box.replaceChildren(make("span", {}, doubt), ...(number ? [number] : []));
  box.hidden = false;
  putBelow(box, word);
}

export function hideReason() {
  box.hidden = true;
}

const GAP = 6;
const MARGIN = 8;

/** Put a box below an element, inside the window's width; above it where there is no room below. */
export function putBelow(element, anchor) {
  const at = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = element;
  const room = document.documentElement.clientWidth - width - MARGIN;
  const left = Math.max(MARGIN, Math.min(at.left, room));
  const isAbove = at.bottom + GAP + height > innerHeight && at.top > height + GAP;
  const top = isAbove ? at.top - GAP - height : at.bottom + GAP;
  element.style.left = `${left + scrollX}px`;
  element.style.top = `${top + scrollY}px`;
}
