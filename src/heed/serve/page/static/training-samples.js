// Sample translations, checkpoint by checkpoint, with what changed since the one before.

import { announce, make } from "./element.js";
import { pictureOf } from "./picture.js";
import { saveButtons } from "./save.js";

const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const WORDS = { same: "span", new: "ins", gone: "del" };

/** A table with a slider over the validations. */
export function makeSamples() {
  const slider = make("input", { type: "range", min: "0", step: "1", "aria-label": "Validation" });
  const label = make("output", { class: "number" });
  const body = make("tbody");
  const changes = make("input", { type: "checkbox", checked: true });
  const legend = make(
    "p",
    { class: "hint" },
    make("ins", {}, "new"),
    " and ",
    make("del", {}, "gone"),
    " since the validation before.",
  );
  const table = make(
    "table",
    { class: "sentences" },
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        ...["Text", "Reference", "Translation", "chrF"].map((name) =>
          make("th", { scope: "col" }, name),
        ),
      ),
    ),
    body,
  );
  const save = saveButtons("samples", {
    svg: () => pictureOf(`Sample translations, ${nameOf(samples.sets[place])}`, table),
    table: () => asRows(samples),
    json: () => samples,
  });
  const element = make(
    "section",
    { class: "part samples", "aria-labelledby": "samples-title", hidden: true },
    make(
      "header",
      {},
      make("h2", { id: "samples-title" }, "Sample translations"),
      make("label", { class: "check" }, changes, "Mark changes"),
      save,
    ),
    make("div", { class: "scrub" }, slider, label),
    legend,
    make(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Sentences" },
      table,
    ),
  );
  let samples = null;
  let place = 0;
  let isLatest = true; // it goes along as the run goes on

  function draw() {
    const set = samples?.sets[place];
    element.hidden = !set;
    if (!set) return;
    slider.max = samples.sets.length - 1;
    slider.value = place;
    slider.disabled = samples.sets.length < 2;
    const text = nameOf(set);
    slider.setAttribute("aria-valuetext", text);
    label.textContent = text;
    legend.hidden = !changes.checked || !place;
    body.replaceChildren(
      ...samples.sentences.map((sentence, index) => rowOf(sentence, set.translations[index])),
    );
  }

  function rowOf({ src, ref }, found) {
    const marked = changes.checked && place > 0;
    const pieces = found?.changes ?? [];
    const shown = marked
      ? pieces.map(([change, text]) => make(WORDS[change], {}, text))
      : [found?.hyp ?? ""];
    return make(
      "tr",
      {},
      make("th", { scope: "row", dir: "auto", "data-name": "Text" }, src),
      make("td", { dir: "auto", "data-name": "Reference" }, ref),
      make("td", { dir: "auto", class: "hyp", "data-name": "Translation" }, ...shown),
      make("td", { class: "number", "data-name": "chrF" }, scoreOf(found)),
    );
  }

  function scoreOf(found) {
    if (found?.chrf === null || found?.chrf === undefined) return "";
    const set = samples.sets[place - 1];
    const index = samples.sets[place].translations.indexOf(found);
    const before = set?.translations[index]?.chrf;
    if (before === null || before === undefined) return NUMBER.format(found.chrf);
    const change = found.chrf - before;
    const sign = Math.abs(change) < 0.05 ? "" : change > 0 ? " ▲" : " ▼";
    const words = sign && (change > 0 ? " (better)" : " (worse)");
    const arrow = make("span", { class: change > 0 ? "up" : "down", "aria-hidden": "true" }, sign);
    return make(
      "span",
      {},
      NUMBER.format(found.chrf),
      arrow,
      make("span", { class: "unseen" }, words),
    );
  }

  slider.addEventListener("input", () => {
    place = Number(slider.value);
    isLatest = place === samples.sets.length - 1;
    draw();
    announce(nameOf(samples.sets[place]), 300);
  });
  changes.addEventListener("change", draw);

  return {
    element,
    show(given) {
      samples = given;
      const last = (samples?.sets.length ?? 0) - 1;
      if (isLatest || place > last) place = Math.max(0, last);
      draw();
    },
    /** Another run: begin with its latest. */
    reset() {
      isLatest = true;
    },
  };
}

/** The translations of every validation as rows. */
const asRows = ({ sentences, sets }) => [
  ["step", "text", "reference", "translation", "chrf"],
  ...sets.flatMap(({ step, translations }) =>
    sentences.map(({ src, ref }, index) => {
      const { hyp = "", chrf = "" } = translations[index] ?? {};
      return [step, src, ref, hyp, chrf ?? ""];
    }),
  ),
];

function nameOf({ step, epoch, is_best: isBest }) {
  const parts = [`step ${step.toLocaleString("en")}`];
  if (epoch !== null) parts.push(`epoch ${NUMBER.format(epoch)}`);
  if (isBest) parts.push("best so far");
  return parts.join(" · ");
}
