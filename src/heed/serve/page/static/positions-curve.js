// A curve or a row of bars with axes, as SVG.
import { ticks, wholeTicks } from "./drawing.js";
import { draw, make } from "./element.js";

const [WIDTH, HEIGHT] = [520, 190];
const BOX = { left: 44, right: 508, top: 12, bottom: 152 };
const CHARACTER = 10; // width in the larger type of narrow screens
const MAX_DOTS = 160;

/**
 * @param {object} options
 * @param {string} options.label what is shown
 * @param {string} options.name of the horizontal axis
 * @param {ArrayLike<number>} options.values one for each place
 * @param {number} [options.first] the number of the first place
 * @param {number} options.at the place that is marked; later by `mark(at)` of what is returned
 * @param {((x: number) => number)|null} [options.wave] the function between the places
 * @param {boolean} [options.isBars] bars from 0 in the place of a line
 * @param {number|null} [options.end] from here on the ground is shaded
 * @param {[number, number]} [options.range] of the vertical axis
 * @param {(value: number) => string} [options.format] spells a number of that axis
 * @returns {HTMLElement}
 */
export function curve(options) {
  const { label, name, values, first = 0, at, wave = null, isBars, end = null, range } = options;
  const format = options.format ?? String;
  const last = first + values.length - 1;
  let [low, high] = range ?? [0, 0];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (low === high) high = low + 1;
  const labels = ticks(low, high, 4).map((value) => [value, format(value)]);
  const longest = Math.max(...labels.map(([, text]) => text.length));
  const left = Math.max(BOX.left, longest * CHARACTER);
  const x = (place) => left + ((place - first + 0.5) / values.length) * (BOX.right - left);
  const y = (value) => BOX.bottom - ((value - low) / (high - low)) * (BOX.bottom - BOX.top);
  const parts = [];
  if (end !== null && end > first && end <= last) {
    const from = x(end - 0.5);
    const size = { x: from, y: BOX.top, width: BOX.right - from, height: BOX.bottom - BOX.top };
    parts.push(draw("rect", { class: "beyond", ...size }));
  }
  for (const [value, text] of labels) {
    const where = { x: left - 6, y: y(value) + 4, "text-anchor": "end" };
    parts.push(
      draw("line", { class: "grid", x1: left, x2: BOX.right, y1: y(value), y2: y(value) }),
      draw("text", { class: "tick", ...where }, text),
    );
  }
  for (const place of wholeTicks(first, last, 6)) {
    const where = { x: x(place), y: BOX.bottom + 16, "text-anchor": "middle" };
    parts.push(draw("text", { class: "tick", ...where }, place));
  }
  const middle = { x: (left + BOX.right) / 2, y: HEIGHT - 4, "text-anchor": "middle" };
  parts.push(draw("text", { class: "tick", ...middle }, name));
  parts.push(...(isBars ? bars(values, first, x, y, left) : line(values, first, x, y, wave)));
  const stroke = draw("line", { class: "now", x1: 0, x2: 0, y1: BOX.top, y2: BOX.bottom });
  const dot = draw("circle", { class: "now", cx: 0, cy: 0, r: 5 });
  parts.push(stroke, dot);
  const box = `0 0 ${WIDTH} ${HEIGHT}`;
  const svg = draw(
    "svg",
    { class: "curve", viewBox: box, role: "img", "aria-label": label },
    ...parts,
  );
  const element = make("div", { class: "curve-frame" }, svg);
  element.mark = (place) => {
    const value = values[place - first];
    const display = value === undefined ? "none" : "inline";
    for (const one of [stroke, dot]) one.setAttribute("display", display);
    if (value === undefined) return;
    stroke.setAttribute("transform", `translate(${x(place)} 0)`);
    dot.setAttribute("transform", `translate(${x(place)} ${y(value)})`);
  };
  element.mark(at);
  return element;
}

function line(values, first, x, y, wave) {
  const points = [];
  if (wave) {
    const steps = 1200;
    for (let step = 0; step <= steps; step += 1) {
      const place = first - 0.5 + (step / steps) * values.length;
      points.push(`${x(place).toFixed(2)},${y(wave(place)).toFixed(2)}`);
    }
  } else values.forEach((value, index) => points.push(`${x(first + index)},${y(value)}`));
  const found = [draw("polyline", { class: "line", points: points.join(" ") })];
  if (values.length <= MAX_DOTS) {
    values.forEach((value, index) => {
      found.push(draw("circle", { class: "dot", cx: x(first + index), cy: y(value), r: 1.75 }));
    });
  }
  return found;
}

function bars(values, first, x, y, left) {
  const wide = Math.max(0.6, Math.min(9, (x(first + 1) - x(first)) * 0.7));
  let path = "";
  values.forEach((value, index) => {
    path += `M${x(first + index).toFixed(2)},${y(0).toFixed(2)}V${y(value).toFixed(2)}`;
  });
  const zero = { x1: left, x2: BOX.right, y1: y(0), y2: y(0) };
  return [
    draw("line", { class: "zero", ...zero }),
    draw("path", { class: "bars", d: path, "stroke-width": wide }),
  ];
}
