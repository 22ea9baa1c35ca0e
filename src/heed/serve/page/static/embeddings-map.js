// Thousands of points on a canvas: zoom, pan, hover, marked points and labels where there is room.

import { painted } from "./drawing.js";
import { draw as drawn, fill, make } from "./element.js";
import { readPiece } from "./pieces.js";
import { sheet, svgText } from "./save.js";

const MOST_LABELS = 90;
const [CELL, ROW] = [26, 16]; // pixels of the grid in which labels are kept apart
const NEAR = 14; // pixels within which the mouse is at a point
const [LEAST, MOST] = [0.6, 400]; // of the zoom

/**
 * @param {object} options
 * @param {string} options.label what the map shows
 * @param {string[]} options.pieces
 * @param {Float32Array} options.points x and y of each
 * @param {{count: number, color: string}[]} options.groups of the points in their order; the color
 *   is a name of theme.css
 * @param {(index: number) => void} options.onPick a point was chosen
 */
export function scatter({ label, pieces, points, groups, onPick }) {
  const canvas = make("canvas", {
    class: "map",
    tabindex: "0",
    role: "img",
    "aria-label": `${label}. The arrow keys move the map, plus and minus zoom, 0 shows all.`,
  });
  const tip = make("div", { class: "tip", dir: "auto", hidden: true });
  const starts = [];
  groups.reduce((start, { count }) => (starts.push(start), start + count), 0);
  const hidden = new Set();
  const bounds = boundsOf(points);
  const smallest = 1.5 + Math.min(2, Math.max(0, Math.log2(2000 / pieces.length) * 0.5)); // of discs
  let seen = { x: (bounds[0] + bounds[1]) / 2, y: (bounds[2] + bounds[3]) / 2, zoom: 1 };
  let marked = { chosen: -1, near: [] };
  let size = [1, 1];
  let image = null;
  const widths = new Float32Array(pieces.length); // of labels, once they are measured

  const scaleOf = (width, height) =>
    Math.min(width / (bounds[1] - bounds[0]), height / (bounds[3] - bounds[2])) * 0.92 * seen.zoom;
  function place(index) {
    const scale = scaleOf(...size);
    return [
      size[0] / 2 + (points[2 * index] - seen.x) * scale,
      size[1] / 2 - (points[2 * index + 1] - seen.y) * scale,
    ];
  }

  const draw = painted(canvas, (context, width, height, inks) => {
    size = [width, height];
    drawPoints(context, inks);
    drawZero(context, inks);
    drawMarked(context, inks);
    drawLabels(context, inks);
  });

  /** Lines through 0, behind the points. */
  function drawZero(context, inks) {
    const scale = scaleOf(...size);
    const [x, y] = [size[0] / 2 - seen.x * scale, size[1] / 2 + seen.y * scale];
    context.globalCompositeOperation = "destination-over";
    context.strokeStyle = inks.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, size[1]);
    context.moveTo(0, y);
    context.lineTo(size[0], y);
    context.stroke();
    context.globalCompositeOperation = "source-over";
  }

  /** Written into the pixels by hand: thousands of calls of the canvas would take too long. */
  function drawPoints(context, inks) {
    const [wide, high] = [canvas.width, canvas.height];
    if (!image || image.width !== wide || image.height !== high) image = new ImageData(wide, high);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(0);
    const ratio = wide / size[0];
    const scale = scaleOf(...size) * ratio;
    const radius = Math.min(4.5, smallest + Math.log2(Math.max(1, seen.zoom)) * 0.5) * ratio;
    const { offsets, alphas, reach } = stampOf(radius, wide);
    const shown = groups
      .map(({ count, color }, group) => ({
        start: starts[group],
        count,
        ink: inkOf(inks[color]),
        group,
      }))
      .filter(({ group }) => !hidden.has(group));
    // In turns, so that no group covers another.
    const most = Math.max(0, ...shown.map(({ count }) => count));
    for (let turn = 0; turn < most; turn += 1) {
      for (const { start, count, ink } of shown) {
        if (turn >= count) continue;
        const index = start + turn;
        const x = Math.round(wide / 2 + (points[2 * index] - seen.x) * scale);
        const y = Math.round(high / 2 - (points[2 * index + 1] - seen.y) * scale);
        if (x < reach || y < reach || x >= wide - reach || y >= high - reach) continue;
        const middle = y * wide + x;
        for (let part = 0; part < offsets.length; part += 1) {
          const at = middle + offsets[part];
          const old = pixels[at];
          if (old === 0) pixels[at] = ((alphas[part] << 24) | ink) >>> 0;
          else {
            const before = old >>> 24;
            const alpha = before + (((255 - before) * alphas[part]) >> 8);
            const below = old & 0xffffff;
            // The mean of both colors where groups meet.
            const mixed =
              below === ink ? ink : ((below & 0xfefefe) >>> 1) + ((ink & 0xfefefe) >>> 1);
            pixels[at] = ((alpha << 24) | mixed) >>> 0;
          }
        }
      }
    }
    context.putImageData(image, 0, 0);
  }

  function drawMarked(context, inks) {
    const { chosen, near } = marked;
    if (chosen < 0) return;
    const [x, y] = place(chosen);
    context.strokeStyle = inks["doubt-line"];
    context.globalAlpha = 0.5;
    context.lineWidth = 1;
    context.beginPath();
    for (const index of near) {
      context.moveTo(x, y);
      context.lineTo(...place(index));
    }
    context.stroke();
    context.globalAlpha = 1;
    for (const index of [...near, chosen]) {
      const isChosen = index === chosen;
      context.beginPath();
      context.arc(...place(index), isChosen ? 6 : 4, 0, 2 * Math.PI);
      context.fillStyle = isChosen ? inks["doubt-line"] : inks.surface;
      context.fill();
      context.lineWidth = 2;
      context.strokeStyle = isChosen ? inks.surface : inks["doubt-line"];
      context.stroke();
    }
  }

  /** The first pieces are the most frequent: they are written first, if there is room. */
  function drawLabels(context, inks) {
    const columns = Math.ceil(size[0] / CELL) + 8;
    const taken = new Uint8Array(columns * (Math.ceil(size[1] / ROW) + 1));
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.lineJoin = "round";
    context.lineWidth = 3.5;
    context.strokeStyle = inks.surface;
    let written = 0;
    const write = (index, isStrong, isForced = false) => {
      const [x, y] = place(index);
      if (x < 0 || y < 8 || x > size[0] - 12 || y > size[1] - 8) return;
      const first = Math.floor((y - 7) / ROW) * columns + Math.floor(x / CELL);
      const second = first + (Math.floor((y + 7) / ROW) - Math.floor((y - 7) / ROW)) * columns;
      const isTaken = (cell) => taken[first + cell] || (!isStrong && taken[second + cell]);
      if (!isForced && isTaken(0)) return;
      const words = readPiece(pieces[index]);
      context.font = `${isStrong ? "600 14" : "400 12"}px ${inks.font}`;
      widths[index] ||= context.measureText(words).width + 12;
      const cells = Math.min(8, Math.ceil(((x % CELL) + widths[index]) / CELL));
      for (let cell = 0; !isForced && cell < cells; cell += 1) {
        if (isTaken(cell)) return;
      }
      taken.fill(1, first, first + cells);
      taken.fill(1, second, second + cells);
      context.strokeText(words, x + 8, y);
      context.fillStyle = isStrong ? inks.ink : inks["ink-soft"];
      context.fillText(words, x + 8, y);
      written += 1;
    };
    if (marked.chosen >= 0) write(marked.chosen, true, true);
    for (const index of marked.near) write(index, true);
    groups.forEach(({ count }, group) => {
      const end = hidden.has(group) ? 0 : starts[group] + count;
      const most = written + MOST_LABELS / groups.length;
      for (let index = starts[group]; index < end && written < most; index += 1)
        write(index, false);
    });
  }

  function nearest(x, y) {
    let best = -1;
    let least = NEAR * NEAR;
    const scale = scaleOf(...size);
    const [middleX, middleY] = [size[0] / 2 - seen.x * scale - x, size[1] / 2 + seen.y * scale - y];
    groups.forEach(({ count }, group) => {
      if (hidden.has(group)) return;
      for (let index = starts[group]; index < starts[group] + count; index += 1) {
        const dx = middleX + points[2 * index] * scale;
        const dy = middleY - points[2 * index + 1] * scale;
        const distance = dx * dx + dy * dy;
        if (distance < least) [best, least] = [index, distance];
      }
    });
    return best;
  }

  function hover(index, x = 0, y = 0) {
    tip.hidden = index < 0;
    if (index < 0) return;
    tip.textContent = readPiece(pieces[index]);
    tip.style.left = `${Math.min(x + 14, size[0] - 120)}px`;
    tip.style.top = `${y + 14}px`;
  }

  function zoomAt(factor, x = size[0] / 2, y = size[1] / 2) {
    const before = scaleOf(...size);
    const zoom = Math.max(LEAST, Math.min(MOST, seen.zoom * factor));
    const after = (before / seen.zoom) * zoom;
    const [dx, dy] = [x - size[0] / 2, y - size[1] / 2];
    seen = { x: seen.x + dx / before - dx / after, y: seen.y - dy / before + dy / after, zoom };
    draw();
  }

  function pan(dx, dy) {
    const scale = scaleOf(...size);
    seen = { ...seen, x: seen.x - dx / scale, y: seen.y + dy / scale };
    draw();
  }

  function all() {
    seen = { x: (bounds[0] + bounds[1]) / 2, y: (bounds[2] + bounds[3]) / 2, zoom: 1 };
    draw();
  }

  move(canvas, { pan, zoomAt, all, hover, pick: (x, y) => nearest(x, y), onPick, nearest });

  const tools = make("div", { class: "map-tools" });
  for (const [words, sign, act] of [
    ["Zoom in", "+", () => zoomAt(1.6)],
    ["Zoom out", "−", () => zoomAt(1 / 1.6)],
    ["Show all", "", all],
  ]) {
    const button = make("button", {
      type: "button",
      class: "icon",
      "aria-label": words,
      title: words,
    });
    if (sign) button.textContent = sign;
    else fill(button, "fit");
    button.addEventListener("click", act);
    tools.append(button);
  }
  return {
    element: make("div", { class: "map-frame" }, canvas, tip, tools),
    /** Mark a point and others that belong to it, and bring it into view. */
    mark(chosen, near = []) {
      const isNew = chosen !== marked.chosen;
      marked = { chosen, near };
      if (chosen >= 0 && isNew) {
        const [x, y] = place(chosen);
        const isOutside = x < 20 || y < 20 || x > size[0] - 20 || y > size[1] - 20;
        if (isOutside) seen = { ...seen, x: points[2 * chosen], y: points[2 * chosen + 1] };
      }
      draw();
    },
    /** Show or hide a group. */
    toggle(group, isShown) {
      if (isShown) hidden.delete(group);
      else hidden.add(group);
      draw();
    },
    /** What is seen, as a file: every point, and the words of the marked ones. */
    svg() {
      const [width, height] = size;
      const svg = sheet(label, { width, height });
      groups.forEach(({ count }, group) => {
        if (hidden.has(group)) return;
        let path = "";
        for (let index = starts[group]; index < starts[group] + count; index += 1) {
          const [x, y] = place(index);
          if (x > 0 && y > 0 && x < width && y < height)
            path += `M${x.toFixed(1)},${y.toFixed(1)}h0`;
        }
        const round = { "stroke-width": 3, "stroke-linecap": "round", "stroke-opacity": 0.6 };
        svg.append(drawn("path", { d: path, stroke: INKS[group % INKS.length], ...round }));
      });
      const words = [...marked.near, ...(marked.chosen < 0 ? [] : [marked.chosen])];
      for (const index of words) {
        const [x, y] = place(index);
        const weight = index === marked.chosen ? 700 : 400;
        svg.append(
          drawn("circle", { cx: x, cy: y, r: 4, fill: "#d9730d" }),
          drawn(
            "text",
            { x: x + 8, y: y + 4, "font-size": 13, "font-weight": weight },
            readPiece(pieces[index]),
          ),
        );
      }
      return svgText(svg);
    },
  };
}

const INKS = ["#0c6b66", "#5a55b8"]; // of groups, on white

/** Mouse, fingers and keys of a map. */
function move(canvas, { pan, zoomAt, all, hover, nearest, onPick }) {
  const fingers = new Map();
  let moved = 0;
  const spread = () => {
    const [one, other] = [...fingers.values()];
    return Math.hypot(one[0] - other[0], one[1] - other[1]);
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, at(event));
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    const before = fingers.get(event.pointerId);
    if (!before) return hover(nearest(x, y), x, y);
    moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
    if (fingers.size === 2) {
      const old = spread();
      fingers.set(event.pointerId, [x, y]);
      if (old > 0) zoomAt(spread() / old, x, y);
    } else {
      fingers.set(event.pointerId, [x, y]);
      hover(-1);
      pan(x - before[0], y - before[1]);
    }
  });
  const end = (event) => {
    fingers.delete(event.pointerId);
    canvas.classList.remove("moving");
  };
  canvas.addEventListener("pointerup", (event) => {
    end(event);
    const found = moved < 6 ? nearest(...at(event)) : -1;
    if (found >= 0) onPick(found);
  });
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => hover(-1));
  // The page scrolls until the map was chosen.
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      zoomAt(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...at(event));
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => {
    const step = 40;
    const acts = {
      ArrowLeft: () => pan(step, 0),
      ArrowRight: () => pan(-step, 0),
      ArrowUp: () => pan(0, step),
      ArrowDown: () => pan(0, -step),
      "+": () => zoomAt(1.4),
      "=": () => zoomAt(1.4),
      "-": () => zoomAt(1 / 1.4),
      0: all,
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    acts[event.key]();
  });
}

function boundsOf(points) {
  const found = [Infinity, -Infinity, Infinity, -Infinity];
  for (let place = 0; place < points.length; place += 2) {
    found[0] = Math.min(found[0], points[place]);
    found[1] = Math.max(found[1], points[place]);
    found[2] = Math.min(found[2], points[place + 1]);
    found[3] = Math.max(found[3], points[place + 1]);
  }
  return found;
}

const stamps = new Map();

/** The pixels of a disc, as distances in an image of this width, and how much each is covered. */
function stampOf(radius, width) {
  const rounded = Math.round(radius * 4) / 4;
  const key = `${rounded} ${width}`;
  if (!stamps.has(key)) {
    const [offsets, alphas] = [[], []];
    const reach = Math.ceil(rounded);
    for (let dy = -reach; dy <= reach; dy += 1) {
      for (let dx = -reach; dx <= reach; dx += 1) {
        const cover = Math.max(0, Math.min(1, rounded + 0.5 - Math.hypot(dx, dy)));
        if (cover === 0) continue;
        offsets.push(dy * width + dx);
        alphas.push(Math.round(cover * 150));
      }
    }
    stamps.set(key, { offsets: Int32Array.from(offsets), alphas: Uint8Array.from(alphas), reach });
  }
  return stamps.get(key);
}

/** A color that the browser computed, as the number of a pixel without its opacity. */
function inkOf(color) {
  const numbers = color.match(/[\d.]+/g).map(Number);
  const share = color.startsWith("color(") ? 255 : 1;
  const [red, green, blue] = numbers.map((number) => Math.round(number * share));
  return (blue << 16) | (green << 8) | red;
}
