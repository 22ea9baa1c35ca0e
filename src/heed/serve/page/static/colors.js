// Colors of numbers. Both scales keep their order without color vision.

const SEQUENTIAL = {
  light: [[255, 255, 255], [190, 224, 219], [96, 172, 166], [20, 104, 104], [3, 46, 58]],
  dark: [[22, 27, 29], [20, 63, 66], [31, 116, 113], [99, 187, 172], [228, 246, 214]],
};
const DIVERGING = {
  light: [[160, 74, 10], [240, 190, 130], [250, 249, 246], [140, 196, 196], [8, 88, 96]],
  dark: [[250, 176, 104], [140, 84, 36], [26, 30, 32], [36, 104, 106], [116, 214, 200]],
};

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** 256 colors as bytes, four each, of the scale for numbers from 0 to 1 or from −1 to 1. */
export function colorTable(isSigned) {
  const stops = (isSigned ? DIVERGING : SEQUENTIAL)[isDark() ? "dark" : "light"];
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
