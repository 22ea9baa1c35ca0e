// Which curves there are, and how runs become lines of charts.

import { make } from "./element.js";
import { makeChart } from "./training-chart.js";
import { isLive } from "./training-data.js";

const PLAIN = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const FINE = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const TINY = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, notation: "scientific" });
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, notation: "compact" });

const fine = (value) =>
  value !== 0 && Math.abs(value) < 1e-5 ? TINY.format(value).toLowerCase() : FINE.format(value);

/** What stands on the x axis: its column, its name, how it is written, where it has ticks. */
export const AXES = {
  step: {
    title: "Steps",
    name: "step",
    format: (x, isTick) => (isTick ? WHOLE.format(x) : `step ${WHOLE.format(x)}`),
  },
  epoch: {
    title: "Epochs",
    name: "epoch",
    format: (x, isTick) => (isTick ? PLAIN.format(x) : `epoch ${PLAIN.format(x)}`),
  },
  seconds: { title: "Time", name: "time", format: duration, ticks: timeTicks },
};

const SCORES = {
  bleu: "BLEU",
  chrf: "chrF",
  accuracy: "Accuracy",
  f1: "F1",
  bits: "Bits a character",
};

/** `1h05m`, `3m20s`, `40s`. */
export function duration(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  const [minutes, rest] = [Math.floor(whole / 60), whole % 60];
  if (minutes < 60) return rest ? `${minutes}m${String(rest).padStart(2, "0")}s` : `${minutes}m`;
  return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, "0")}m`;
}

function timeTicks(low, high, n) {
  const steps = [
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400,
  ];
  const wanted = (high - low) / n;
  const step = steps.find((each) => each >= wanted) ?? Math.ceil(wanted / 86_400) * 86_400;
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
  return ticks;
}

/** The charts, in order. `lines` makes the lines of one run. */
const CHARTS = [
  {
    key: "score",
    title: "Score",
    format: (y) => y.toFixed(1),
    lines: ({ validations, pick, options }) => [
      {
        name: SCORES[options.score],
        kind: "points",
        points: pick(validations, options.score),
        band: band(validations, options),
      },
    ],
    ends: true,
    marks: ["best", "alarm", "resumed", "mend"],
  },
  {
    key: "loss",
    title: "Loss",
    format: (y) => y.toFixed(3),
    lines: ({ steps, validations, pick, options }) => {
      const raw = pick(steps, "loss", options.isPerplexity ? Math.exp : undefined);
      return [
        { name: "each", kind: "faint", points: raw },
        { name: "training", kind: "line", points: smoothed(raw, options.smoothing) },
        {
          name: "development",
          kind: "points",
          points: pick(validations, "loss", options.isPerplexity ? Math.exp : undefined),
        },
      ];
    },
    hasLog: true,
    marks: ["alarm", "skipped", "resumed", "mend", "checkpoint"],
  },
  {
    key: "learning_rate",
    title: "Learning rate",
    format: fine,
    tick: fine,
    from: 0,
    marks: ["mend"],
  },
  {
    key: "gradient_norm",
    title: "Gradient norm",
    format: fine,
    from: 0,
    hasLog: true,
    marks: ["skipped"],
  },
  {
    key: "tokens_per_s",
    title: "Speed, target tokens a second",
    format: SHORT.format,
    from: 0,
    marks: ["resumed"],
  },
  { key: "memory_mb", title: "Memory at most, MB", format: WHOLE.format, from: 0, marks: [] },
  {
    key: "left_s",
    title: "Time left",
    format: duration,
    tick: duration,
    ticks: timeTicks,
    from: 0,
    lines: ({ status, steps, pick }) => [
      { name: "", kind: "line", points: isLive(status) ? pick(steps, "left_s") : [] },
    ],
    marks: [],
  },
];

function band(validations, { score, x }) {
  const [low, high] = [validations[`${score}_low`] ?? [], validations[`${score}_high`] ?? []];
  const places = validations[x].map((at, row) => [at, low[row], high[row]]);
  const known = places.filter((place) =>
    place.every((each) => each !== null && each !== undefined),
  );
  // A band that begins in the middle would not belong to the points by number.
  return known.length === places.length ? known : undefined;
}

/** Exponentially smoothed; without the pull towards zero at the beginning. */
export function smoothed(points, weight) {
  let [sum, norm] = [0, 0];
  return points.map(([x, y]) => {
    sum = weight * sum + (1 - weight) * y;
    norm = weight * norm + (1 - weight);
    return [x, sum / norm];
  });
}

/** All charts as one element. */
export function makeCurves() {
  const charts = new Map(CHARTS.map(({ key }) => [key, makeChart(key)]));
  for (const [key, { element }] of charts) element.dataset.curve = key;
  const element = make(
    "div",
    { class: "charts" },
    ...[...charts.values()].map((chart) => chart.element),
  );
  return {
    element,
    charts,
    /** @param {object[]} runs wholes, the main one first @param {object} options */
    show(runs, options) {
      const all = CHARTS.map((spec) => dataOf(spec, runs, options));
      const span = spanOf(all);
      for (const [place, { key }] of CHARTS.entries())
        charts.get(key).show({ ...all[place], span });
    },
  };
}

/** What the x axis of all charts spans, so that their crosshairs stand in one line. */
function spanOf(all) {
  let end = 0;
  for (const { lines, ends } of all) {
    for (const { points } of lines) end = Math.max(end, points.at(-1)?.[0] ?? 0);
    end = Math.max(end, ends?.x ?? 0);
  }
  return [0, end || 1];
}

function dataOf(spec, runs, options) {
  const axis = AXES[options.x];
  const pick = (table, column, change = (y) => y) =>
    (table[column] ?? [])
      .map((y, row) => [table[options.x][row], y === null ? null : change(y)])
      .filter(([x, y]) => x !== null && y !== null && Number.isFinite(y));
  const plain = ({ steps }) => [{ name: "", kind: "line", points: pick(steps, spec.key) }];
  const lines = runs.flatMap((whole, run) =>
    (spec.lines ?? plain)({ ...whole, pick, options }).map((line) => ({
      ...line,
      run,
      name: runs.length > 1 ? `${whole.status.name} ${line.name}`.trim() : line.name,
      points: inOrder(line.points),
    })),
  );
  const [main] = runs;
  const isPerplexity = spec.key === "loss" && options.isPerplexity;
  return {
    title: isPerplexity ? "Perplexity" : spec.title,
    x: axis,
    y: {
      format: isPerplexity ? (y) => (y < 1000 ? y.toFixed(2) : SHORT.format(y)) : spec.format,
      tick: spec.tick,
      ticks: spec.ticks,
      isLog: Boolean(spec.hasLog && options.isLog),
      from: spec.from,
    },
    lines,
    marks: main && options.hasMarks ? marksOf(main, spec.marks, options) : [],
    ends: main && spec.ends ? endsOf(main, options) : null,
    note: noteOf(spec, runs, options),
  };
}

/** Without the steps back of a clock that was set. */
function inOrder(points) {
  let last = -Infinity;
  return points.filter(([x]) => {
    const isLater = x >= last;
    if (isLater) last = x;
    return isLater;
  });
}

function marksOf(main, kinds, { x }) {
  // Of the best ones, the best.
  const best = main.marks.findLast(({ kind }) => kind === "best");
  return main.marks
    .filter((mark) => kinds.includes(mark.kind) && mark[x] !== null)
    .filter((mark) => mark.kind !== "best" || mark === best)
    .map((mark) => ({ x: mark[x], kind: mark.kind, text: mark.text }));
}

/** Where the score is expected to be at the end, if that is on this axis. */
function endsOf({ status, validations }, { score, x }) {
  if (status.forecast_of !== score || status.state === "finished") return null;
  const [low, middle, high] = ["low", "middle", "high"].map((name) =>
    validations[`forecast_${name}`].at(-1),
  );
  const now = status[x] ?? null;
  if (low === null || low === undefined || now === null || !status.share) return null;
  return {
    x: now / status.share,
    low,
    middle,
    high,
    from: [validations[x].at(-1), validations[score].at(-1)],
  };
}

function noteOf(spec, runs, { score }) {
  if (spec.key !== "score")
    return runs.some((run) => run.steps_per_row > 1 && spec.key === "loss")
      ? "Of a long run each point is the mean of several."
      : "";
  const signatures = [
    ...new Set(runs.map(({ status }) => status.signatures[score]).filter(Boolean)),
  ];
  if (!signatures.length) return "";
  const isOne = signatures.length === 1;
  return isOne
    ? `sacreBLEU ${signatures[0]}; the band is the 95\u00a0% interval.`
    : `Not comparable: ${signatures.join(" and ")}`;
}

/** The scores that these runs have. */
export function scoresOf(runs) {
  return Object.entries(SCORES).filter(([key]) =>
    runs.some(({ validations }) => validations[key]?.some((value) => value !== null)),
  );
}
