// Drawings on a canvas: as large and as sharp as it is shown, drawn again with another size or theme.

import { redrawWithTheme } from "./colors.js";

const COLORS = [
  "ink",
  "ink-soft",
  "line",
  "line-strong",
  "accent",
  "doubt-line",
  "second",
  "surface",
  "paper",
];

/** Colors of the theme by the names of theme.css. */
export function inks() {
  const style = getComputedStyle(document.documentElement);
  const probe = document.createElement("span");
  document.body.append(probe);
  const found = {};
  for (const name of COLORS) {
    probe.style.color = `var(--${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return { ...found, font: style.fontFamily };
}

/**
 * Draw on a canvas in CSS pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {(context: CanvasRenderingContext2D, width: number, height: number, inks: object) => void} draw
 * @returns {() => void} draws again, at most once a frame
 */
export function painted(canvas, draw) {
  let isAsked = false;
  let colors = null;
  const context = canvas.getContext("2d");
  function now() {
    isAsked = false;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !height) return;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
    }
    context.setTransform(wide / width, 0, 0, high / height, 0, 0);
    context.clearRect(0, 0, width, height);
    colors ??= inks();
    draw(context, width, height, colors);
  }
  function again() {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(now);
  }
  canvas.redraw = () => {
    colors = null;
    again();
  };
  redrawWithTheme(canvas);
  new ResizeObserver(again).observe(canvas);
  return again;
}

/** About `count` round numbers from low to high. */
export function ticks(low, high, count = 6) {
  const rough = (high - low) / Math.max(1, count) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) {
    found.push(Number(at.toPrecision(12)));
  }
  return found;
}

/** The same for an axis of things that are counted: positions, dimensions, heads. */
export function wholeTicks(low, high, count) {
  return ticks(low, high, Math.min(count, Math.max(1, high - low)));
}

/** Numbers of 32 bits that were sent in base64. */
export function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}
