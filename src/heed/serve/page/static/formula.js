// Formulas of nodes, such as `S = Q Kᵀ / √d_k`, as MathML.

const MATH = "http://www.w3.org/1998/Math/MathML";
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
  const row = element("mrow");
  let place = 0;

  const peek = () => tokens[place];
  const next = () => tokens[place++];

  function atom() {
    const token = next();
    if (token === "√") return element("msqrt", withScripts(atom()));
    if (token === "{") return group("}");
    if (token === "(" && tokens[place - 2] === "√") return group(")");
    if (/^\d+$/.test(token)) return element("mn", token);
    if (/^(?!ᵀ)\p{L}/u.test(token)) return word(token);
    return element("mo", token);
  }

  function group(end) {
    const inner = element("mrow");
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
      else above = mark === "ᵀ" ? element("mo", "⊤") : atom();
    }
    if (below && above) return element("msubsup", base, below, above);
    if (below) return element("msub", base, below);
    return above ? element("msup", base, above) : base;
  }

  while (place < tokens.length) row.append(withScripts(atom()));
  const math = element("math", row);
  math.setAttribute("aria-label", formula);
  return math;
}

function word(token) {
  const isProse = token.length > 1 && /^\p{Ll}+$/u.test(token) && !NAMES.has(token);
  return isProse ? element("mtext", `\u00a0${token}\u00a0`) : element("mi", token);
}

function element(name, ...children) {
  const made = document.createElementNS(MATH, name);
  made.append(...children);
  return made;
}
