// Words and numbers of the decoding screen.

/** Why a candidate was pruned: [in a node, in a sentence]. */
export const REASONS = {
  beam: ["rank > k", "ranked below the beam"],
  late_eos: ["rank > k", "ends a sentence, but ranked below the beam"],
  ngram: ["n-gram", "would repeat an n-gram"],
  prefix: ["forced", "another token is forced here"],
  min_length: ["too early", "the sentence may not end yet"],
  forbidden: ["not allowed", "is never written"],
  stopped: ["stopped", "the search stopped before it ended"],
  not_drawn: ["not drawn", "was not drawn"],
  temperature: ["p = 0", "its probability rounds to 0 at this temperature"],
  top_k: ["top-k", "is not among the top k"],
  top_p: ["top-p", "is outside the nucleus"],
  min_p: ["min-p", "is below min-p"],
  constraints: ["not allowed", "is not allowed here"],
};

/** Reasons that are constraints: no rank would have helped. */
export const FORBIDDEN = ["ngram", "prefix", "min_length", "forbidden"];

export const FATES = {
  kept: "kept",
  ended: "ended",
  cut: "cut at the length limit",
  pruned: "pruned",
};

/** With a true minus sign. */
export const fixed = (value, digits = 3) =>
  value === null || value === undefined ? "−∞" : value.toFixed(digits).replace("-", "−");

export function percent(share) {
  if (share === 0) return "0 %";
  if (share < 0.0001) return "< 0.01 %";
  return `${(share * 100).toFixed(share < 0.0995 ? 2 : 1)} %`;
}

/** Where the probabilities before the filters are from. */
export const byWhom = ({ match }) => (match ? "with the memory" : "by the model");

export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** What became of a candidate, as a sentence without its subject. */
export function fateOf(candidate, finished) {
  if (candidate.fate === "pruned") return `pruned: ${REASONS[candidate.reason][1]}`;
  if (finished) return `${FATES[candidate.fate]}, rank ${finished.rank}`;
  return FATES[candidate.fate];
}
