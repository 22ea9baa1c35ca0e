// Colors of numbers. Both scales keep their order without color vision.

const SEQUENTIAL = {
  light: [
    [255, 255, 255],
    [190, 224, 219],
    [96, 172, 166],
    [20, 104, 104],
    [3, 46, 58],
  ],
  dark: [
    [22, 27, 29],
    [20, 63, 66],
    [31, 116, 113],
    [99, 187, 172],
    [228, 246, 214],
  ],
};
const DIVERGING = {
  light: [
    [160, 74, 10],
    [240, 190, 130],
    [250, 249, 246],
    [140, 196, 196],
    [8, 88, 96],
  ],
  dark: [
    [250, 176, 104],
    [140, 84, 36],
    [26, 30, 32],
    [36, 104, 106],
    [116, 214, 200],
  ],
};
/** For up to eight series, after Okabe and Ito: told apart without color vision. */
const SERIES = {
  light: ["#0c6b66", "#d9730d", "#4b5fb0", "#b03a7c", "#7a6a00", "#2f86c1", "#8c4a2f", "#5b5f66"],
  dark: ["#63cdc2", "#f0a35c", "#9aa9f2", "#ee8fc4", "#d8c65a", "#7dc3f2", "#d69a80", "#b4bac2"],
};

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const theme = () => (isDark() ? "dark" : "light");

/** The color of a series, by its number. */
export const seriesColor = (number) => SERIES[theme()][number % 8];

/** 256 colors as bytes, four each, of the scale for numbers from 0 to 1 or from −1 to 1. */
export function colorTable(isSigned, name = theme()) {
  const stops = (isSigned ? DIVERGING : SEQUENTIAL)[name];
  const table = new Uint8ClampedArray(256 * 4);
  for (let step = 0; step < 256; step += 1) {
    const place = (step / 255) * (stops.length - 1);
    const left = Math.min(Math.floor(place), stops.length - 2);
    for (let channel = 0; channel < 3; channel += 1) {
      const [from, to] = [stops[left][channel], stops[left + 1][channel]];
      table[step * 4 + channel] = from + (place - left) * (to - from);
    }
    table[step * 4 + 3] = 255;
  }
  return table;
}

/**
 * From numbers to colors.
 * @param {ArrayLike<number>} values −Infinity and NaN have no color
 * @param {number} [low] the number of the first color; by default 0, or the least if that is less
 * @param {number} [high] the number of the last color; by default the largest
 * @returns {{low, high, isSigned, isMasked, indexOf: (value: number) => number}}
 */
export function scaleOf(values, low, high) {
  let [least, most, isMasked] = [Infinity, -Infinity, false];
  for (let place = 0; place < values.length; place += 1) {
    const value = values[place];
    if (!Number.isFinite(value)) isMasked = true;
    else {
      if (value < least) least = value;
      if (value > most) most = value;
    }
  }
  least = low ?? Math.min(0, least);
  most = high ?? Math.max(most, least + 1e-9);
  const isSigned = least < 0;
  if (isSigned) {
    most = Math.max(-least, most);
    least = -most;
  }
  const indexOf = (value) =>
    Math.max(0, Math.min(255, Math.round(((value - least) / (most - least)) * 255)));
  return { low: least, high: most, isSigned, isMasked, indexOf };
}

/** The number of the last color for weights: 1, or less where all are small, as over long texts. */
export function highOf(...maps) {
  let most = 0;
  for (const map of maps) for (const value of map) if (value > most) most = value;
  return most >= 0.5 ? 1 : most || 1;
}

/** Color a canvas with one pixel for each number; what is not finite stays transparent. */
export function paint(canvas, values, nColumns, scale) {
  const table = new Uint32Array(colorTable(scale.isSigned).buffer);
  const nRows = values.length / nColumns;
  const image = new ImageData(nColumns, Math.max(1, nRows));
  const pixels = new Uint32Array(image.data.buffer);
  for (let place = 0; place < values.length; place += 1) {
    if (Number.isFinite(values[place])) pixels[place] = table[scale.indexOf(values[place])];
  }
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Call `element.redraw()` when the theme changes, as long as the element lives. */
export function redrawWithTheme(element) {
  themed.add(new WeakRef(element));
}

const themed = new Set();

function redraw() {
  for (const reference of themed) {
    const element = reference.deref();
    if (element) element.redraw();
    else themed.delete(reference);
  }
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
