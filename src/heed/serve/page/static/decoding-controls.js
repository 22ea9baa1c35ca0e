// Sliders, choices and buttons of the decoding screen. Each changes parameters of the address.

import { make } from "./element.js";
import { setParams } from "./route.js";
import { guideNodes } from "./textbar.js";

const off = (value) => (value === 0 ? "off" : `${value}`);
const digits = (count) => (value) => value.toFixed(count);

/** Parameter → label, range, option of the record it shows, and how its number reads. */
const SLIDERS = {
  beam: { label: "Beam k", min: 1, max: 10, step: 1, option: "beam_size", read: String },
  alpha: {
    label: "Length penalty α",
    min: 0,
    max: 2,
    step: 0.1,
    option: "length_penalty",
    read: digits(1),
  },
  ngram: {
    label: "No n-gram twice",
    min: 0,
    max: 5,
    step: 1,
    option: "no_repeat_ngram_size",
    read: off,
  },
  temperature: {
    label: "Temperature",
    min: 0.1,
    max: 2,
    step: 0.05,
    option: "temperature",
    read: digits(2),
  },
  topk: { label: "Top-k", min: 0, max: 100, step: 1, option: "top_k", read: off },
  topp: { label: "Top-p", min: 0, max: 1, step: 0.01, option: "top_p", read: digits(2) },
  minp: { label: "Min-p", min: 0, max: 0.5, step: 0.01, option: "min_p", read: digits(2) },
};

export const STRATEGIES = { greedy: "Greedy", beam: "Beam search", sample: "Sample" };

const CHOICES = {
  formula: {
    label: "Length formula",
    option: "length_formula",
    choices: { gnmt: "((5 + n) / 6)^α", power: "n^α", none: "none" },
  },
  stop: {
    label: "Stop",
    option: "early_stopping",
    choices: { first: "when k have ended", bound: "when none can win", never: "at the limit" },
  },
};

/** A slider that changes one parameter: {element, show(value)}. */
export function slider(name) {
  const { label, min, max, step, read } = SLIDERS[name];
  const number = make("span", { class: "number", "aria-hidden": "true" });
  const input = make("input", {
    type: "range",
    min,
    max,
    step,
    "aria-label": label,
    oninput: () => {
      show(Number(input.value));
      setParams({ [name]: input.value });
    },
  });
  const element = make(
    "label",
    { class: "slider", dataset: { name } },
    make("span", { class: "name" }, label, number),
    input,
  );
  /** @param {number|string|undefined} value undefined = the model's own, not known yet */
  function show(value) {
    const words = value === undefined ? "default" : read(Number(value));
    const place = Number(value ?? min);
    input.max = Math.max(max, place); // a model's own value may be larger
    input.value = place;
    number.textContent = words;
    input.setAttribute("aria-valuetext", words);
    const share = (place - min) / (input.max - min);
    input.style.setProperty("--share", share);
  }
  return { element, show, option: SLIDERS[name].option };
}

/** A list of choices that changes one parameter: {element, show(value)}. */
export function choice(name) {
  const { label, choices, option } = CHOICES[name];
  const select = make("select", { onchange: () => setParams({ [name]: select.value }) });
  select.append(...Object.entries(choices).map(([value, text]) => make("option", { value }, text)));
  const element = make("label", { class: "pick" }, make("span", {}, label), select);
  return { element, option, show: (value) => (select.value = value) };
}

/** Greedy, beam or sample, as a row of radio buttons. */
export function strategies() {
  const inputs = {};
  const labels = Object.entries(STRATEGIES).map(([value, text]) => {
    inputs[value] = make("input", {
      type: "radio",
      name: "strategy",
      value,
      onchange: () => setParams({ strategy: value, step: null, node: null }),
    });
    return make("label", {}, inputs[value], make("span", {}, text));
  });
  const element = make(
    "fieldset",
    { class: "segmented" },
    make("legend", { class: "unseen" }, "Strategy"),
    ...labels,
  );
  return { element, show: (value) => (inputs[value].checked = true) };
}

/** The pair that guides the search, and a switch: {element, show(match, isOff)}. */
export function memorySwitch() {
  const guide = make("span", { class: "hint" });
  const input = make("input", {
    type: "checkbox",
    onchange: () => setParams({ memory: input.checked ? null : "off" }),
  });
  const label = make("label", { class: "check" }, input, "Follow the memory");
  const element = make("div", { class: "row", hidden: true }, guide, label);
  function show(match, isOff) {
    element.hidden = !match && !isOff;
    input.checked = !isOff;
    const alone = isOff ? ["All probabilities are those of the model alone."] : [];
    guide.replaceChildren(...(match ? guideNodes(match) : alone));
  }
  return { element, show };
}

/** Buttons and a slider that move through the steps: {element, show(step, count)}. */
export function scrubber() {
  const to = (step) => setParams({ step: step + 1, node: null });
  const back = make("button", { type: "button", class: "button", "aria-label": "Step back" }, "‹");
  const on = make("button", { type: "button", class: "button", "aria-label": "Step on" }, "›");
  const input = make("input", { type: "range", min: 1, step: 1, "aria-label": "Step" });
  const words = make("span", { class: "number", "aria-hidden": "true" });
  let at = 0;
  back.addEventListener("click", () => to(at - 1));
  on.addEventListener("click", () => to(at + 1));
  input.addEventListener("input", () => to(Number(input.value) - 1));
  function show(step, count) {
    at = step;
    input.max = count;
    input.value = step + 1;
    input.style.setProperty("--share", count > 1 ? step / (count - 1) : 1);
    words.textContent = `Step ${step + 1} of ${count}`;
    input.setAttribute("aria-valuetext", words.textContent);
    back.disabled = step === 0;
    on.disabled = step === count - 1;
  }
  return { element: make("div", { class: "scrubber" }, back, input, on, words), show };
}
