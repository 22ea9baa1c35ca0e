// The decoding screen: one search of one sentence, step by step, and what else could have been.

import { announce, make } from "./element.js";
import { barsView } from "./decoding-bars.js";
import { barsFile, barsTable, candidatesTable, treeFile } from "./decoding-files.js";
import { choice, memorySwitch, scrubber, slider, strategies } from "./decoding-controls.js";
import { ranking, rankingTable, story } from "./decoding-ranking.js";
import { force, pathTo, search, searched } from "./decoding-search.js";
import { stepTable, treeView } from "./decoding-tree.js";
import { FORBIDDEN, fateOf, fixed } from "./decoding-words.js";
import { looked } from "./looked.js";
import { pictureOf } from "./picture.js";
import { route, setParams } from "./route.js";
import { saveButtons } from "./save.js";
import { textBar } from "./textbar.js";
import { readPiece } from "./tokens.js";

const STRATEGIES = ["beam", "greedy", "sample"];
const MOST_MASKS = 12; // of the later tokens of a long sentence
const NEUTRAL = { temperature: 1, topk: 0, topp: 1, minp: 0 };
const PRESET = { strategy: "beam", beam: 2, alpha: 0, step: 1, node: null };

let params = {};
let view = null;
let text = null;

export function show(root, changed) {
  params = changed;
  if (!view) {
    view = build(root);
    searched.on(["answer", "greedy", "greedyError", "isBusy", "error", "prefix"], draw);
    // isBusy: "Look" repeats a search that failed, though the sentence is the same.
    looked.on(["text", "from", "to", "model", "isBusy"], () => {
      // What is not seen is not searched; it follows when the screen is shown again.
      if (route().screen === "decoding" && (looked.isBusy || !searched.error)) follow(0);
    });
    looked.on(["error"], draw);
    return;
  }
  follow();
  draw();
}

export function leave() {
  announce("");
}

/** Search for the sentence that is looked at. */
function follow(delay) {
  const question = JSON.stringify([looked.text, looked.from, looked.to]);
  if (text !== null && question !== text) force([]); // another sentence begins freely
  text = question;
  search(params, delay);
}

function build(root) {
  const parts = {
    strategy: strategies(),
    sliders: Object.fromEntries(
      ["beam", "alpha", "ngram", "temperature", "topk", "topp", "minp"].map((name) => [
        name,
        slider(name),
      ]),
    ),
    formula: choice("formula"),
    stop: choice("stop"),
    scrubber: scrubber(),
    tree: treeView(pick),
    bars: barsView(branch),
    message: make("p", { class: "message", role: "status" }),
    empty: make(
      "p",
      { class: "hint empty" },
      "Type a sentence: its search is shown, step by step, with all that it left.",
    ),
    answer: make("p", { class: "translation-found", dir: "auto" }),
    badges: make("div", { class: "badges" }),
    prefix: make("div", { class: "prefix", hidden: true }),
    memory: memorySwitch(),
    story: make("p", { class: "story", "aria-live": "polite" }),
    node: make("div", { class: "picked-node" }),
    reads: make("div", { class: "tokens reads", dir: "auto" }),
    slots: make("div", { class: "slots", role: "group", "aria-label": "Hypothesis" }),
    ranking: make("ol", { class: "ranking" }),
    table: make("div", {
      class: "scroll",
      tabindex: "0",
      role: "group",
      "aria-label": "Table of the step",
    }),
  };
  parts.twin = make(
    "details",
    { class: "twin", ontoggle: drawTable },
    make("summary", {}, "As a table"),
    parts.table,
  );
  parts.drawn = {}; // part → what it shows
  parts.preset = make(
    "button",
    { type: "button", class: "quiet", onclick: () => setParams(PRESET) },
    "Example: k = 2, step by step",
  );
  parts.pruned = make("input", {
    type: "checkbox",
    onchange: ({ target }) => setParams({ pruned: target.checked ? null : "off" }),
  });
  parts.draws = make("input", {
    type: "checkbox",
    onchange: ({ target }) => setParams({ draws: target.checked ? "on" : null }),
  });
  parts.seed = make("input", {
    type: "number",
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    class: "seed",
    onchange: ({ target }) => setParams({ seed: Math.max(0, Math.trunc(Number(target.value))) }),
  });
  parts.seedLabel = make("label", { class: "pick inline" }, make("span", {}, "Seed"), parts.seed);
  parts.again = make(
    "button",
    { type: "button", class: "button", onclick: () => setParams({ seed: seed() + 1 }) },
    "Sample again",
  );
  parts.below = make("div", { class: "record" }, ...cards(parts));
  parts.controls = controls(parts);
  root.append(
    make("h1", { class: "unseen" }, "Decoding"),
    textBar({ isForced: false }),
    parts.controls,
    parts.empty,
    parts.below,
  );
  return parts;
}

function controls(parts) {
  const { sliders } = parts;
  return make(
    "section",
    { class: "card panel-controls", "aria-label": "Strategy" },
    make("div", { class: "row" }, parts.strategy.element, parts.preset),
    make(
      "div",
      { class: "row sliders" },
      sliders.beam.element,
      sliders.alpha.element,
      parts.formula.element,
      sliders.ngram.element,
      parts.stop.element,
    ),
    parts.prefix,
    parts.memory.element,
    parts.message,
  );
}

function cards(parts) {
  const { sliders } = parts;
  return [
    make(
      "section",
      { class: "card outcome", "aria-labelledby": "outcome-title" },
      make("h2", { id: "outcome-title", class: "unseen" }, "Translation"),
      parts.answer,
      parts.badges,
    ),
    make(
      "section",
      { class: "card tree-card", "aria-labelledby": "tree-title" },
      make(
        "header",
        {},
        make("h2", { id: "tree-title" }, "Tree of the search"),
        parts.scrubber.element,
        make("label", { class: "check" }, parts.pruned, "Show pruned"),
        saveButtons("search", {
          svg: () => treeFile(parts.tree.whole()),
          table: () => candidatesTable(searched.answer),
          json: () => searched.answer,
        }),
      ),
      parts.story,
      parts.tree.element,
      parts.node,
      legend(),
      parts.twin,
    ),
    make(
      "section",
      { class: "card bars-card", "aria-labelledby": "bars-title" },
      make(
        "header",
        {},
        make("h2", { id: "bars-title" }, "The next token"),
        parts.slots,
        saveButtons("next-token", {
          svg: () => barsFile("The next token", parts.bars.listed()),
          table: () => barsTable(parts.bars.listed(), searched.answer),
          json: () => parts.bars.listed(),
        }),
      ),
      parts.reads,
      make(
        "div",
        { class: "row sliders" },
        sliders.temperature.element,
        sliders.topk.element,
        sliders.topp.element,
        sliders.minp.element,
      ),
      make(
        "div",
        { class: "row" },
        make("label", { class: "check" }, parts.draws, "Draw 100 times"),
        parts.seedLabel,
        parts.again,
      ),
      parts.bars.element,
    ),
    make(
      "section",
      { class: "card ranking-card", "aria-labelledby": "ranking-title" },
      make(
        "header",
        {},
        make("h2", { id: "ranking-title" }, "Finished, by score"),
        saveButtons("finished", {
          svg: () => pictureOf("Finished hypotheses, by score", parts.ranking),
          table: () => rankingTable(searched.answer),
          json: () => searched.answer.finished,
        }),
      ),
      make("p", { class: "hint" }, "score = sum of log-probabilities / length penalty"),
      parts.ranking,
    ),
  ];
}

function legend() {
  const entry = (name, words) =>
    make("li", {}, make("span", { class: `swatch ${name}`, "aria-hidden": "true" }), words);
  return make(
    "ul",
    { class: "legend" },
    entry("answer", "on the way to the answer"),
    entry("kept", "kept"),
    entry("ended", "ended"),
    entry("pruned", "pruned, with the reason"),
    make("li", {}, "Right: log-probability. Σ: its sum. s: Σ divided by the length penalty."),
  );
}

/** The strategy that is chosen, though its answer may not be here yet. */
const strategy = () => (STRATEGIES.includes(params.strategy) ? params.strategy : "beam");
const seed = () => Number(params.seed ?? searched.answer?.options.seed ?? 0);

/** Whether a part shows something else than this; it is drawn anew then. */
function isNew(part, ...what) {
  const before = view.drawn[part];
  if (before && what.every((one, place) => one === before[place])) return false;
  view.drawn[part] = what;
  return true;
}

function draw() {
  const { answer, isBusy, error } = searched;
  // The bar says why a sentence cannot be traced; most often it cannot be searched for that either.
  view.message.textContent = error && error.message !== looked.error?.message ? error.message : "";
  view.empty.hidden = Boolean(looked.text.trim());
  view.controls.hidden = !looked.text.trim();
  view.message.classList.toggle("error", Boolean(error));
  view.below.classList.toggle("is-busy", isBusy);
  drawControls(answer);
  drawPrefix();
  view.memory.show(answer?.match, params.memory === "off");
  view.below.hidden = !answer;
  if (!answer) return;
  drawOutcome(answer);
  const step = stepShown(answer);
  const picked = placePicked(answer, step);
  if (isNew("step", answer, step, picked, params.step, params.pruned)) drawStep(answer, step, picked);
  drawBars(answer, step, picked);
  if (isNew("ranking", answer)) view.ranking.replaceChildren(...ranking(answer, pick));
}

function drawStep(answer, step, picked) {
  view.scrubber.show(step, answer.steps.length);
  view.story.textContent = story(answer, step);
  view.tree.show(answer, {
    step,
    seenTo: params.step === undefined ? answer.steps.length : step,
    withPruned: params.pruned !== "off",
    picked: picked === null ? "" : `${step}.${picked}`,
  });
  if (view.revealed !== `${answer.id} ${step}`) view.tree.reveal(step);
  view.revealed = `${answer.id} ${step}`;
  drawTable();
  drawNode(answer, step, picked);
}

/** The candidates of the step as a table, where it is open. */
function drawTable() {
  const { answer } = searched;
  if (view.twin.open && answer)
    view.table.replaceChildren(stepTable(answer, stepShown(answer)));
}

/** The step in the address; without one the first, while the whole tree is to be seen. */
function stepShown(answer) {
  const wanted = Math.trunc(Number(params.step ?? 1)) - 1;
  return Math.min(Math.max(0, wanted || 0), answer.steps.length - 1);
}

function placePicked(answer, step) {
  const place = Number(params.node ?? NaN);
  return Number.isInteger(place) && answer.steps[step].candidates[place] ? place : null;
}

function drawControls(answer) {
  const { sliders } = view;
  const name = strategy();
  view.strategy.show(name);
  const options = answer?.options ?? {};
  for (const [key, one] of Object.entries(sliders)) {
    const isFilter = ["temperature", "topk", "topp", "minp"].includes(key);
    const stored = isFilter && name !== "sample" ? undefined : options[one.option];
    one.show(params[key] ?? stored ?? NEUTRAL[key]);
  }
  for (const key of ["formula", "stop"])
    view[key].show(params[key] ?? options[view[key].option] ?? "");
  sliders.beam.element.hidden = view.stop.element.hidden = name !== "beam";
  view.pruned.checked = params.pruned !== "off";
  view.draws.checked = params.draws === "on";
  if (document.activeElement !== view.seed) view.seed.value = seed();
  view.again.hidden = view.seedLabel.hidden = name !== "sample" && params.draws !== "on";
}

function drawPrefix() {
  const { prefix, answer } = searched;
  if (!isNew("prefix", prefix, answer)) return;
  view.prefix.hidden = !prefix.length;
  const words = answer?.prefix_tokens.length === prefix.length ? answer.prefix_tokens : [];
  view.prefix.replaceChildren(
    make("span", { class: "hint" }, "Begins with"),
    make(
      "span",
      { class: "tokens", dir: "auto" },
      ...words.map((word) => make("span", { class: "token", dir: "auto" }, readPiece(word))),
    ),
    make(
      "button",
      { type: "button", class: "quiet", onclick: () => branchTo(prefix.slice(0, -1)) },
      "Take the last back",
    ),
    make("button", { type: "button", class: "quiet", onclick: () => branchTo([]) }, "Begin freely"),
  );
}

function drawOutcome(answer) {
  const { greedy, greedyError } = searched;
  if (!isNew("outcome", answer, greedy, greedyError, strategy())) return;
  const [best] = answer.finished;
  view.answer.textContent = best.text || "(empty)";
  const badge = (words, kind = "") => make("span", { class: `badge ${kind}` }, words);
  const found = [badge(`score ${fixed(best.score, 4)}`), badge(answer.stop.sentence)];
  if (strategy() === "beam" && answer.strategy === "greedy")
    found.push(badge("k = 1 is greedy search", "same"));
  if (greedyError) found.push(badge(`greedy search failed: ${greedyError.message}`, "other"));
  if (greedy) {
    const [other] = greedy.finished;
    const isSame = other.text === best.text;
    const words = isSame
      ? "greedy search writes the same"
      : `greedy search writes “${other.text}”, score ${fixed(other.score, 4)}`;
    found.push(badge(words, isSame ? "same" : "other"));
  }
  view.badges.replaceChildren(...found);
  if (view.told !== answer.id) announce(`${best.text}. Score ${fixed(best.score, 2)}.`);
  view.told = answer.id;
}

function drawNode(answer, step, place) {
  view.node.hidden = place === null;
  if (place === null) return;
  const candidate = answer.steps[step].candidates[place];
  const rank = answer.finished.findIndex((one) => one.step === step && one.candidate === place);
  const finished = rank < 0 ? null : { rank: rank + 1 };
  const path = pathTo(answer.steps, step, place);
  const isFixed = answer.control_ids.includes(candidate.id);
  view.node.replaceChildren(
    make(
      "p",
      {},
      make("b", { dir: "auto" }, path.map(({ piece }) => readPiece(piece)).join(" ")),
      `  log p ${fixed(candidate.log_prob, 4)}, Σ ${fixed(candidate.total, 4)}, score ${fixed(candidate.score, 4)}; ${fateOf(candidate, finished)}`,
    ),
    isFixed
      ? ""
      : make(
          "button",
          { type: "button", class: "button", onclick: () => branchTo(path.map(({ id }) => id)) },
          "Force this beginning",
        ),
  );
}

function drawBars(answer, number, picked) {
  const { rows, candidates } = answer.steps[number];
  const slot = slotShown(answer, number, picked);
  const row = rows.find((one) => one.slot === slot);
  if (isNew("slots", answer, number, slot)) drawReads(answer, number, row);
  const own = candidates.filter(({ parent }) => parent === slot);
  const taken = own.filter(({ fate }) => fate !== "pruned");
  const forbidden = own.filter(({ reason }) => FORBIDDEN.includes(reason));
  view.bars.show({
    number,
    slot,
    filters: {
      temperature: filter("temperature", 1),
      topK: filter("topk", 0),
      topP: filter("topp", 1),
      minP: filter("minp", 0),
    },
    draws: { seed: seed(), isOn: params.draws === "on" },
    taken: new Set(taken.map(({ id }) => id)),
    forbidden: new Map(forbidden.map(({ id, reason }) => [id, reason])),
  });
}

/** Of which hypothesis the next token is shown, and what the decoder has read by then. */
function drawReads(answer, number, { slot, candidate }) {
  const { rows } = answer.steps[number];
  const path = candidate === null ? [] : pathTo(answer.steps, number - 1, candidate);
  view.slots.replaceChildren(
    rows.length > 1 ? make("span", { class: "hint" }, "of hypothesis") : "",
    ...(rows.length > 1 ? rows : []).map((one) =>
      make(
        "button",
        {
          type: "button",
          class: "slot",
          "aria-pressed": one.slot === slot ? "true" : "false",
          title: pathWords(answer, number, one),
          onclick: () => setParams({ slot: one.slot, node: null, step: number + 1 }),
        },
        `${one.slot + 1}`,
      ),
    ),
  );
  const later = Math.min(answer.steps.length - number, MOST_MASKS);
  view.reads.replaceChildren(
    make("span", { class: "hint" }, "after"),
    ...[answer.root, ...path.map(({ piece }) => readPiece(piece))].map((piece) =>
      make("span", { class: "token", dir: "auto" }, piece),
    ),
    ...Array.from({ length: later }, () =>
      make("span", { class: "token masked", title: "not written yet" }, "<mask>"),
    ),
  );
}

/** A filter of the distribution: that of the search when it samples, else one to try. */
function filter(name, neutral) {
  const { options } = searched.answer;
  const stored = strategy() === "sample" ? options[view.sliders[name].option] : neutral;
  return Number(params[name] ?? stored);
}

/** The hypothesis whose next token is shown: of the picked node, chosen, or the answer's. */
function slotShown(answer, number, picked) {
  const { rows, candidates } = answer.steps[number];
  if (picked !== null) return candidates[picked].parent;
  const chosen = rows.find(({ slot }) => `${slot}` === params.slot);
  if (chosen) return chosen.slot;
  const [best] = answer.finished;
  const way = pathTo(answer.steps, best.step, best.candidate);
  return way[number]?.parent ?? rows[0].slot;
}

function pathWords(answer, number, row) {
  const path = row.candidate === null ? [] : pathTo(answer.steps, number - 1, row.candidate);
  return path.map(({ piece }) => readPiece(piece)).join(" ");
}

function pick({ step, place }) {
  setParams({ step: step + 1, node: place, slot: null });
}

/** Force a token behind the hypothesis that is shown. */
function branch(id) {
  const { answer } = searched;
  const number = stepShown(answer);
  const slot = slotShown(answer, number, placePicked(answer, number));
  const row = answer.steps[number].rows.find((one) => one.slot === slot);
  const path = row.candidate === null ? [] : pathTo(answer.steps, number - 1, row.candidate);
  branchTo([...path.map((one) => one.id), id]);
}

function branchTo(prefix) {
  force(prefix);
  search(params, 0);
  setParams({ step: null, node: null, slot: null });
}
