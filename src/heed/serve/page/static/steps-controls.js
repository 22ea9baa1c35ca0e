// Buttons, a depth and a slider that move through the steps. They stay while steps change, so that
// the slider can be dragged.

import { make } from "./element.js";

/**
 * @param {Object<string, [string, RegExp]>} depths by name: a title, and which nodes are steps
 * @param {object} events go(by), play(), onDepth(name), onStep(node)
 * @returns {HTMLElement} with `show({all, at, depth, isPlaying})`
 */
export function stepControls(depths, { go, play, onDepth, onStep }) {
  let all = [];
  const button = (key, words, act) =>
    make("button", { type: "button", class: "button", dataset: { key }, onclick: act }, words);
  const [back, toggle, next] = [
    button("back", "◀ Back", () => go(-1)),
    button("play", "▶ Play", play),
    button("next", "Next ▶", () => go(1)),
  ];
  const choice = make("select", {
    dataset: { key: "depth" },
    onchange: () => onDepth(choice.value),
  });
  choice.append(
    ...Object.entries(depths).map(([value, [title]]) => make("option", { value }, title)),
  );
  const slider = make("input", {
    type: "range",
    min: "0",
    dataset: { key: "slider" },
    "aria-label": "Step",
    oninput: () => onStep(all[Number(slider.value)]),
  });
  const count = make("span", { class: "count" });
  const element = make(
    "div",
    { class: "controls step-controls" },
    back,
    toggle,
    next,
    make("label", { class: "depth" }, make("span", {}, "Depth"), choice),
    slider,
    count,
  );
  element.show = ({ all: steps, at, depth, isPlaying }) => {
    all = steps;
    slider.max = all.length - 1;
    slider.value = Math.max(0, at);
    choice.value = depth;
    toggle.textContent = isPlaying ? "Pause" : "▶ Play";
    back.disabled = at === 0;
    next.disabled = at === all.length - 1;
    count.textContent = at < 0 ? "" : `${at + 1} of ${all.length}`;
  };
  return element;
}

/** A slider for the table of keys and values of the decoder, which grows by a row at each step. */
export function growthSlider(onStep) {
  const words = make("span", {});
  const slider = make("input", {
    type: "range",
    min: "0",
    dataset: { key: "growth" },
    "aria-label": "Step of decoding",
    oninput: () => onStep(slider.value),
  });
  const element = make("label", { class: "growth" }, words, slider);
  element.show = (upTo, last, token) => {
    slider.max = last;
    slider.value = upTo;
    words.textContent = `The table at step ${upTo + 1}, which reads “${token}”: ${upTo + 1} rows`;
  };
  return element;
}
