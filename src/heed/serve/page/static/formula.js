// Formulas of nodes, such as `S = Q Kᵀ / √d_k`, as MathML.

import { math } from "./element.js";

const NAMES = new Set([
  "softmax",
  "log",
  "max",
  "cos",
  "tanh",
  "mean",
  "GELU",
  "Swish",
  "LayerNorm",
  "Concat",
  "Sublayer",
]);
const TOKEN = /(?:(?!ᵀ)\p{L})(?:(?!ᵀ)[\p{L}\p{M}\d])*|\d+|\S/gu;

/** @returns {Element} a `math` element; text that is no formula becomes words in it */
export function mathOf(formula) {
  const tokens = formula.match(TOKEN) ?? [];
  const row = math("mrow");
  let place = 0;

  const peek = () => tokens[place];
  const next = () => tokens[place++];

  function atom() {
    const token = next();
    if (token === "√") return math("msqrt", withScripts(atom()));
    if (token === "{") return group("}");
    if (token === "(" && tokens[place - 2] === "√") return group(")");
    if (/^\d+$/.test(token)) return math("mn", token);
    if (/^(?!ᵀ)\p{L}/u.test(token)) return word(token);
    return math("mo", token);
  }

  function group(end) {
    const inner = math("mrow");
    while (peek() !== undefined && peek() !== end) inner.append(withScripts(atom()));
    next();
    return inner;
  }

  function withScripts(base) {
    let below = null;
    let above = null;
    while (["_", "^", "ᵀ"].includes(peek())) {
      const mark = next();
      if (mark === "_") below = atom();
      else above = mark === "ᵀ" ? math("mo", "⊤") : atom();
    }
    if (below && above) return math("msubsup", base, below, above);
    if (below) return math("msub", base, below);
    return above ? math("msup", base, above) : base;
  }

  while (place < tokens.length) row.append(withScripts(atom()));
  const whole = math("math", row);
  whole.setAttribute("aria-label", formula);
  return whole;
}

function word(token) {
  const isProse = token.length > 1 && /^\p{Ll}+$/u.test(token) && !NAMES.has(token);
  return isProse ? math("mtext", `\u00a0${token}\u00a0`) : math("mi", token);
}
