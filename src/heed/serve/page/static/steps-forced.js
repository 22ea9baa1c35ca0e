// Teacher forcing: at each position, the piece that should follow and what the model gives it.

import { make } from "./element.js";
import { looked, pieces, tensor } from "./looked.js";
import { pictureOf } from "./picture.js";
import { saveButtons } from "./save.js";
import { readPiece } from "./tokens.js";
import { written } from "./steps-worked.js";

let smoothing = 0;

/**
 * The cross-entropy of each position.
 * @param {ArrayLike<number>} logProbs of all pieces, position by position
 * @param {number[]} targets id that should follow each position
 * @param {number} share of the probability that is spread over the whole vocabulary
 */
export function lossesOf(logProbs, targets, share) {
  const width = logProbs.length / targets.length;
  return targets.map((target, position) => {
    let sum = 0;
    const start = position * width;
    for (let id = 0; id < width; id += 1) sum += logProbs[start + id];
    return -(1 - share) * logProbs[start + target] - (share * sum) / width;
  });
}

export async function forcedTable() {
  const { trace } = looked;
  const [names, found] = await Promise.all([pieces("tgt"), tensor("log_probs")]);
  const text = trace.expected_tokens.slice(0, trace.expected_tokens.length - trace.target_padding);
  const targets = text.map((token) => names.indexOf(token)); // no loss is taken at padding
  const width = found.shape[1];
  const scores = found.data.subarray(0, text.length * width);
  const body = make("tbody");
  const total = make("td", {});
  const slider = make("input", {
    type: "range",
    min: "0",
    max: "0.3",
    step: "0.05",
    "aria-label": "Label smoothing",
    oninput: () => {
      smoothing = Number(slider.value);
      fill();
    },
  });
  slider.value = smoothing;
  const label = make("span");
  const heads = ["Reads", "Should follow", "Probability", "Likeliest", "Loss"];
  const table = make(
    "table",
    {},
    make("caption", { class: "unseen" }, "Cross-entropy of each position, in nats"),
    make(
      "thead",
      {},
      make("tr", {}, ...heads.map((one) => make("th", { scope: "col" }, one))),
    ),
    body,
    make(
      "tfoot",
      {},
      make("tr", {}, make("th", { scope: "row", colspan: "4" }, "Total, nats"), total),
    ),
  );
  const rows = () =>
    [...body.rows].map((row) => [...row.cells].map((cell) => cell.textContent.replace("−", "-")));
  const save = saveButtons("losses", {
    svg: () => pictureOf(`Teacher forcing, label smoothing ${smoothing}`, table),
    table: () => [heads, ...rows()],
  });

  function fill() {
    label.textContent = `Label smoothing ${smoothing.toFixed(2)}`;
    const losses = lossesOf(scores, targets, smoothing);
    body.replaceChildren(
      ...targets.map((target, position) => {
        const start = position * width;
        const row = scores.subarray(start, start + width);
        const best = row.indexOf(row.reduce((a, b) => Math.max(a, b), -Infinity));
        return make(
          "tr",
          {},
          make("td", { dir: "auto" }, readPiece(trace.target_tokens[position])),
          make("td", { dir: "auto" }, readPiece(names[target])),
          make("td", {}, written(Math.exp(row[target]))),
          make("td", { dir: "auto" }, best === target ? "the same" : readPiece(names[best])),
          make("td", {}, written(losses[position])),
        );
      }),
    );
    total.textContent = written(losses.reduce((sum, loss) => sum + loss, 0));
  }

  fill();
  return make(
    "details",
    { class: "forced", open: Boolean(looked.forced) },
    make("summary", {}, "Teacher forcing: the loss of each position"),
    make("label", { class: "growth" }, label, slider),
    table,
    save,
  );
}
