// The training screen: where a run stands, its curves, its translations, and two buttons.

import { post } from "./api.js";
import { fill, make, openPanel } from "./element.js";
import { pictureOf } from "./picture.js";
import { setParams } from "./route.js";
import { saveButtons } from "./save.js";
import { AXES, duration, makeCurves, scoresOf } from "./training-curves.js";
import {
  asRows,
  choose,
  control,
  isLive,
  lookForToken,
  MAX_CHOSEN,
  readRuns,
  rest,
  watched,
} from "./training-data.js";
import { alarms, events, factsLine, settings } from "./training-facts.js";
import { makeSamples } from "./training-samples.js";

const NUMBER = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const PLAIN = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const SMOOTHING = 0.6;

let params = {};
let view = null;
let frame = 0;
let differences = { names: [], settings: {} };

export async function show(root, changed) {
  params = changed;
  lookForToken();
  if (!view) {
    view = build(root);
    watched.on(["runs", "chosen", "whole", "error", "hasToken"], drawSoon);
  }
  if (!watched.runs.length) await readRuns();
  choose(namesOf(params));
  drawSoon();
}

export function leave() {
  rest();
}

/** The runs that the address names; without one, the first that is live, else the first. */
function namesOf({ runs }) {
  const known = watched.runs.map(({ name }) => name);
  const asked = (runs ?? "")
    .split(",")
    .map(decoded)
    .filter((name) => known.includes(name));
  if (asked.length) return [...new Set(asked)];
  const first = watched.runs.find(isLive) ?? watched.runs[0];
  return first ? [first.name] : [];
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const addressed = (names) => names.map(encodeURIComponent).join(",");

function optionsOf(runs) {
  const scores = scoresOf(runs);
  const metric = runs[0]?.status.metric;
  const score =
    scores.find(([key]) => key === params.score) ??
    scores.find(([key]) => key === metric) ??
    scores[0];
  const smoothing = Number(params.smooth ?? SMOOTHING);
  return {
    x: AXES[params.x] ? params.x : "step",
    isLog: params.log === "1",
    isPerplexity: params.perplexity === "1",
    hasMarks: params.marks !== "0",
    smoothing: smoothing >= 0 && smoothing < 1 ? smoothing : SMOOTHING,
    score: score?.[0] ?? "bleu",
    scores,
  };
}

function build(root) {
  const parts = {
    runs: make("div", { class: "runs", role: "group", "aria-label": "Runs" }),
    headline: make("h1", { class: "headline" }),
    share: make("progress", {
      class: "share",
      max: "1",
      "aria-label": "Share of the training done",
    }),
    figures: make("dl", { class: "figures" }),
    facts: make("p", { class: "hint made-of", dir: "auto" }),
    buttons: make("div", { class: "buttons" }),
    message: make("p", { class: "message", role: "status" }),
    alarms: make("div", { class: "alarms" }),
    controls: null,
    curves: makeCurves(),
    samples: makeSamples(),
    events: make("div", {}),
    settings: make("div", {}),
    settingsTitle: make("summary", {}, "Settings"),
  };
  parts.controls = controls(parts);
  parts.save = make("button", { type: "button", class: "button", onclick: () => ask("save") });
  parts.stop = make("button", { type: "button", class: "button", onclick: confirmStop });
  fill(parts.save, "check", "Save now");
  fill(parts.stop, "close", "Save and stop");
  parts.buttons.append(parts.save, parts.stop);
  parts.dialog = make("dialog", {
    id: "stop-run",
    class: "panel",
    "aria-labelledby": "stop-run-title",
  });
  parts.now = make(
    "section",
    { class: "card now", "aria-label": "Now" },
    make("div", { class: "row" }, parts.headline, parts.buttons),
    parts.share,
    parts.figures,
    parts.message,
    parts.facts,
  );
  parts.below = [
    parts.controls.element,
    parts.curves.element,
    parts.samples.element,
    make(
      "details",
      { class: "part more" },
      make("summary", {}, "Events"),
      parts.events,
      saveButtons("events", filesOf("Events", parts.events)),
    ),
    make(
      "details",
      { class: "part more" },
      parts.settingsTitle,
      parts.settings,
      saveButtons("settings", filesOf("Settings", parts.settings)),
    ),
  ];
  root.append(parts.runs, parts.now, parts.alarms, ...parts.below, parts.dialog);
  return parts;
}

/** A table of the page, as a drawing and as rows. */
function filesOf(title, element) {
  return {
    svg: () => pictureOf(title, element),
    table: () =>
      [...element.querySelectorAll("tr")].map(({ cells }) =>
        [...cells].map(({ textContent }) => textContent),
      ),
  };
}

function controls(parts) {
  const score = make("select", { onchange: () => setParams({ score: score.value }) });
  const axes = Object.entries(AXES).map(([key, { title }]) => {
    const button = make(
      "button",
      { type: "button", "data-key": key, onclick: () => setParams({ x: key }) },
      title,
    );
    return button;
  });
  const smooth = make("input", {
    type: "range",
    min: "0",
    max: "0.98",
    step: "0.02",
    oninput: () => setParams({ smooth: smooth.value }),
  });
  const check = (name, label, on, off) => {
    const input = make("input", {
      type: "checkbox",
      onchange: () => setParams({ [name]: input.checked ? on : off }),
    });
    return { input, element: make("label", { class: "check" }, input, label) };
  };
  const log = check("log", "Log scale", "1", null);
  const perplexity = check("perplexity", "Perplexity", "1", null);
  const marks = check("marks", "Events", null, "0");
  const save = saveButtons("training", {
    table: asRows,
    json: () => watched.chosen.map((name) => watched.whole[name]),
  });
  const element = make(
    "div",
    { class: "controls" },
    make("div", { class: "segments", role: "group", "aria-label": "Horizontal axis" }, ...axes),
    make("label", { class: "check" }, make("span", {}, "Score"), score),
    make("label", { class: "check" }, make("span", {}, "Smoothing"), smooth),
    log.element,
    perplexity.element,
    marks.element,
    save,
  );
  return {
    element,
    show(options) {
      for (const button of axes)
        button.setAttribute("aria-pressed", `${button.dataset.key === options.x}`);
      score.replaceChildren(
        ...options.scores.map(([value, title]) => make("option", { value }, title)),
      );
      score.value = options.score;
      score.parentElement.hidden = options.scores.length < 2;
      if (document.activeElement !== smooth) smooth.value = options.smoothing;
      log.input.checked = options.isLog;
      perplexity.input.checked = options.isPerplexity;
      marks.input.checked = options.hasMarks;
    },
  };
}

function drawSoon() {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(draw);
}

function draw() {
  const { runs, chosen, whole, error } = watched;
  const shown = chosen.map((name) => whole[name]).filter(Boolean);
  drawRuns(runs, chosen);
  const main = shown[0];
  view.now.hidden = !main && !error && runs.length > 0;
  for (const part of view.below) if (part !== view.samples.element) part.hidden = !main;
  drawError(error, runs);
  if (!main) return;
  if (main.status.name !== draw.main) view.samples.reset();
  draw.main = main.status.name;
  drawNow(main);
  const options = optionsOf(shown);
  view.controls.show(options);
  view.curves.show(shown, options);
  view.samples.show(main.samples);
  view.alarms.replaceChildren(...alarms(main));
  view.events.replaceChildren(events(main));
  view.settingsTitle.textContent = shown.length > 1 ? "Settings that differ" : "Settings";
  drawSettings(shown);
}

function drawError(error, runs) {
  if (error) {
    view.message.textContent = error.message;
    view.message.classList.add("error");
  } else if (view.message.classList.contains("error")) {
    view.message.classList.remove("error");
    view.message.textContent = "";
  }
  if (!runs.length)
    view.headline.textContent = error ? "The runs cannot be read." : "There are no runs here.";
}

/** The runs of the server: what is shown, and of several, which. */
function drawRuns(runs, chosen) {
  view.runs.hidden = runs.length < 2;
  if (view.runs.contains(document.activeElement) && view.runs.children.length === runs.length) {
    [...view.runs.children].forEach((chip, index) => paint(chip, runs[index], chosen));
    return;
  }
  const chips = runs.map((run) => {
    const chip = make("button", { type: "button", class: "chip", onclick: () => toggle(run.name) });
    paint(chip, run, chosen);
    return chip;
  });
  view.runs.replaceChildren(...chips);
}

function paint(chip, { name, state }, chosen) {
  const place = chosen.indexOf(name);
  chip.setAttribute("aria-pressed", `${place >= 0}`);
  chip.className = place >= 0 ? `chip run-${place}` : "chip";
  chip.disabled = place < 0 && chosen.length >= MAX_CHOSEN;
  chip.replaceChildren(
    make("span", { class: "key line", "aria-hidden": "true" }),
    make("span", { dir: "auto" }, name),
    make("span", { class: "hint" }, state),
  );
}

function toggle(name) {
  const { chosen } = watched;
  const others = chosen.filter((each) => each !== name);
  if (chosen.includes(name) && !others.length) return; // one stays
  setParams({ runs: addressed(chosen.includes(name) ? others : [...chosen, name]) });
}

function drawNow(main) {
  const { status } = main;
  if (view.headline.textContent !== status.headline) view.headline.textContent = status.headline;
  view.now.dataset.state = status.state;
  view.share.hidden = status.share === null || !isLive(status);
  view.share.value = status.share ?? 0;
  view.facts.textContent = factsLine(main);
  const figures = [
    [
      "Step",
      status.limits.steps
        ? `${NUMBER.format(status.step)} of ${NUMBER.format(status.limits.steps)}`
        : NUMBER.format(status.step),
    ],
    ["Epoch", status.epoch === null ? null : PLAIN.format(status.epoch)],
    ["Time", status.seconds === null ? null : duration(status.seconds)],
    ["Training loss", status.loss === null ? null : status.loss.toFixed(3)],
    [
      "Best",
      status.best && status.best.score !== null
        ? `${status.best.words} at step ${NUMBER.format(status.best.step ?? 0)}`
        : null,
    ],
    ["Saved", status.saved_step === null ? null : `step ${NUMBER.format(status.saved_step)}`],
    [
      "Speed",
      status.tokens_per_s === null ? null : `${NUMBER.format(status.tokens_per_s)} tokens/s`,
    ],
    ["Memory", status.memory_mb === null ? null : `${NUMBER.format(status.memory_mb)} MB`],
  ];
  if (status.n_unreadable) figures.push(["Damaged lines", NUMBER.format(status.n_unreadable)]);
  view.figures.replaceChildren(
    ...figures
      .filter(([, value]) => value !== null)
      .map(([name, value]) =>
        make("div", {}, make("dt", {}, name), make("dd", { class: "number" }, value)),
      ),
  );
  drawButtons(main);
}

function drawButtons({ status }) {
  const canAsk = watched.takesToken && watched.hasToken;
  view.buttons.hidden = !canAsk || status.state !== "training";
  const asked = view.asked;
  if (!asked) return;
  const isDone =
    status.name !== asked.name ||
    !isLive(status) ||
    (asked.action === "save" && (status.saved_step ?? 0) > asked.saved);
  if (!isDone) return;
  if (status.name === asked.name)
    say(asked.action === "save" ? `Saved at step ${NUMBER.format(status.saved_step)}.` : "");
  view.asked = null;
  for (const button of [view.save, view.stop]) button.disabled = false;
}

function confirmStop() {
  const { status } = watched.whole[watched.chosen[0]];
  const stop = make("button", {
    type: "button",
    class: "button",
    onclick: () => {
      view.dialog.close();
      ask("stop");
    },
  });
  stop.append("Save and stop");
  const cancel = make(
    "button",
    { type: "button", class: "button", onclick: () => view.dialog.close() },
    "Go on training",
  );
  openPanel(
    view.dialog,
    "Stop this training?",
    make(
      "p",
      {},
      `${status.name} is saved after the current step and then ends. The command that started it continues from there.`,
    ),
    make("div", { class: "choice" }, cancel, stop),
  );
  cancel.focus();
}

async function ask(action) {
  const { status } = watched.whole[watched.chosen[0]];
  view.asked = { name: status.name, action, saved: status.saved_step ?? 0 };
  for (const button of [view.save, view.stop]) button.disabled = true;
  say(action === "save" ? "Saving after this step …" : "Saving and stopping after this step …");
  try {
    await control(status.name, action);
  } catch (error) {
    view.asked = null;
    for (const button of [view.save, view.stop]) button.disabled = false;
    say(error.message);
  }
}

function say(text) {
  view.message.textContent = text;
}

async function drawSettings(shown) {
  const names = shown.map(({ status }) => status.name);
  if (names.length > 1 && JSON.stringify(names) !== JSON.stringify(differences.names)) {
    differences = { names, settings: {} };
    try {
      differences = await post("runs/differences", { names });
    } catch (error) {
      watched.set({ error });
    }
  }
  view.settings.replaceChildren(settings(shown, differences.settings));
}
