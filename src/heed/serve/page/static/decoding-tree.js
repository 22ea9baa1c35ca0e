// The tree of a search: a column for each step, a node for each candidate, drawn as SVG.

import { draw, make } from "./element.js";
import { FATES, REASONS, fateOf, fixed } from "./decoding-words.js";
import { readPiece } from "./tokens.js";

const WIDTH = 148; // of a node
const PITCH = 184; // of columns
const TALL = 44;
const SHORT = 22;
const GAP = 6;
const TOP = 34; // for the numbers of the columns
const EDGE = 12; // around the drawing
const ROOT_WIDTH = 56;
const FAR = 6; // columns out of view, behind which they are taken out again
const SOON_MS = 300; // steps that follow one another as quickly are gone through by a slider

const layouts = new WeakMap(); // record → withPruned → where everything stands

/**
 * Where everything stands; the same object for the same arguments.
 * @param {object} record of the search
 * @param {boolean} withPruned
 * @returns {{nodes: Map<string, object>, byStep: string[][], root: object, width: number,
 *   height: number}}
 */
function layout(record, withPruned) {
  if (!layouts.has(record)) layouts.set(record, new Map());
  const known = layouts.get(record);
  if (!known.has(withPruned)) known.set(withPruned, laidOut(record, withPruned));
  return known.get(withPruned);
}

const xOf = (step) => EDGE + ROOT_WIDTH + (PITCH - WIDTH) + step * PITCH;

function laidOut(record, withPruned) {
  const nodes = new Map();
  const byStep = [];
  const finished = new Map(
    record.finished.map((one, index) => [
      `${one.step}.${one.candidate}`,
      { ...one, rank: index + 1 },
    ]),
  );
  let height = 0;
  for (const { number, rows, candidates } of record.steps) {
    const parents = new Map(
      rows.map(({ slot, candidate }) => [
        slot,
        candidate === null ? "root" : `${number - 1}.${candidate}`,
      ]),
    );
    const placed = candidates.map((candidate, place) => ({ candidate, place }));
    const isHigh = ({ candidate }) => candidate.fate !== "pruned" || candidate.reason === "stopped";
    const ordered = [
      ...placed.filter(isHigh),
      ...placed.filter((one) => !isHigh(one) && withPruned),
    ];
    let y = TOP;
    byStep.push(ordered.map(({ place }) => `${number}.${place}`));
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
        x: xOf(number),
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
  return { nodes, byStep, root, width, height: height + EDGE };
}

/**
 * The tree as an element. A column is drawn when it first comes into view: a long search with a wide
 * beam has thousands of nodes.
 * @param {(id: {step: number, place: number}) => void} onPick
 */
export function treeView(onPick) {
  const scroll = make("div", {
    class: "tree",
    tabindex: "-1",
    onscroll: () => {
      left = scroll.scrollLeft;
      drawVisible();
    },
  });
  let record = null;
  let placed = null;
  let svg = null;
  let columns = []; // by step: a group that is filled when it is drawn
  let active = ""; // id of the node that Tab reaches
  let marked = { step: -1, seenTo: Infinity, picked: "" };
  let [left, width] = [0, 0]; // of what is in view, so that nothing asks for a layout
  let revealedAt = 0;
  new ResizeObserver(() => {
    width = scroll.clientWidth;
    drawVisible();
  }).observe(scroll);

  function show(changed, { step, seenTo, withPruned, picked }) {
    const next = layout(changed, withPruned);
    if (next !== placed) begin(changed, next, step);
    const before = marked;
    marked = { step, seenTo, picked };
    columns[before.step]?.classList.remove("current");
    columns[step].classList.add("current");
    if (before.seenTo !== seenTo)
      columns.forEach((column, number) => column.classList.toggle("later", number > seenTo));
    fill(step);
    markPicked(before.picked);
    markPicked(picked);
    if (placed.nodes.has(picked)) activate(picked);
    drawVisible();
  }

  function begin(changed, next, step) {
    const hadFocus = scroll.contains(document.activeElement);
    record = changed;
    placed = next;
    marked = { step: -1, seenTo: Infinity, picked: "" };
    active = idsOf(step)[0] ?? "";
    columns = record.steps.map(({ number }) => draw("g", { class: "column", "data-step": number }));
    const { root, height } = placed;
    svg = draw(
      "svg",
      {
        viewBox: `0 0 ${placed.width} ${height}`,
        width: placed.width,
        height,
        role: "group",
        "aria-label": "Tree of the search; arrow keys move between hypotheses",
        onkeydown: move,
      },
      rootNode(root),
      ...columns,
    );
    const at = [scroll.scrollLeft, scroll.scrollTop];
    scroll.replaceChildren(svg);
    [scroll.scrollLeft, scroll.scrollTop] = at;
    [left, width] = [scroll.scrollLeft, scroll.clientWidth];
    fill(step);
    if (hadFocus) element(active)?.focus({ preventScroll: true });
  }

  const idsOf = (step) => placed.byStep[step] ?? [];

  function drawVisible() {
    if (!placed) return;
    const first = Math.floor((left - xOf(0)) / PITCH) - 1;
    const last = Math.ceil((left + width - xOf(0)) / PITCH) + 1;
    const stays = [marked.step, placed.nodes.get(active)?.step];
    columns.forEach((column, step) => {
      if (step >= first && step <= last) fill(step);
      else if ((step < first - FAR || step > last + FAR) && !stays.includes(step))
        column.replaceChildren();
    });
  }

  /** Draw a column, once. */
  function fill(step) {
    const column = columns[step];
    if (!column || column.firstChild) return;
    const [x, nodes] = [xOf(step), idsOf(step).map((id) => placed.nodes.get(id))];
    column.append(
      draw("rect", {
        class: "band",
        x: x - 8,
        y: 4,
        width: WIDTH + 16,
        height: placed.height - 8,
        rx: 10,
      }),
      draw(
        "text",
        { class: "head", x: x + WIDTH / 2, y: 22, "text-anchor": "middle" },
        `${step + 1}`,
      ),
      // The likelier ones last, above the others.
      ...nodes.map(edge).reverse(),
      ...nodes.map(nodeOf),
    );
  }

  function edge(node) {
    const { nodes, root } = placed;
    const parent = node.parent === "root" ? root : nodes.get(node.parent);
    const from = parent === root ? root.x + ROOT_WIDTH : parent.x + WIDTH;
    const [y1, y2] = [parent.y + parent.height / 2, node.y + node.height / 2];
    const bend = (node.x - from) / 2;
    const d = `M${from} ${y1}C${from + bend} ${y1} ${node.x - bend} ${y2} ${node.x} ${y2}`;
    return draw("path", { class: `edge ${classesOf(node)}`, d, "data-to": node.id });
  }

  function rootNode({ x, y, height }) {
    const place = { x: ROOT_WIDTH / 2, y: height / 2 + 5, "text-anchor": "middle" };
    return draw(
      "g",
      { class: "node root", transform: `translate(${x} ${y})` },
      draw("rect", { width: ROOT_WIDTH, height, rx: 9 }),
      draw("text", { class: "piece", ...place }, record.root),
    );
  }

  function nodeOf(node) {
    const isPicked = node.id === marked.picked;
    return draw(
      "g",
      {
        class: `node ${classesOf(node)}${isPicked ? " picked" : ""}`,
        transform: `translate(${node.x} ${node.y})`,
        role: "button",
        tabindex: node.id === active ? "0" : "-1",
        "data-id": node.id,
        "aria-label": nameOf(node),
        "aria-pressed": `${isPicked}`,
        onclick: () => onPick({ step: node.step, place: node.place }),
        onmouseenter: () => trace(node.id),
        onmouseleave: () => trace(""),
        onfocus: () => trace(node.id),
        onblur: () => trace(""),
      },
      draw("title", {}, nameOf(node)),
      draw("rect", { width: WIDTH, height: node.height, rx: node.height === SHORT ? 6 : 9 }),
      ...wordsOf(node),
    );
  }

  /** Mark the way from the beginning to a node. */
  function trace(id) {
    for (const found of svg.querySelectorAll(".way")) found.classList.remove("way");
    for (let at = id; placed.nodes.has(at); at = placed.nodes.get(at).parent) {
      const name = CSS.escape(at);
      const found = svg.querySelectorAll(`[data-id="${name}"], [data-to="${name}"]`);
      for (const one of found) one.classList.add("way");
    }
  }

  function markPicked(id) {
    const found = element(id);
    if (!found) return;
    found.classList.toggle("picked", id === marked.picked);
    found.setAttribute("aria-pressed", `${id === marked.picked}`);
  }

  /** Tab reaches this node now. */
  function activate(id) {
    element(active)?.setAttribute("tabindex", "-1");
    active = id;
    fill(placed.nodes.get(id).step);
    element(id).setAttribute("tabindex", "0");
  }

  function move(event) {
    const node = placed.nodes.get(event.target.closest("[data-id]")?.dataset.id);
    if (!node) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      onPick({ step: node.step, place: node.place });
      return;
    }
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const next = neighbor(node, event.key);
    if (!placed.nodes.has(next)) return;
    activate(next);
    element(next).focus();
  }

  function neighbor(node, key) {
    if (key === "ArrowLeft") return node.parent;
    if (key === "ArrowRight") {
      return idsOf(node.step + 1).find((id) => placed.nodes.get(id).parent === node.id);
    }
    const column = idsOf(node.step);
    return column[column.indexOf(node.id) + (key === "ArrowDown" ? 1 : -1)];
  }

  const element = (id) => (id ? svg?.querySelector(`[data-id="${CSS.escape(id)}"]`) : null);

  /** Scroll the column of a step into view, sideways only. */
  function reveal(step) {
    const center = xOf(step) + WIDTH / 2 - width / 2;
    const isQuick = performance.now() - revealedAt < SOON_MS;
    const isCalm = isQuick || matchMedia("(prefers-reduced-motion: reduce)").matches;
    revealedAt = performance.now();
    scroll.scrollTo({ left: Math.max(0, center), behavior: isCalm ? "auto" : "smooth" });
  }

  /** The whole drawing as it is shown. */
  function whole() {
    columns.forEach((_, step) => fill(step));
    return svg;
  }

  return { element: scroll, show, reveal, whole };
}

/** The lines of text in a node. */
function wordsOf({ candidate, finished, height }) {
  const text = (words, name, x, y, isEnd) =>
    draw("text", { class: name, x, y, ...(isEnd ? { "text-anchor": "end" } : {}) }, words);
  const piece = readPiece(candidate.piece);
  if (height === SHORT) {
    return [
      text(fitted(piece, WIDTH - 80), "piece", 8, 15),
      text(REASONS[candidate.reason][0], "why", WIDTH - 8, 15, true),
    ];
  }
  const rank = finished ? `#${finished.rank}  ` : "";
  const score = candidate.reason
    ? REASONS[candidate.reason][0]
    : `${rank}s ${fixed(candidate.score, 2)}`;
  return [
    text(fitted(piece, WIDTH - 62), "piece", 10, 18),
    text(fixed(candidate.log_prob, 2), "figure", WIDTH - 10, 18, true),
    text(`Σ ${fixed(candidate.total, 2)}`, "figure soft", 10, 35),
    text(score, "figure soft", WIDTH - 10, 35, true),
  ];
}

function classesOf({ candidate, isOnAnswer }) {
  return [
    candidate.fate === "pruned" ? "pruned" : candidate.fate === "kept" ? "kept" : "ended",
    candidate.fate === "pruned" && candidate.reason === "stopped" ? "left" : "",
    isOnAnswer ? "answer" : "",
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
  while (characters.length && ruler.measureText(`${characters.join("")}…`).width > width)
    characters.pop();
  return `${characters.join("")}…`;
}

/** The candidates of a step as a table, for screen readers and for copying. */
export function stepTable(record, number) {
  const step = record.steps[number];
  const { nodes } = layout(record, true);
  const parents = new Map(step.rows.map(({ slot, candidate }) => [slot, candidate]));
  const row = (candidate, place) => {
    const from = parents.get(candidate.parent);
    const before =
      from === null ? record.root : readPiece(record.steps[number - 1].candidates[from].piece);
    return make(
      "tr",
      {},
      make("th", { scope: "row", dir: "auto" }, readPiece(candidate.piece)),
      make("td", { dir: "auto" }, before),
      make("td", {}, fixed(candidate.log_prob, 4)),
      make("td", {}, fixed(candidate.total, 4)),
      make("td", {}, fixed(candidate.score, 4)),
      make("td", {}, FATES[candidate.fate]),
      make(
        "td",
        {},
        candidate.reason
          ? REASONS[candidate.reason][1]
          : nodes.get(`${number}.${place}`).finished
            ? `rank ${nodes.get(`${number}.${place}`).finished.rank}`
            : "",
      ),
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
