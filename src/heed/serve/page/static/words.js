// Words and sentences of a text, how words are aligned, and how two texts differ. Pure functions.

/**
 * The words of a text, and what is between them.
 * @param {string} text
 * @param {string} language its code; tells how a script without blanks is cut
 * @returns {{start: number, end: number, isWord: boolean}[]} in order, without gaps
 */
export function splitWords(text, language) {
  return [...segmenter(language).segment(text)].map(({ index, segment, isWordLike }) => ({
    start: index,
    end: index + segment.length,
    isWord: isWordLike,
  }));
}

/** The sentences of a text, without the blanks around them. */
export function splitSentences(text, language) {
  const found = [...segmenter(language, "sentence").segment(text)];
  return found.map(({ segment }) => segment.trim()).filter(Boolean);
}

function segmenter(language, granularity = "word") {
  try {
    return new Intl.Segmenter(language || undefined, { granularity });
  } catch {
    return new Intl.Segmenter(undefined, { granularity }); // a code that is no BCP 47 tag
  }
}

const overlaps = (one, other) => one.start < other.end && other.start < one.end;

const indicesOf = (word, tokens) =>
  tokens.flatMap((token, index) => (overlaps(word, token) ? [index] : []));

/**
 * An alignment of words from one of pieces: the sum over the pieces of a source word, the mean over
 * those of a target word.
 * @param {object[]} targetWords ranges in the target text
 * @param {object[]} sourceWords ranges in the source text
 * @param {{tokens: object[], source_tokens: object[], alignment: number[][]}} segment
 * @returns {number[][]} a row for each target word, a column for each source word
 */
export function alignWords(targetWords, sourceWords, segment) {
  const columns = sourceWords.map((word) => indicesOf(word, segment.source_tokens));
  return targetWords.map((word) => {
    const rows = indicesOf(word, segment.tokens).map((index) => segment.alignment[index]);
    return columns.map((column) => {
      const sum = rows.reduce((all, row) => all + column.reduce((part, i) => part + row[i], 0), 0);
      return rows.length ? sum / rows.length : 0;
    });
  });
}

/** The probability of a word: the product over its pieces; null if it has none. */
export function probabilityOf(word, tokens) {
  const indices = indicesOf(word, tokens);
  if (!indices.length) return null;
  return indices.reduce((product, index) => product * tokens[index].probability, 1);
}

/**
 * What differs in `text` from `base`, word by word (longest common subsequence).
 * @returns {{text: string, isChanged: boolean}[]} the parts of `text`, in order; a changed part
 *   without text stands where words were left out; of very long texts one unchanged part
 */
export function differences(base, text, language) {
  const before = splitWords(base, language).map((word) => base.slice(word.start, word.end));
  const after = splitWords(text, language).map((word) => text.slice(word.start, word.end));
  if (before.length * after.length > MOST_CELLS) return [{ text, isChanged: false }];
  const kept = commonIndices(before, after);
  const isNew = (index) => index >= 0 && index < after.length && !kept.has(index);
  const parts = [];
  const add = (part, isChanged) => {
    const last = parts.at(-1);
    if (last?.isChanged === isChanged) last.text += part;
    else parts.push({ text: part, isChanged });
  };
  let passed = 0; // words of `base`
  let wasNew = false;
  const addGap = (end) => {
    if (!wasNew && before.slice(passed, end).some((word) => word.trim())) add("", true);
    passed = end + 1;
  };
  after.forEach((word, index) => {
    // A blank is marked only between two words that are.
    const isBlank = !word.trim();
    if (kept.has(index)) addGap(kept.get(index));
    add(word, isBlank ? isNew(index - 1) && isNew(index + 1) : isNew(index));
    if (!isBlank) wasNew = isNew(index);
  });
  addGap(before.length);
  return parts;
}

const MOST_CELLS = 4_000_000; // of the table of common words, which takes 16 MB

function commonIndices(before, after) {
  const lengths = Array.from(
    { length: before.length + 1 },
    () => new Uint32Array(after.length + 1),
  );
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      lengths[i][j] =
        before[i] === after[j]
          ? lengths[i + 1][j + 1] + 1
          : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const kept = new Map(); // places in `after` → in `before`
  let [i, j] = [0, 0];
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      kept.set(j, i);
      i++;
      j++;
    } else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return kept;
}

/** The first word of `text` from `start`, with the signs before it: what a choice puts there. */
export function wordAt(text, start, language) {
  let end = start;
  for (const part of splitWords(text.slice(start), language)) {
    end = start + part.end;
    if (part.isWord) break;
  }
  return text.slice(start, end).trim();
}
