// Pieces of tokens and the words they make: as heed.explain.attention.words does it. Pure functions.

/** What stands behind the shorter sentences of a batch. */
export const PADDING = "<pad>";

const START = "▁";
const SOLID =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\uff00-\uffef\u3000-\u303f]/u;
const SIGNS = /^[\p{P}\p{S}]+$/u;
const LETTER = /[\p{L}\p{N}\p{M}]/u;
const INNER_SIGNS = "'’-.,";

/** Whether a piece is no text: `<eos>`, `<bos>`, the tag of a language. */
export const isSpecial = (piece) =>
  piece.length > 2 && piece.startsWith("<") && piece.endsWith(">") && !piece.startsWith("<0x");

/** Whether a piece has punctuation and no letter or number. */
export const isPunctuation = (piece) => SIGNS.test(piece.replaceAll(START, ""));

const RTL = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/** The direction of a row of tokens: that of the first letter of its text. */
export function directionOf(tokens) {
  const [letter = ""] = /\p{L}/u.exec(tokens.filter((token) => !isSpecial(token)).join("")) ?? [];
  return RTL.test(letter) ? "rtl" : "ltr";
}

/** A piece as plain text, with a mark for the blank before it. */
export const readPiece = (piece) => piece.replaceAll(START, "\u2423");

/**
 * Group pieces into words, each piece into one.
 * @param {string[]} pieces
 * @returns {{text: string, first: number, end: number}[]}
 */
export function wordsOf(pieces) {
  const starts = pieces.map((_, place) => place).filter((place) => begins(pieces, place));
  return starts.map((first, index) => {
    const end = starts[index + 1] ?? pieces.length;
    return { text: pieces.slice(first, end).join("").replaceAll(START, "") || START, first, end };
  });
}

function begins(pieces, place) {
  if (place === 0) return true;
  const piece = pieces[place];
  const before = pieces[place - 1];
  if (isSpecial(piece) || isSpecial(before) || piece.startsWith(START)) return true;
  if (before === START) return false; // a blank belongs to what it stands before
  const last = [...before].at(-1);
  if (SOLID.test([...piece][0]) || SOLID.test(last)) return true;
  if (isPunctuation(piece)) {
    const [next] = [...(pieces[place + 1] ?? START)];
    return !(INNER_SIGNS.includes(piece) && LETTER.test(last) && LETTER.test(next));
  }
  return isPunctuation(before) && begins(pieces, place - 1);
}

/**
 * Weights between words: the sum over pieces that are read, the mean over pieces that read.
 * @param {ArrayLike<number>} values row by row
 * @param {number} nColumns pieces in a row
 * @param {object[]} rows words of the pieces that read
 * @param {object[]} columns words of the pieces that are read
 * @returns {Float32Array}
 */
export function betweenWords(values, nColumns, rows, columns) {
  const found = new Float32Array(rows.length * columns.length);
  rows.forEach((row, i) => {
    columns.forEach((column, j) => {
      let sum = 0;
      for (let y = row.first; y < row.end; y += 1) {
        for (let x = column.first; x < column.end; x += 1) sum += values[y * nColumns + x];
      }
      found[i * columns.length + j] = sum / (row.end - row.first);
    });
  });
  return found;
}

/** The ids of the largest, the largest first, the lower id first among equals. */
export function topIds(values, count) {
  const best = [];
  values.forEach((value, id) => {
    if (best.length === count && value <= values[best[count - 1]]) return;
    let place = best.length;
    while (place > 0 && values[best[place - 1]] < value) place -= 1;
    best.splice(place, 0, id);
    if (best.length > count) best.pop();
  });
  return best;
}
