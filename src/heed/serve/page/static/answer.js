// What the page shows of a translation: the server's answer with its sentences placed in both
// texts. Pure functions: a change makes a new one, so that undo only needs the old one.

/**
 * @param {string} source the text that was translated
 * @param {object} reply of /api/v1/translate
 */
export function readAnswer(source, reply) {
  const [found] = reply.translations;
  return place(source, {
    ...found,
    doubts: found.doubts.map((doubt) => inUnits(doubt, found.text)),
    segments: found.segments.map(readSegment),
    seconds: reply.seconds,
    nTokens: reply.n_tokens,
    isPartial: false,
  });
}

/** The beginning of an answer whose other sentences are still to come. */
export function readPartial(source, segments) {
  let text = "";
  let end = 0;
  for (const segment of segments) {
    const start = Math.max(end, source.indexOf(segment.source, end));
    text += source.slice(end, start) + segment.text;
    end = start + segment.source.length;
  }
  return place(source, { text, segments, alternatives: null, doubts: [], isPartial: true });
}

/** A sentence as the server sends it, its places in this language's units. */
export const readSegment = (segment) => ({
  ...segment,
  tokens: segment.tokens?.map((token) => inUnits(token, segment.text)),
  source_tokens: segment.source_tokens?.map((token) => inUnits(token, segment.source)),
});

const BEYOND = /[\u{10000}-\u{10ffff}]/u;

/** The server counts characters, JavaScript halves of those beyond U+FFFF, such as emoji. */
function inUnits(range, text) {
  if (range.start == null || !BEYOND.test(text)) return range;
  const characters = [...text];
  const units = (count) => characters.slice(0, count).join("").length;
  return { ...range, start: units(range.start), end: units(range.end) };
}

/** Find each sentence in both texts: `start` and `sourceStart`. */
function place(source, answer) {
  let [at, sourceAt] = [0, 0];
  const segments = answer.segments.map((segment) => {
    const start = answer.text.indexOf(segment.text, at);
    const sourceStart = source.indexOf(segment.source, sourceAt);
    if (start >= 0) at = start + segment.text.length;
    if (sourceStart >= 0) sourceAt = sourceStart + segment.source.length;
    return { ...segment, start, sourceStart };
  });
  return {
    ...answer,
    sourceText: source,
    segments: segments.filter(({ start, text }) => start >= 0 && text),
  };
}

/** Whether pieces and weights of a sentence are known. */
export const isAligned = (segment) => Boolean(segment.alignment?.length);

/**
 * The answer with one sentence translated otherwise.
 * @param {object} answer
 * @param {number} index of the sentence
 * @param {object} other the answer for this sentence alone
 */
export function withSentence(answer, index, other) {
  const old = answer.segments[index];
  const end = old.start + old.text.length;
  const shift = other.text.length - old.text.length;
  const moved = (doubt, by) => ({ ...doubt, start: doubt.start + by, end: doubt.end + by });
  const segments = answer.segments.flatMap((segment, i) =>
    i === index ? other.segments : [segment],
  );
  return place(answer.sourceText, {
    ...answer,
    text: answer.text.slice(0, old.start) + other.text + answer.text.slice(end),
    segments,
    doubts: [
      ...answer.doubts.filter((doubt) => doubt.end <= old.start),
      ...other.doubts.filter(hasPlace).map((doubt) => moved(doubt, old.start)),
      ...answer.doubts.filter((doubt) => doubt.start >= end).map((doubt) => moved(doubt, shift)),
    ],
    alternatives: answer.segments.length === 1 ? others(answer, old, other.text) : null,
    seconds: other.seconds,
    nTokens: other.nTokens,
  });
}

/** The alternatives, and what was shown until now, without what is shown now. */
function others(answer, old, text) {
  const all = [{ text: old.text, score: old.score }, ...(answer.alternatives ?? [])];
  return all.filter(
    (one, i) => one.text !== text && all.findIndex((o) => o.text === one.text) === i,
  );
}

/** The answer for a sentence of which only the text is known. */
export function bareAnswer(source, text) {
  return { text, doubts: [], alternatives: null, segments: [{ source, text }] };
}

/** Whether a doubt is about certain words, not about the whole text. */
export const hasPlace = (doubt) => doubt.end > doubt.start;
