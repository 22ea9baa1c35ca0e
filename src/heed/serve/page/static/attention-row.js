// One position: a slider along the positions, and what this one reads.

import { entropies } from "./attention-maps.js";
import { bar, make } from "./element.js";
import { spell } from "./heatmap.js";
import { looked } from "./looked.js";
import { pieceNodes, tokenRow } from "./tokens.js";

const SHOWN = 6; // of the positions that are read most
const PACE = 700; // milliseconds of a step while playing

/**
 * @param {object} map of `mapOf`
 * @param {string} use
 * @param {(row: number) => void} onRow
 * @returns {HTMLElement} with `light(row)`, null for none, and `stop()`
 */
export function rowView({ values, n, rows, columns, isWeights }, use, onRow) {
  const last = rows.labels.length - 1;
  const slider = make("input", {
    type: "range",
    min: "0",
    max: `${last}`,
    value: "0",
    "aria-label": use === "encoder" ? "Position" : "Step of the decoder",
    oninput: () => go(Number(slider.value)),
  });
  const stepButton = (text, label, step) =>
    make(
      "button",
      {
        type: "button",
        class: "quiet",
        "aria-label": label,
        title: label,
        onclick: () => go(current() + step),
      },
      text,
    );
  const playButton = make(
    "button",
    { type: "button", class: "quiet", "aria-pressed": "false", onclick: () => toggle() },
    "Play",
  );
  const about = make("p", { class: "step", "aria-live": "polite" });
  const read = tokenRow(columns.labels, columns.side, { words: columns.words });
  const top = make("ol", { class: "top-read" });
  const detail = make("div", { class: "detail", hidden: true }, about, read, top);
  const element = make(
    "section",
    { class: "row-view", "aria-label": "One position" },
    make(
      "div",
      { class: "scrubber" },
      stepButton("◀", "One step back", -1),
      slider,
      stepButton("▶", "One step on", 1),
      playButton,
    ),
    detail,
  );
  const bits = isWeights ? entropies(values, n) : null;
  let row = null;
  let timer = null;
  const current = () => row ?? -1;

  function go(next) {
    onRow(Math.max(0, Math.min(last, next)));
  }

  function toggle() {
    if (timer) return element.stop();
    playButton.textContent = "Pause";
    playButton.setAttribute("aria-pressed", "true");
    go(current() >= last ? 0 : current() + 1);
    timer = setInterval(() => (current() >= last ? element.stop() : go(current() + 1)), PACE);
  }

  element.stop = () => {
    clearInterval(timer);
    timer = null;
    playButton.textContent = "Play";
    playButton.setAttribute("aria-pressed", "false");
  };

  element.light = (next) => {
    row = next;
    detail.hidden = row === null;
    if (row === null) return;
    slider.value = row;
    const shares = values.slice(row * n, (row + 1) * n);
    about.replaceChildren(
      ...sentence(rows, row, use),
      bits ? `Entropy ${bits[row].toFixed(2)} bits.` : "",
    );
    read.tint(isWeights ? shares : []);
    const order = [...shares.keys()].sort((one, other) => shares[other] - shares[one]);
    top.replaceChildren(
      ...order
        .slice(0, SHOWN)
        .map((column) =>
          make(
            "li",
            {},
            make("bdi", { class: "piece" }, ...pieceNodes(columns.labels[column])),
            isWeights ? bar(shares[column]) : null,
            make("span", { class: "number" }, spell(shares[column])),
          ),
        ),
    );
  };
  return element;
}

/** What the decoder reads and writes at a step, or which token of the encoder it is. */
function sentence({ labels, side, words, padding }, row, use) {
  const token = (text) => make("bdi", { class: "token" }, ...pieceNodes(text));
  const name = use === "encoder" ? "Position" : "Step";
  const parts = [`${name} ${row}: `, token(labels[row])];
  if (padding.includes(row)) return [...parts, " is padding: computed, and read by nothing. "];
  if (use === "encoder") return [...parts, " reads the source. "];
  const { expected_tokens: expected } = looked.trace;
  const written = side === "tgt" && !words ? expected[row] : null;
  return written
    ? [...parts, " is read, ", token(written), " is written. "]
    : [...parts, " is read. "];
}
