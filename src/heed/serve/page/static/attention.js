// The screen of attention: who reads what, in every layer and head.

import { cellView } from "./attention-cell.js";
import { choiceOf, spellHeads } from "./attention-choice.js";
import { byMenu, mixControls, titleOf, useTabs, viewControls } from "./attention-controls.js";
import { USES, alignmentMap, mapOf } from "./attention-data.js";
import { headGrid } from "./attention-grid.js";
import { lineView } from "./attention-lines.js";
import { linkView } from "./attention-links.js";
import { rowView } from "./attention-row.js";
import { highOf } from "./colors.js";
import { make } from "./element.js";
import { heatmap } from "./heatmap.js";
import { looked } from "./looked.js";
import { setParams } from "./route.js";
import { saveButtons } from "./save.js";
import { textBar } from "./textbar.js";

const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

let params = {};
let parts = null; // the elements of the screen, made once
let chosen = null;
let shown = null; // {large, row}: what is drawn of the map
let turn = 0; // counts drawings, so that a late one is dropped
let drawn = {}; // part → {key, done}: what it shows, or will show when `done` is kept

export function show(root, changed) {
  params = changed;
  if (!parts) {
    begin(root);
    looked.on(["trace", "isBusy"], draw); // draws at once
  } else draw();
}

export function leave() {
  shown?.row?.stop();
}

function begin(root) {
  parts = {
    tabs: useTabs(),
    overview: make("div", { class: "card overview-card" }),
    mix: mixControls(),
    controls: viewControls(),
    by: byMenu(),
    title: make("h2", {}),
    note: make("p", { class: "hint", role: "status" }),
    large: make("div", { class: "drawn" }),
    row: make("div", {}),
    cell: make("div", {}),
    save: make("div", {}),
    empty: make("p", { class: "hint empty" }),
  };
  parts.panel = make(
    "div",
    { class: "attention-panel", id: "attention-panel", role: "tabpanel" },
    parts.overview,
    make(
      "div",
      { class: "card main-card" },
      make("div", { class: "title" }, parts.title, parts.save),
      parts.controls,
      parts.mix,
      parts.by,
      parts.note,
      parts.large,
      parts.row,
      parts.cell,
    ),
  );
  root.append(
    make("h1", { class: "unseen" }, "Attention"),
    textBar({ isBatched: true }),
    parts.empty,
    make("div", { class: "tabs-row" }, parts.tabs),
    parts.panel,
  );
}

async function draw() {
  const now = ++turn;
  chosen = looked.trace && choiceOf(params);
  parts.tabs.hidden = parts.panel.hidden = !chosen;
  parts.empty.hidden = Boolean(chosen || looked.error);
  if (!chosen) {
    drawn = {};
    parts.empty.textContent = emptyText();
    return;
  }
  looked.set({ isByWord: chosen.isByWord });
  parts.tabs.update(chosen);
  parts.panel.setAttribute("aria-labelledby", `tab-${chosen.use}`);
  parts.controls.update(chosen);
  parts.mix.update(chosen);
  const isLinks = chosen.view === "links";
  parts.mix.hidden = isLinks && chosen.by.name !== "chosen";
  parts.by.hidden = !isLinks;
  if (isLinks) parts.by.update(chosen);
  await Promise.all([drawOverview(now), drawLarge()]);
  if (now === turn) drawPlace();
}

function emptyText() {
  if (looked.trace) return "This model has no attention.";
  if (looked.isBusy) return "The sentence is translated …";
  return "Type a sentence: its translation is computed, and every head shows what it reads.";
}

/**
 * Draw a part, unless it shows this or is about to: a second drawing of the same may begin while the
 * numbers of the first are on their way.
 * @param {function(function(): boolean): Promise} drawPart is told how to ask whether its part has
 *   come to show something else meanwhile
 */
function drawOnce(part, what, drawPart) {
  const key = JSON.stringify([looked.trace.id, looked.trace.batch, ...what]);
  if (drawn[part]?.key === key) return drawn[part].done;
  const mine = { key };
  drawn[part] = mine;
  mine.done = drawPart(() => drawn[part] !== mine);
  mine.done.catch(() => drawn[part] === mine && delete drawn[part]);
  return mine.done;
}

async function drawOverview(now) {
  const { use, order, hidden, isPadded } = chosen;
  await drawOnce("overview", [use, order, hidden, isPadded], async (isLate) => {
    const grid = await headGrid(chosen, {
      onHead,
      onOrder: (next) => setParams({ order: next === "layer" ? null : next }),
    });
    if (!isLate()) parts.overview.replaceChildren(grid);
  });
  if (now === turn) parts.overview.firstElementChild.mark(chosen);
}

function onHead(layer, head, isMore) {
  if (!isMore) return setParams({ layer, head, heads: null, mix: null, col: null });
  const others = chosen.heads.filter((one) => one.layer !== layer || one.head !== head);
  const isThere = others.length < chosen.heads.length;
  const heads = isThere && others.length ? others : [...others, { layer, head, share: 1 }];
  setParams({ heads: spellHeads(heads), mix: null });
}

function drawLarge() {
  const { use, view, stage, heads, mix, isUnscaled, hidden, isByWord, by, join } = chosen;
  const { isPadded } = chosen;
  const what = [use, view, stage, heads, mix, isUnscaled, hidden, isByWord, by, join, isPadded];
  return drawOnce("large", what, fillLarge);
}

/** The large view: a heat map, lines, or an alignment. */
async function fillLarge(isLate) {
  const { use, view, isByWord, by, join } = chosen;
  const isLinks = view === "links";
  const map = await (isLinks ? alignmentMap(by, isByWord) : mapOf(chosen));
  if (isLate()) return;
  shown?.row?.stop();
  const title = titleNow();
  parts.title.textContent = title;
  parts.note.textContent = isLinks ? "" : noteOn(map);
  const large = isLinks
    ? linkView(map, join, (value) => setParams({ join: value === "none" ? null : value }))
    : view === "lines"
      ? lineView(map, { onRow })
      : heatmap({
          label: title,
          rows: map.rows.labels,
          columns: map.columns.labels,
          values: map.values,
          ...(map.isWeights ? { low: 0, high: highOf(map.values) } : {}),
          ...(isWritten(map.rows)
            ? {
                ends: looked.trace.expected_tokens.slice(0, map.rows.labels.length),
                titles: ["is read", "is written"],
              }
            : {}),
          padding: { rows: map.rows.padding, columns: map.columns.padding },
          sides: map,
          onPick,
        });
  const row = isLinks ? null : rowView(map, use, onRow);
  shown = { large, row, map };
  parts.large.replaceChildren(large);
  parts.row.replaceChildren(...(row ? [row] : []));
  parts.save.replaceChildren(saveButtons(fileName(), filesOf(title, map, large)));
}

/** Whether each row writes a token: rows of the target's pieces do. */
const isWritten = ({ side, words }) => side === "tgt" && !words;

function titleNow() {
  const { use, view, mix, heads, by } = chosen;
  if (view === "links") return `Alignment by ${titleOf(by.heads)}`;
  const which = mix === "rollout" ? "rollout" : mix ? "mean of all layers" : titleOf(heads);
  return `${USES[use].title}: ${which}`;
}

function noteOn({ hidden, isWeights }) {
  const { mix, stage, isUnscaled, isByWord, hidden: kinds, use, isPadded, hasPadding } = chosen;
  const notes = [];
  if (mix === "rollout") {
    notes.push(
      use === "cross"
        ? "Rollout: the share of each source piece in each step, through all layers of decoder and encoder, with half of each layer for the residual connection. The rest of a row is the target's own."
        : "Rollout: the layers multiplied, with half of each for the residual connection.",
    );
  } else if (!isWeights) {
    notes.push(
      {
        products: "Q Kᵀ, before the division by √d_k.",
        scores: "Q Kᵀ / √d_k, before the mask.",
        masked: "Behind the mask: what may not be read is −∞.",
      }[stage],
    );
  }
  if (isUnscaled) notes.push("Softmax of Q Kᵀ without the division by √d_k: rows are sharper.");
  if (kinds.length && isWeights) {
    notes.push(
      `${PERCENT.format(hidden)} of the attention goes to what is hidden; the rest is divided by its sum.`,
    );
  }
  if (isPadded && hasPadding)
    notes.push(
      "No token reads padding: its columns are 0. The rows of padding are computed and not used.",
    );
  if (isByWord && isWeights)
    notes.push("Words: the sum over pieces that are read, the mean over pieces that read.");
  return notes.join(" ");
}

function filesOf(title, map, large) {
  const { rows, columns, values, n } = map;
  const table = () => [
    ["", ...columns.labels],
    ...rows.labels.map((label, row) => [label, ...values.slice(row * n, (row + 1) * n)]),
  ];
  return {
    svg: () => large.svg(title),
    table,
    json: () => ({
      title,
      rows: rows.labels,
      columns: columns.labels,
      values: rows.labels.map((_, row) => [...values.slice(row * n, (row + 1) * n)].map(finite)),
      ...(large.links === undefined ? {} : { links: large.links }),
    }),
  };
}

const finite = (value) => (Number.isFinite(value) ? value : null);

const fileName = () => {
  const { use, view, mix, heads } = chosen;
  const which =
    mix ||
    heads
      .map(({ layer, head }) => `${layer}-${head}`)
      .slice(0, 4)
      .join("_");
  const { batch } = looked.trace;
  const of = batch === undefined ? "" : `-${batch}`;
  return `attention${of}-${use}-${view === "links" ? "alignment" : which}`;
};

// The row and the cell that are looked at. While a slider moves, the address waits.

function onRow(row) {
  chosen.row = row;
  chosen.col = null;
  drawPlace();
  clearTimeout(onRow.timer);
  onRow.timer = setTimeout(() => setParams({ row, col: null }), 300);
}

function onPick(row, col) {
  setParams({ row, col });
}

async function drawPlace() {
  const { large, row: rowPart, map } = shown ?? {};
  if (!rowPart) return parts.cell.replaceChildren();
  const { row, col } = chosen;
  const isRow = Number.isInteger(row) && row >= 0 && row < map.rows.labels.length;
  large.light?.(isRow ? row : null);
  rowPart.light(isRow ? row : null);
  const isCell = isRow && Number.isInteger(col) && col >= 0 && col < map.n;
  if (!isCell) return parts.cell.replaceChildren();
  large.moveTo?.(row, col);
  const { use, heads, mix, isByWord, isUnscaled } = chosen;
  if (mix || heads.length > 1 || isByWord) {
    const words = "Choose one head, and pieces, to see the numbers of a cell.";
    return parts.cell.replaceChildren(make("p", { class: "hint" }, words));
  }
  const now = turn;
  const cell = await cellView({
    use,
    ...heads[0],
    row: map.rows.places?.[row] ?? row,
    column: map.columns.places?.[col] ?? col,
    texts: [map.rows.labels[row], map.columns.labels[col]],
    unscaled: isUnscaled ? map.values[row * map.n + col] : null,
  });
  if (now === turn) parts.cell.replaceChildren(cell);
}
