// What follows from changes of the model: the new translation beside the old one, and the
// probabilities of the old one's tokens before and after.

import { nats, percent } from "./causes-data.js";
import { bar, make } from "./element.js";
import { pictureOf } from "./picture.js";
import { saveButtons } from "./save.js";
import { pieceNodes } from "./tokens.js";
import { differences } from "./words.js";

const NOTABLE = 0.01; // a probability that changes by less is as it was

/** The nodes of an answer of `edit`. */
export function resultOf(found, language, nChanges) {
  const isSame = found.translation === found.new_translation;
  const [gone, added] = [
    [found.new_translation, found.translation, "del"],
    [found.translation, found.new_translation, "ins"],
  ].map(([from, to, tag]) =>
    differences(from, to, language).map(({ text, isChanged }) =>
      isChanged ? make(tag, {}, text) : text,
    ),
  );
  const lost = found.before.reduce((sum, before, index) => sum + before - found.after[index], 0);
  const shown = [
    make("h2", {}, "The translation"),
    make("p", { class: "said", dir: "auto" }, ...gone),
    make("h2", {}, nChanges ? "With the changes" : "Nothing is changed yet"),
    make("p", { class: "said new", dir: "auto", hidden: !nChanges }, ...added),
    make("p", { class: "hint" }, summary(nChanges, isSame, lost)),
    make("div", { class: "scroll" }, tokenTable(found, nChanges)),
  ];
  const files = {
    svg: () => pictureOf("What follows from the changes", ...shown),
    table: () => rowsOf(found),
    json: () => found,
  };
  return [...shown, saveButtons("changes", files)];
}

/** The table as rows of a file: natural logarithms, as the model gives them. */
const rowsOf = ({ tokens, before, after, likeliest }) => [
  ["token", "log_prob_before", "log_prob_after", "likeliest_after"],
  ...tokens.map((token, index) => [token, before[index], after[index], likeliest[index]]),
];

function summary(nChanges, isSame, lost) {
  if (!nChanges) return "Press parts of the model, or source tokens, to see what follows.";
  const factor = Math.exp(Math.abs(lost));
  const times = factor < 1000 ? `${factor.toPrecision(2)} times` : "over a thousand times";
  const amount =
    Math.abs(lost) < 0.005
      ? "The old translation is as likely as before."
      : `The old translation becomes ${times} ${lost > 0 ? "less" : "more"} likely (${nats(-lost)} nats).`;
  return `${isSame ? "It stays the same. " : ""}${amount}`;
}

function tokenTable({ tokens, before, after, likeliest, likeliest_log_probs: best }, nChanges) {
  const rows = tokens.map((token, index) => {
    const [old, now] = [Math.exp(before[index]), Math.exp(after[index])];
    const isOther = likeliest[index] !== token;
    const change = Math.abs(now - old) < NOTABLE ? "" : now < old ? "is-less" : "is-more";
    const other = isOther
      ? [make("bdi", {}, ...pieceNodes(likeliest[index])), ` ${percent(Math.exp(best[index]))}`]
      : [];
    return make(
      "tr",
      { class: change },
      make("th", { scope: "row", dir: "auto" }, ...pieceNodes(token)),
      make("td", { class: "number" }, bar(old), percent(old)),
      nChanges ? make("td", { class: "number after" }, bar(now), percent(now)) : null,
      nChanges ? make("td", { class: "other" }, ...other) : null,
    );
  });
  const heads = ["Token", "Before", ...(nChanges ? ["After", "Now likelier"] : [])];
  return make(
    "table",
    { class: "probabilities" },
    make("caption", { class: "unseen" }, "Probability of each token of the old translation"),
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...rows),
  );
}
