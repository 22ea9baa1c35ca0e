// A chart of curves: SVG lines with bands, marks and a crosshair that all charts share.

import { announce, draw, make, onceAFrame } from "./element.js";
import { saveButtons } from "./save.js";
import { numbersTable, rowsOf, standalone } from "./training-table.js";

const HEIGHT = 208;
const TICK = new Intl.NumberFormat("en", { maximumSignificantDigits: 4, notation: "compact" });
const EDGE = { top: 14, right: 22, bottom: 26, left: 54 };

/** What the crosshair of all charts is at: a number on the shared x axis, or null. */
const crosshair = { x: null, charts: new Set() };

/**
 * A chart, empty at first.
 * @param {string} key names its files
 * @returns {{element: HTMLElement, show: (data: Data) => void}}
 *
 * Data: {title, x: {name, format, ticks}, y: {format, ticks, isLog, from}, span: [low, high] of x,
 * lines: Line[], marks: {x, kind, text}[], ends: {x, low, middle, high, from} | null, note}. `ticks`,
 * `tick` (how a number on the y axis is written) and `from` may be missing.
 * Line: {name, run, kind: "line" | "faint" | "points", points: [x, y][], band: [x, low, high][]}
 */
export function makeChart(key) {
  let title = "";
  const heading = make("h2");
  const readout = make("p", { class: "readout" });
  const plot = make("div", {
    class: "plot",
    tabindex: "0",
    role: "group",
  });
  const twin = make("details", { class: "twin" }, make("summary", {}, "Table and files"));
  const files = saveButtons(key, {
    svg: () => standalone(title, plot.firstElementChild, data),
    table: () => rowsOf(data).map((row) => row.map((value) => value ?? "")),
  });
  const note = make("p", { class: "note", hidden: true });
  const element = make(
    "figure",
    { class: "chart" },
    make("figcaption", {}, heading, readout),
    plot,
    note,
    twin,
  );
  let data = null;
  let scales = null;

  function redraw() {
    if (!data || !plot.clientWidth) return;
    scales = scalesOf(data, plot.clientWidth);
    plot.replaceChildren(picture(title, data, scales));
    drawCrosshair();
    if (twin.open) fillTwin();
  }

  function drawCrosshair() {
    plot.querySelector(".crosshair")?.remove();
    if (!scales) return;
    const found = crosshair.x === null ? null : valuesAt(data, crosshair.x);
    readout.replaceChildren(...words(data, found));
    if (found) plot.firstElementChild?.append(crossed(found, scales, crosshair.x));
  }

  function fillTwin() {
    twin.replaceChildren(twin.firstElementChild, numbersTable(title, data), files);
  }

  twin.addEventListener("toggle", () => twin.open && fillTwin());
  plot.addEventListener("pointermove", (event) => {
    if (!scales) return;
    const x = scales.fromX(event.clientX - plot.getBoundingClientRect().left);
    moveCrosshair(Math.max(scales.x0, Math.min(scales.x1, x)));
  });
  plot.addEventListener("pointerleave", () => moveCrosshair(null));
  plot.addEventListener("blur", () => moveCrosshair(null));
  plot.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") moveCrosshair(null);
    if (!by || !data) return;
    event.preventDefault();
    const places = placesOf(data);
    const now =
      crosshair.x === null ? places.length - (by < 0 ? 0 : 1) : nearest(places, crosshair.x);
    const next = Math.max(0, Math.min(places.length - 1, now + by));
    moveCrosshair(places[next] ?? null);
    requestAnimationFrame(() => announce(`${title}: ${readout.textContent}`, 150));
  });
  new ResizeObserver(redraw).observe(plot);
  crosshair.charts.add(drawCrosshair);

  return {
    element,
    show(changed) {
      data = changed;
      if (title !== data.title) {
        title = data.title;
        heading.textContent = title;
        const help = "a chart. The left and right arrow keys read its values.";
        plot.setAttribute("aria-label", `${title}: ${help}`);
      }
      element.hidden = !data.lines.some((line) => line.points.length);
      note.textContent = data.note ?? "";
      note.hidden = !data.note;
      redraw();
    },
  };
}

function moveCrosshair(x) {
  if (x === crosshair.x) return;
  crosshair.x = x;
  drawCrosshairs();
}

const drawCrosshairs = onceAFrame(() => {
  for (const drawIt of crosshair.charts) drawIt();
});

/** All places on the x axis that have a value, in order. */
function placesOf(data) {
  const main = data.lines.reduce((a, b) => (b.points.length > a.points.length ? b : a));
  return main.points.map(([x]) => x);
}

/** The index of the number that is nearest to x; the numbers are in order. */
function nearest(numbers, x) {
  let [low, high] = [0, numbers.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - numbers[low - 1] < numbers[low] - x ? low - 1 : low;
}

/** The point of each line that is nearest to x. */
function valuesAt(data, x) {
  const found = [];
  for (const line of data.lines) {
    if (!line.points.length || line.kind === "faint") continue;
    const place = nearest(
      line.points.map(([at]) => at),
      x,
    );
    const band = line.band?.[place];
    found.push({ line, x: line.points[place][0], y: line.points[place][1], band });
  }
  return found;
}

/** The values under the crosshair; without one, the last of each line. */
function words(data, found) {
  const shown =
    found ??
    data.lines
      .filter((line) => line.points.length && line.kind !== "faint")
      .map((line) => ({ line, y: line.points.at(-1)[1], band: line.band?.at(-1) }));
  const parts = shown.map(({ line, y, band }) => {
    const range = band ? ` (${data.y.format(band[1])}–${data.y.format(band[2])})` : "";
    const key =
      shown.length > 1 &&
      make("span", { class: `key run-${line.run} ${line.kind}`, "aria-hidden": "true" });
    return make(
      "span",
      { class: "value" },
      key || null,
      `${line.name} `,
      make("b", {}, data.y.format(y)),
      range,
    );
  });
  const at = found?.length ? [make("span", { class: "at" }, data.x.format(found[0].x))] : [];
  // Blanks, for those to whom it is read.
  return [...at, ...parts].flatMap((part, index) => (index ? [" ", part] : [part]));
}

function scalesOf(data, width) {
  const points = data.lines.flatMap((line) => line.points);
  const bands = data.lines.flatMap((line) => line.band ?? []);
  const [x0, x1] = data.span;
  const far = data.ends ? [data.ends.low, data.ends.high] : [];
  const isLog = data.y.isLog;
  const ys = [
    ...points.map(([, y]) => y),
    ...bands.flatMap(([, low, high]) => [low, high]),
    ...far,
  ];
  let [y0, y1] = extent(
    isLog ? ys.filter((y) => y > 0).map(Math.log10) : ys,
    isLog ? [-1, 1] : [0, 1],
  );
  if (data.y.from !== undefined && !isLog) y0 = Math.min(data.y.from, y0);
  const margin = (y1 - y0 || Math.abs(y1) || 1) * 0.06;
  const isFromZero = !isLog && y0 >= 0 && y0 - margin < 0;
  [y0, y1] = [isFromZero ? 0 : y0 - margin, y1 + margin];
  const inner = Math.max(40, width - EDGE.left - EDGE.right);
  const bottom = HEIGHT - EDGE.bottom;
  const span = x1 - x0 || 1;
  const place = (y) => (isLog ? Math.log10(Math.max(y, 10 ** y0)) : y);
  return {
    width,
    x0,
    x1: x0 + span,
    y0,
    y1,
    isLog,
    bottom,
    inner,
    toX: (x) => EDGE.left + ((x - x0) / span) * inner,
    fromX: (left) => x0 + ((left - EDGE.left) / inner) * span,
    toY: (y) => bottom - ((place(y) - y0) / (y1 - y0)) * (bottom - EDGE.top),
  };
}

function extent(values, otherwise) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : otherwise;
}

/** Round numbers between two others, about `n` of them. */
function ticksOf(low, high, n) {
  const rough = (high - low) / n;
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough * 0.8);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) {
    ticks.push(Number(tick.toPrecision(12)));
  }
  return ticks;
}

/** Powers of ten, with 2 and 5 between them where there is room. */
function logTicks(low, high) {
  const factors =
    high - low > 2.5 ? [1] : high - low > 0.8 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  const ticks = [];
  for (let power = Math.floor(low); power <= high; power += 1) {
    for (const factor of factors) {
      const tick = factor * 10 ** power;
      if (Math.log10(tick) >= low && Math.log10(tick) <= high) ticks.push(tick);
    }
  }
  return ticks;
}

function picture(title, data, scales) {
  const { width, toX, toY, bottom, inner } = scales;
  const { y0, y1 } = scales;
  const yTicks = scales.isLog
    ? logTicks(y0, y1)
    : (data.y.ticks?.(y0, y1, 4) ?? ticksOf(y0, y1, 4));
  const format = data.y.tick ?? ((y) => TICK.format(y));
  const xTicks =
    data.x.ticks?.(scales.x0, scales.x1, inner / 90) ?? ticksOf(scales.x0, scales.x1, inner / 90);
  const grid = yTicks.map((tick) =>
    draw(
      "g",
      {},
      draw("line", {
        class: "grid",
        x1: EDGE.left,
        x2: width - EDGE.right,
        y1: toY(tick),
        y2: toY(tick),
      }),
      draw("text", { class: "tick y", x: EDGE.left - 8, y: toY(tick), dy: "0.32em" }, format(tick)),
    ),
  );
  const axis = xTicks.map((tick) =>
    draw("text", { class: "tick x", x: toX(tick), y: bottom + 18 }, data.x.format(tick, true)),
  );
  const marks = data.marks.map(({ x, kind, text }) => {
    const left = toX(x);
    return draw(
      "g",
      { class: `mark ${kind}` },
      draw("title", {}, text),
      draw("line", { x1: left, x2: left, y1: EDGE.top, y2: bottom }),
      draw("path", {
        d: GLYPHS[kind] ?? GLYPHS.note,
        transform: `translate(${left} ${EDGE.top - 6})`,
      }),
    );
  });
  const content = data.lines.map((line) => drawnLine(line, scales));
  return draw(
    "svg",
    {
      viewBox: `0 0 ${width} ${HEIGHT}`,
      width,
      height: HEIGHT,
      role: "img",
      "aria-label": summary(title, data),
    },
    ...grid,
    draw("line", { class: "axis", x1: EDGE.left, x2: width - EDGE.right, y1: bottom, y2: bottom }),
    ...axis,
    ...marks,
    ...content,
    ...(data.ends ? [drawnEnds(data.ends, scales)] : []),
  );
}

/** The signs on top of the lines that mark events, around (0, 0). */
const GLYPHS = {
  alarm: "M0 -5 L5 4 L-5 4 Z",
  best: "M0 -5 L1.5 -1.5 L5 -1.5 L2.2 0.8 L3.2 4.5 L0 2.4 L-3.2 4.5 L-2.2 0.8 L-5 -1.5 L-1.5 -1.5 Z",
  skipped: "M-4 -4 L4 4 M4 -4 L-4 4",
  mend: "M4 -4 L-4 0 L4 4 Z",
  resumed: "M-4 -4 L4 0 L-4 4 Z",
  pause: "M-4 -4 H-1 V4 H-4 Z M1 -4 H4 V4 H1 Z",
  checkpoint: "M-3.5 -3.5 H3.5 V3.5 H-3.5 Z",
  end: "M-4 -4 H4 V4 H-4 Z",
  note: "M-2 0 A2 2 0 1 0 2 0 A2 2 0 1 0 -2 0",
};

function summary(title, data) {
  const parts = data.lines
    .filter((line) => line.points.length && line.kind !== "faint")
    .map(({ name, points }) => {
      const [first, last] = [points[0], points.at(-1)];
      const count = points.length === 1 ? "1 value" : `${points.length} values`;
      return `${name}: ${count}, from ${data.y.format(first[1])} to ${data.y.format(last[1])}`;
    });
  return `${title}. ${parts.join(". ")}`;
}

function drawnLine(line, scales) {
  const { toX, toY } = scales;
  const group = draw("g", { class: `line run-${line.run} ${line.kind}` });
  if (line.band?.length > 1) {
    const above = line.band.map(([x, , high]) => `${toX(x).toFixed(1)} ${toY(high).toFixed(1)}`);
    const below = line.band
      .map(([x, low]) => `${toX(x).toFixed(1)} ${toY(low).toFixed(1)}`)
      .reverse();
    group.append(draw("path", { class: "band", d: `M${[...above, ...below].join("L")}Z` }));
  }
  const pixels = thinned(line.points.map(([x, y]) => [toX(x), toY(y)]));
  if (pixels.length > 1) {
    const d = `M${pixels.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
    group.append(draw("path", { class: "curve", d }));
  }
  if (line.kind === "points" || pixels.length === 1) {
    for (const [x, y] of pixels.length > 80 ? [] : pixels) {
      group.append(draw("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: 3 }));
    }
  }
  return group;
}

/** Of many points in one column of pixels, the first, the lowest, the highest and the last. */
function thinned(pixels) {
  const kept = [];
  for (let start = 0; start < pixels.length;) {
    const column = Math.floor(pixels[start][0]);
    let end = start;
    while (end < pixels.length && Math.floor(pixels[end][0]) === column) end += 1;
    const here = pixels.slice(start, end);
    if (here.length <= 4) kept.push(...here);
    else {
      const ys = here.map(([, y]) => y);
      const chosen = [0, ys.indexOf(Math.min(...ys)), ys.indexOf(Math.max(...ys)), here.length - 1];
      kept.push(...[...new Set(chosen)].sort((a, b) => a - b).map((place) => here[place]));
    }
    start = end;
  }
  return kept;
}

/** Where a score is expected to end: a bar at the right, and the way there. */
function drawnEnds({ x, low, middle, high, from }, { toX, toY }) {
  const left = toX(x);
  const begin = `M${toX(from[0])} ${toY(from[1])}`;
  return draw(
    "g",
    { class: "expected" },
    draw("title", {}, "Where it is expected to end, with a probability of 80 %."),
    draw("path", { class: "cone", d: `${begin}L${left} ${toY(low)}L${left} ${toY(high)}Z` }),
    draw("path", { class: "way", d: `${begin}L${left} ${toY(middle)}` }),
    draw("line", { x1: left, x2: left, y1: toY(low), y2: toY(high) }),
    draw("circle", { cx: left, cy: toY(middle), r: 3.5 }),
  );
}

function crossed(found, { toX, toY, bottom }, x) {
  const left = toX(found[0]?.x ?? x);
  return draw(
    "g",
    { class: "crosshair" },
    draw("line", { x1: left, x2: left, y1: EDGE.top, y2: bottom }),
    ...found.map(({ line, x: at, y }) =>
      draw("circle", { class: `run-${line.run}`, cx: toX(at), cy: toY(y), r: 4 }),
    ),
  );
}
