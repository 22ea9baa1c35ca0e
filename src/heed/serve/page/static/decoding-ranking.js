// The hypotheses that ended, ranked, each with the formula of its score.

import { make } from "./element.js";
import { FORBIDDEN, fixed, percent, plural } from "./decoding-words.js";
import { readPiece } from "./tokens.js";

/**
 * @param {object} answer of POST /api/v1/search
 * @param {(id: {step: number, place: number}) => void} onPick
 * @returns {HTMLElement[]}
 */
export function ranking(answer, onPick) {
  const items = answer.finished.map((one) => {
    const title = `Show where it ended: step ${one.step + 1}`;
    return make(
      "li",
      { class: one.is_answer ? "answer" : null },
      make(
        "button",
        { type: "button", title, onclick: () => onPick({ step: one.step, place: one.candidate }) },
        make("span", { class: "sentence", dir: "auto" }, one.text || "(empty)"),
        make("span", { class: "number" }, fixed(one.score, 4)),
      ),
      make("p", { class: "formula", dir: "ltr" }, one.formula),
      make(
        "p",
        { class: "hint" },
        `${plural(one.length, "token")}, probability ${percent(Math.exp(one.log_prob))}` +
          `${one.status === "eos" ? "" : "; cut at the length limit, so behind every complete one"}`,
      ),
    );
  });
  return items;
}

/** The same as rows. */
export const rankingTable = ({ finished }) => [
  ["text", "score", "log_prob", "tokens", "formula", "status"],
  ...finished.map((one) => [
    one.text,
    one.score,
    one.log_prob,
    one.length,
    one.formula,
    one.status,
  ]),
];

/** What the step did, in one or two sentences. */
export function story(answer, number) {
  const step = answer.steps[number];
  const by = (fate) => step.candidates.filter((one) => one.fate === fate);
  const listed = (all) => all.map(({ piece }) => `“${readPiece(piece)}”`).join(", ");
  if (answer.strategy === "sample") {
    const { uniform, n_allowed: k } = step.draw;
    const [one] = step.candidates.filter(({ fate }) => fate !== "pruned");
    return `${plural(k, "token")} could be drawn here. The number ${uniform.toFixed(4)} fell on ${listed([one])}.`;
  }
  const [kept, ended, cut] = ["kept", "ended", "cut"].map(by);
  const parts = [];
  if (answer.strategy === "greedy") {
    parts.push(`The likeliest token is taken: ${listed([...kept, ...ended, ...cut])}.`);
  } else {
    const tried = step.candidates.filter(({ reason }) => !FORBIDDEN.includes(reason));
    const hypotheses = plural(step.rows.length, "hypothesis").replace("hypothesiss", "hypotheses");
    parts.push(
      `${hypotheses} expanded; the best ${tried.length} continuations are ranked by their sums.`,
    );
    if (kept.length)
      parts.push(`${kept.length === 1 ? "One stays" : `${kept.length} stay`}: ${listed(kept)}.`);
    if (ended.length)
      parts.push(
        `${ended.length === 1 ? "One ends" : `${ended.length} end`} with ${listed(ended.slice(0, 1))}.`,
      );
    if (cut.length)
      parts.push(`${cut.length} ${cut.length === 1 ? "is" : "are"} cut at the length limit.`);
  }
  if (number === answer.steps.length - 1)
    parts.push(`Then the search is over: ${answer.stop.sentence}.`);
  return parts.join(" ");
}
