// The tree of a search: a column for each step, a node for each candidate, drawn as SVG.

import { make } from "./element.js";
import { FATES, REASONS, fateOf, fixed } from "./decoding-words.js";
import { readPiece } from "./tokens.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 136; // of a node
const PITCH = 172; // of columns
const TALL = 44;
const SHORT = 22;
const GAP = 6;
const TOP = 34; // for the numbers of the columns
const EDGE = 12; // around the drawing
const ROOT_WIDTH = 56;

/** An element of SVG; text becomes a text node. */
function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/**
 * Where everything stands.
 * @param {object} record of the search
 * @param {boolean} withPruned
 * @returns {{nodes: Map<string, object>, root: object, width: number, height: number}}
 */
export function layout(record, withPruned) {
  const nodes = new Map();
  const finished = new Map(
    record.finished.map((one, index) => [`${one.step}.${one.candidate}`, { ...one, rank: index + 1 }]),
  );
  let height = 0;
  for (const { number, rows, candidates } of record.steps) {
    const parents = new Map(
      rows.map(({ slot, candidate }) => [slot, candidate === null ? "root" : `${number - 1}.${candidate}`]),
    );
    const placed = candidates.map((candidate, place) => ({ candidate, place }));
    const isHigh = ({ candidate }) => candidate.fate !== "pruned" || candidate.reason === "stopped";
    const ordered = [
      ...placed.filter(isHigh),
      ...placed.filter((one) => !isHigh(one) && withPruned),
    ];
    let y = TOP;
    for (const { candidate, place } of ordered) {
      const id = `${number}.${place}`;
      const tall = isHigh({ candidate }) ? TALL : SHORT;
      nodes.set(id, {
        id,
        step: number,
        place,
        candidate,
        parent: parents.get(candidate.parent),
        finished: finished.get(id),
        x: EDGE + ROOT_WIDTH + (PITCH - WIDTH) + number * PITCH,
        y,
        height: tall,
        isOnAnswer: false,
        rank: null,
      });
      y += tall + GAP;
    }
    height = Math.max(height, y);
  }
  const root = { id: "root", x: EDGE, y: TOP, height: TALL };
  for (const [id, { rank }] of finished) {
    for (let at = id; at !== "root" && nodes.get(at).rank === null; at = nodes.get(at).parent) {
      nodes.get(at).rank = rank;
      nodes.get(at).isOnAnswer = rank === 1;
    }
  }
  const width = EDGE * 2 + ROOT_WIDTH + record.steps.length * PITCH;
  return { nodes, root, width, height: height + EDGE };
}

/**
 * The tree as an element, which is drawn again for each record.
 * @param {(id: {step: number, place: number}) => void} onPick
 */
export function treeView(onPick) {
  const scroll = make("div", { class: "tree", tabindex: "-1" });
  let placed = null;
  let svg = null;
  let active = "";

  function show(record, { step, seenTo, withPruned, picked }) {
    placed = layout(record, withPruned);
    const { nodes, root, width, height } = placed;
    const at = picked && nodes.has(picked) ? picked : firstOf(step);
    active = at;
    svg = draw(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        width,
        height,
        role: "group",
        "aria-label": "Tree of the search; arrow keys move between hypotheses",
        onkeydown: move,
      },
      ...columns(record, step, seenTo, height),
      draw("g", {}, ...[...nodes.values()].reverse().map((node) => edge(node, seenTo))),
      rootNode(root),
      ...[...nodes.values()].map((node) => nodeOf(node, seenTo, node.id === picked)),
    );
    const before = [scroll.scrollLeft, scroll.scrollTop];
    const hadFocus = scroll.contains(document.activeElement);
    scroll.replaceChildren(svg);
    [scroll.scrollLeft, scroll.scrollTop] = before;
    if (hadFocus) element(active)?.focus({ preventScroll: true });
  }

  function firstOf(step) {
    return [...placed.nodes.values()].find((node) => node.step === step)?.id ?? "";
  }

  function columns(record, current, seenTo, height) {
    return record.steps.map(({ number }) => {
      const x = EDGE + ROOT_WIDTH + (PITCH - WIDTH) + number * PITCH;
      return draw(
        "g",
        { class: `column${number === current ? " current" : ""}${number > seenTo ? " later" : ""}` },
        draw("rect", { x: x - 8, y: 4, width: WIDTH + 16, height: height - 8, rx: 10 }),
        draw("text", { x: x + WIDTH / 2, y: 22, "text-anchor": "middle" }, `${number + 1}`),
      );
    });
  }

  function edge(node, seenTo) {
    const { nodes, root } = placed;
    const parent = node.parent === "root" ? root : nodes.get(node.parent);
    const from = parent === root ? root.x + ROOT_WIDTH : parent.x + WIDTH;
    const [y1, y2] = [parent.y + parent.height / 2, node.y + node.height / 2];
    const bend = (node.x - from) / 2;
    const d = `M${from} ${y1}C${from + bend} ${y1} ${node.x - bend} ${y2} ${node.x} ${y2}`;
    return draw("path", { class: `edge ${classesOf(node, seenTo)}`, d });
  }

  function rootNode({ x, y, height }) {
    return draw(
      "g",
      { class: "node root", transform: `translate(${x} ${y})` },
      draw("rect", { width: ROOT_WIDTH, height, rx: 9 }),
      draw("text", { class: "piece", x: ROOT_WIDTH / 2, y: height / 2 + 5, "text-anchor": "middle" }, "<bos>"),
    );
  }

  function nodeOf(node, seenTo, isPicked) {
    const { candidate, finished, height } = node;
    const isShort = height === SHORT;
    const classes = `node ${classesOf(node, seenTo)}${isPicked ? " picked" : ""}`;
    const lines = isShort
      ? [
          draw("text", { class: "piece", x: 8, y: 15 }, fitted(readPiece(candidate.piece), WIDTH - 80)),
          draw("text", { class: "why", x: WIDTH - 8, y: 15, "text-anchor": "end" }, REASONS[candidate.reason][0]),
        ]
      : [
          draw("text", { class: "piece", x: 10, y: 18 }, fitted(readPiece(candidate.piece), WIDTH - 62)),
          draw("text", { class: "figure", x: WIDTH - 10, y: 18, "text-anchor": "end" }, fixed(candidate.log_prob, 2)),
          draw("text", { class: "figure soft", x: 10, y: 35 }, `Σ ${fixed(candidate.total, 2)}`),
          draw(
            "text",
            { class: "figure soft", x: WIDTH - 10, y: 35, "text-anchor": "end" },
            candidate.reason === "stopped" ? REASONS.stopped[0] : `${finished ? `#${finished.rank}  ` : ""}s ${fixed(candidate.score, 2)}`,
          ),
        ];
    return draw(
      "g",
      {
        class: classes,
        transform: `translate(${node.x} ${node.y})`,
        role: "button",
        tabindex: node.id === active ? "0" : "-1",
        "data-id": node.id,
        "aria-label": nameOf(node),
        "aria-pressed": isPicked ? "true" : "false",
        onclick: () => onPick({ step: node.step, place: node.place }),
      },
      draw("title", {}, nameOf(node)),
      draw("rect", { width: WIDTH, height, rx: isShort ? 6 : 9 }),
      ...lines,
    );
  }

  function move(event) {
    const node = placed.nodes.get(event.target.closest("[data-id]")?.dataset.id);
    if (!node) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      onPick({ step: node.step, place: node.place });
      return;
    }
    const next = neighbor(node, event.key);
    if (event.key.startsWith("Arrow")) event.preventDefault();
    if (!next) return;
    element(active)?.setAttribute("tabindex", "-1");
    active = next.id;
    const found = element(active);
    found.setAttribute("tabindex", "0");
    found.focus();
  }

  function neighbor(node, key) {
    const all = [...placed.nodes.values()];
    if (key === "ArrowLeft") return placed.nodes.get(node.parent);
    if (key === "ArrowRight") {
      return all.find(({ parent }) => parent === node.id) ?? null;
    }
    const column = all.filter(({ step }) => step === node.step);
    const index = column.indexOf(node);
    if (key === "ArrowDown") return column[index + 1];
    if (key === "ArrowUp") return column[index - 1];
    return null;
  }

  const element = (id) => svg?.querySelector(`[data-id="${CSS.escape(id)}"]`);

  /** Scroll the column of a step into view, sideways only. */
  function reveal(step) {
    const x = EDGE + ROOT_WIDTH + (PITCH - WIDTH) + step * PITCH;
    const center = x + WIDTH / 2 - scroll.clientWidth / 2;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    scroll.scrollTo({ left: Math.max(0, center), behavior: isCalm ? "auto" : "smooth" });
  }

  return { element: scroll, show, reveal, svg: () => svg };
}

function classesOf(node, seenTo) {
  const { candidate } = node;
  return [
    candidate.fate === "pruned" ? "pruned" : candidate.fate === "kept" ? "kept" : "ended",
    candidate.fate === "pruned" && candidate.reason === "stopped" ? "left" : "",
    node.isOnAnswer ? "answer" : "",
    node.step > seenTo ? "later" : "",
  ]
    .filter(Boolean)
    .join(" ");
}

/** What a screen reader says of a node, and what the mouse shows. */
function nameOf({ candidate, finished, step }) {
  return (
    `${readPiece(candidate.piece)}, step ${step + 1}: log-probability ${fixed(candidate.log_prob, 4)}, ` +
    `sum ${fixed(candidate.total, 4)}, score ${fixed(candidate.score, 4)}; ${fateOf(candidate, finished)}`
  );
}

const ruler = document.createElement("canvas").getContext("2d");

/** The beginning of a text that is at most so wide. */
function fitted(text, width) {
  ruler.font = "600 13px sans-serif";
  if (ruler.measureText(text).width <= width) return text;
  const characters = [...text];
  while (characters.length && ruler.measureText(`${characters.join("")}…`).width > width) characters.pop();
  return `${characters.join("")}…`;
}

/** The candidates of a step as a table, for screen readers and for copying. */
export function stepTable(record, number) {
  const step = record.steps[number];
  const { nodes } = layout(record, true);
  const parents = new Map(step.rows.map(({ slot, candidate }) => [slot, candidate]));
  const row = (candidate, place) => {
    const from = parents.get(candidate.parent);
    const before = from === null ? "<bos>" : readPiece(record.steps[number - 1].candidates[from].piece);
    return make(
      "tr",
      {},
      make("th", { scope: "row", dir: "auto" }, readPiece(candidate.piece)),
      make("td", { dir: "auto" }, before),
      make("td", {}, fixed(candidate.log_prob, 4)),
      make("td", {}, fixed(candidate.total, 4)),
      make("td", {}, fixed(candidate.score, 4)),
      make("td", {}, FATES[candidate.fate]),
      make("td", {}, candidate.reason ? REASONS[candidate.reason][1] : (nodes.get(`${number}.${place}`).finished ? `rank ${nodes.get(`${number}.${place}`).finished.rank}` : "")),
    );
  };
  const heads = ["Piece", "Continues", "log p", "Sum", "Score", "Fate", "Why"];
  return make(
    "table",
    {},
    make("caption", {}, `Candidates of step ${number + 1}, best first`),
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...step.candidates.map(row)),
  );
}
