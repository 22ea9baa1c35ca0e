// Parts of the model as buttons, colored by what the translation loses without them; what is
// pressed is switched off or scaled, and the result stands below.

import * as api from "./api.js";
import { attentionChange } from "./causes-attention.js";
import { ask, failed, kindTitle, nats, partsOf, stackTitle, tint, titleOf } from "./causes-data.js";
import { patchForm } from "./causes-patch.js";
import { resultOf } from "./causes-result.js";
import { announce, make } from "./element.js";
import { looked } from "./looked.js";
import { pictureOf } from "./picture.js";
import { saveButtons } from "./save.js";
import { pieceNodes, readPiece } from "./tokens.js";

const N_FEATURES = 12;
const DELAY = 120; // ms after the last change

const isSame = (change, other) =>
  Object.entries(other).every(([name, value]) => change[name] === value);

/** Each part with the nats that each token loses without it. */
const rowsOf = ({ heads, sublayers, layers, features }) => [
  ...heads.flatMap(({ name, lost }) => lost.map((row, head) => [`${name} head ${head}`, ...row])),
  ...[...sublayers, ...layers].map(({ name, lost }) => [name, ...lost]),
  ...features.map(({ name, feature, lost }) => [`${name} feature ${feature}`, ...lost]),
];

/** @returns {HTMLElement} with `show({trace, token})` */
export function partsView() {
  const chosen = new Map(); // key → change
  let trace = null;
  let token = -1;
  let asked = new AbortController();
  let timer = 0;

  const slider = make("input", {
    type: "range",
    min: "0",
    max: "2",
    step: "0.1",
    value: "0",
    "aria-label": "Scale of what is pressed",
    oninput: () => {
      drawScale();
      send();
    },
  });
  const scale = make("output", { class: "number" });
  const clear = make(
    "button",
    { type: "button", class: "button", onclick: () => reset() },
    "As it was",
  );
  const grids = make("div", { class: "stacks" });
  const sources = make("div", { class: "tokens", role: "group", "aria-label": "Source tokens" });
  const features = make("div", { class: "tokens", role: "group", "aria-label": "Features" });
  const patch = patchForm(
    (key, change) => {
      chosen.set(key, change);
      send();
    },
    (key) => {
      chosen.delete(key);
      send();
    },
  );
  const attention = attentionChange();
  const save = make("div", {});
  const headings = [
    make("h2", {}, "Source tokens: a pressed one is hidden from all attention"),
    make("h2", {}, "The strongest feed-forward features"),
  ];
  const result = make("div", { class: "card result", role: "region", "aria-label": "Result" });
  const message = make("p", { class: "hint", role: "status" });
  const entry = (kind, words) =>
    make("span", {}, make("i", { class: `swatch${kind}`, "aria-hidden": "true" }), words);
  const legend = make(
    "p",
    { class: "hint key" },
    entry("", "the translation loses probability without it"),
    entry(" is-negative", "it gains"),
  );
  const element = make(
    "div",
    { class: "causes-parts" },
    make(
      "section",
      { class: "card parts", "aria-label": "Parts of the model" },
      make(
        "div",
        { class: "controls" },
        make("label", { class: "scale" }, make("span", {}, "Scale"), slider, scale),
        clear,
      ),
      message,
      grids,
      legend,
      headings[0],
      sources,
      headings[1],
      features,
      save,
      patch.element,
    ),
    result,
  );

  function drawScale() {
    const value = Number(slider.value);
    const words = value === 0 ? "off" : value === 1 ? "as it is" : `× ${value}`;
    scale.textContent = words;
    slider.setAttribute("aria-valuetext", words);
  }

  function reset() {
    chosen.clear();
    patch.clear();
    for (const button of element.querySelectorAll(".part"))
      button.setAttribute("aria-pressed", "false");
    send();
  }

  /** Whether what follows can be computed: a page that is a file holds it for some parts. */
  const isComputed = (change) =>
    !trace.switched || trace.switched.some((one) => isSame(one, { ...change, scale: 0 }));

  /** A button of a part. */
  function part(change, words, label, lost) {
    const key = JSON.stringify(change);
    const button = make(
      "button",
      {
        type: "button",
        class: "part",
        disabled: !isComputed(change),
        "aria-pressed": String(chosen.has(key)),
        "aria-label": lost === undefined ? label : `${label}: ${nats(-lost)} nats without it`,
        title: lost === undefined ? label : `${label}: ${nats(-lost)} nats without it`,
        onclick: () => {
          if (!chosen.delete(key)) chosen.set(key, change);
          button.setAttribute("aria-pressed", String(chosen.has(key)));
          send();
        },
      },
      ...words,
    );
    return button;
  }

  const lostOf = (lost) => (token < 0 ? lost.reduce((sum, one) => sum + one, 0) : lost[token]);

  async function drawParts() {
    message.textContent = "Switching off every part in turn …";
    let found;
    try {
      found = await ask(`importance?features=${N_FEATURES}`);
    } catch (error) {
      message.textContent = failed(error);
      return;
    }
    if (looked.trace !== trace) return;
    message.textContent =
      token < 0
        ? "Press a part to switch it off. Colors: what the whole translation loses without it."
        : "Press a part to switch it off. Colors: what the chosen token loses without it.";
    const heads = Object.fromEntries(found.heads.map(({ name, lost }) => [name, lost.map(lostOf)]));
    const whole = Object.fromEntries(found.sublayers.map(({ name, lost }) => [name, lostOf(lost)]));
    const layers = found.layers.map(({ name, lost }) => [name, lostOf(lost)]);
    const all = [
      ...Object.values(heads).flat(),
      ...Object.values(whole),
      ...layers.map(([, lost]) => lost),
    ];
    const most = Math.max(...all.map(Math.abs), 0.05);
    const focused = document.activeElement?.getAttribute("aria-label");
    const stacks = [...new Set(Object.keys(whole).map((name) => partsOf(name).stack))];
    grids.replaceChildren(
      ...stacks.map((stack) => stackTable(stack, { heads, whole, layers, most })),
    );
    drawFeatures(found.features);
    save.replaceChildren(saveButtons("parts", filesOf(found)));
    if (focused) element.querySelector(`.part[aria-label="${CSS.escape(focused)}"]`)?.focus();
  }

  function filesOf(found) {
    const { expected_tokens: expected } = trace;
    const about = token < 0 ? "the translation" : readPiece(expected[token]);
    const title = `What ${about} loses without each part`;
    const drawing = [grids, legend, headings[0], sources, headings[1], features];
    return {
      svg: () => pictureOf(title, ...drawing),
      table: () => [["part", ...expected], ...rowsOf(found)],
      json: () => found,
    };
  }

  function stackTable(stack, { heads, whole, layers, most }) {
    const names = Object.keys(whole).filter((name) => partsOf(name).stack === stack);
    const kinds = [...new Set(names.map((name) => partsOf(name).kind))];
    const numbers = [...new Set(names.map((name) => partsOf(name).layer))];
    const colored = (change, words, label, lost) => {
      const button = part(change, words, label, lost);
      tint(button, lost, most);
      return button;
    };
    const cell = (name) => {
      if (!(name in whole)) return make("td", {});
      const title = titleOf(name);
      const all = colored({ kind: "sublayer", name }, ["all"], title, whole[name]);
      const each = (heads[name] ?? []).map((lost, head) =>
        colored(
          { kind: "head", attention: name, head },
          [String(head)],
          `${title}, head ${head}`,
          lost,
        ),
      );
      return make("td", {}, make("div", { class: "row" }, all, ...each));
    };
    const lostByLayer = Object.fromEntries(layers);
    const rows = numbers.map((number) => {
      // A part that is no stack of layers, such as the bridge of a recurrent model.
      if (isNaN(number)) return make("tr", {}, make("th", {}), cell(stack));
      const name = `${stack}.${number}`;
      const button = colored(
        { kind: "layer", name },
        [String(number)],
        `Layer ${titleOf(name)}`,
        lostByLayer[name] ?? 0,
      );
      const cells = kinds.map((kind) => cell(`${name}.${kind}`));
      return make("tr", {}, make("th", { scope: "row" }, button), ...cells);
    });
    return make(
      "table",
      { class: "stack" },
      make("caption", {}, stackTitle(stack)),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("th", { scope: "col" }, numbers.some(isNaN) ? "" : "Layer"),
          ...kinds.map((kind) => make("th", { scope: "col" }, kindTitle(kind))),
        ),
      ),
      make("tbody", {}, ...rows),
    );
  }

  function drawFeatures(found) {
    const lost = found.map((one) => lostOf(one.lost));
    const most = Math.max(...lost.map(Math.abs), 0.05);
    features.replaceChildren(
      ...found.map(({ name, feature }, index) => {
        const { stack, layer } = partsOf(name);
        const words = `${stackTitle(stack)} ${layer} · ${feature}`;
        const button = part(
          { kind: "feature", feed_forward: name, feature },
          [words],
          `${titleOf(name)}, feature ${feature}`,
          lost[index],
        );
        tint(button, lost[index], most);
        return button;
      }),
    );
  }

  function drawSources() {
    sources.replaceChildren(
      ...trace.source_tokens.map((piece, position) => {
        const label = `Source token ${position}, ${readPiece(piece)}`;
        const button = part({ kind: "position", position }, pieceNodes(piece), label);
        button.setAttribute("dir", "auto");
        return button;
      }),
    );
  }

  function send() {
    clearTimeout(timer);
    timer = setTimeout(update, DELAY);
  }

  async function update() {
    asked.abort();
    asked = new AbortController();
    const factor = Number(slider.value);
    const changes = [...chosen.values()].map((change) =>
      change.kind === "patch" ? change : { ...change, scale: factor },
    );
    clear.disabled = !changes.length;
    result.setAttribute("aria-busy", "true");
    try {
      const found = await api.post(`trace/${trace.id}/edit`, { changes }, asked.signal);
      result.replaceChildren(...resultOf(found, looked.to, changes.length), attention);
      attention.show(trace, changes);
      if (changes.length) announce(`With the changes: ${found.new_translation}`, 400);
    } catch (error) {
      if (error.name === "AbortError") return;
      result.replaceChildren(make("p", { class: "error", role: "alert" }, failed(error)));
    }
    result.removeAttribute("aria-busy");
  }

  element.show = (state) => {
    const isNew = state.trace !== trace;
    ({ trace, token } = state);
    if (isNew) {
      chosen.clear();
      patch.begin(trace);
      grids.replaceChildren();
      features.replaceChildren();
      slider.disabled = Boolean(trace.switched);
      patch.element.hidden ||= slider.disabled;
      drawSources();
      update();
    }
    drawParts();
  };
  drawScale();
  return element;
}
