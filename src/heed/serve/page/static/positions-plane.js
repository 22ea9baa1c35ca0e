// A matrix as an image with axes: the table of positions, and how alike positions are.

import { colorTable, isDark, paint, scaleOf } from "./colors.js";
import { painted, wholeTicks } from "./drawing.js";
import { draw as drawn, make, onceAFrame } from "./element.js";
import { sheet, svgText } from "./save.js";

const MARGIN = { left: 46, right: 10, top: 10, bottom: 40 };

/**
 * @param {object} options
 * @param {string} options.label what the image shows
 * @param {Float32Array} options.values row by row
 * @param {[number, number]} options.shape rows and columns
 * @param {number} [options.first] the number of the first row
 * @param {number} [options.firstColumn] the number of the first column
 * @param {[string, string]} options.names of the rows and of the columns
 * @param {number|null} [options.end] the row at which a line is drawn, or null
 * @param {boolean} [options.isEndAcross] the line is drawn at the column too
 * @param {(row: number, column: number) => void} options.onPick a cell was pressed or dragged to
 * @returns {{element: HTMLElement, mark: (row: number, column: number|null) => void,
 *   svg: () => string}} `svg` is for a file
 */
export function plane(options) {
  const { label, values, shape, first = 0, firstColumn = 0, names, end = null, onPick } = options;
  const [nRows, nColumns] = shape;
  const canvas = make("canvas", { class: "plane", role: "img", "aria-label": label });
  const image = document.createElement("canvas"); // one pixel for each number
  const scale = scaleOf(values);
  let cursor = null;
  let isPaintedDark = null;

  function colored() {
    if (isPaintedDark !== isDark()) {
      isPaintedDark = isDark();
      paint(image, values, nColumns, scale);
    }
    return image;
  }

  let ground = null; // all but the cursor, and for which size and theme

  const draw = painted(canvas, (context, width, height, inks) => {
    const box = inside(width, height);
    const key = [canvas.width, canvas.height, inks.ink].join(" ");
    if (ground?.key !== key) ground = { key, picture: drawGround(context, box, inks) };
    context.save();
    context.resetTransform();
    context.drawImage(ground.picture, 0, 0);
    context.restore();
    if (cursor) drawCursor(context, box, inks);
  });

  function drawGround(shown, box, inks) {
    const picture = make("canvas", { width: canvas.width, height: canvas.height });
    const context = picture.getContext("2d");
    context.setTransform(shown.getTransform());
    context.imageSmoothingEnabled = nColumns > box.width;
    context.drawImage(colored(), box.left, box.top, box.width, box.height);
    context.font = `12px ${inks.font}`;
    context.lineWidth = 1;
    drawAxes(context, box, inks);
    if (end !== null && end > first && end < first + nRows) drawEnd(context, box, inks);
    return picture;
  }

  function inside(width, height) {
    return {
      left: MARGIN.left,
      top: MARGIN.top,
      width: width - MARGIN.left - MARGIN.right,
      height: height - MARGIN.top - MARGIN.bottom,
    };
  }

  function drawAxes(context, box, inks) {
    const [rowName, columnName] = names;
    context.fillStyle = inks["ink-soft"];
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const at of wholeTicks(firstColumn, firstColumn + nColumns - 1, box.width / 80)) {
      const x = box.left + ((at - firstColumn + 0.5) / nColumns) * box.width;
      context.fillText(at, x, box.top + box.height + 5);
    }
    context.fillText(columnName, box.left + box.width / 2, box.top + box.height + 22);
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const at of wholeTicks(first, first + nRows - 1, box.height / 48)) {
      context.fillText(at, box.left - 6, box.top + ((at - first + 0.5) / nRows) * box.height);
    }
    context.save();
    context.translate(9, box.top + box.height / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText(rowName, 0, 0);
    context.restore();
  }

  function drawEnd(context, box, inks) {
    const y = box.top + ((end - first) / nRows) * box.height;
    context.strokeStyle = inks.ink;
    context.setLineDash([5, 4]);
    context.beginPath();
    context.moveTo(box.left, y);
    context.lineTo(box.left + box.width, y);
    if (options.isEndAcross) {
      const x = box.left + ((end - firstColumn) / nColumns) * box.width;
      context.moveTo(x, box.top);
      context.lineTo(x, box.top + box.height);
    }
    context.stroke();
    context.setLineDash([]);
    const words = "longer than any training sentence";
    const wide = context.measureText(words).width + 12;
    context.globalAlpha = 0.9;
    context.fillStyle = inks.surface;
    context.beginPath();
    context.roundRect(box.left + box.width - wide - 6, y + 5, wide, 20, 5);
    context.fill();
    context.globalAlpha = 1;
    context.fillStyle = inks.ink;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText(words, box.left + box.width - 12, y + 15.5);
  }

  function drawCursor(context, box, inks) {
    const [row, column] = cursor;
    const [high, wide] = [box.height / nRows, box.width / nColumns];
    const band = (x, y, w, h) => {
      context.strokeStyle = inks.surface;
      context.lineWidth = 3;
      context.strokeRect(x, y, w, h);
      context.strokeStyle = inks.ink;
      context.lineWidth = 1.25;
      context.strokeRect(x, y, w, h);
    };
    band(box.left, box.top + row * high, box.width, Math.max(high, 2));
    if (column !== null) band(box.left + column * wide, box.top, Math.max(wide, 2), box.height);
  }

  function pick(event) {
    const outer = canvas.getBoundingClientRect();
    const box = inside(outer.width, outer.height);
    const at = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    onPick(
      at((event.clientY - outer.top - box.top) / box.height, nRows),
      at((event.clientX - outer.left - box.left) / box.width, nColumns),
    );
  }
  let dragged = null; // the last movement
  const follow = onceAFrame(() => pick(dragged));
  canvas.addEventListener("pointerdown", pick);
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons !== 1) return;
    dragged = event;
    follow();
  });

  const element = make("div", { class: "plane-frame" }, canvas, legend(scale));
  return {
    element,
    svg: () => svgOf(options, colored()),
    mark(row, column) {
      cursor = [row, column];
      draw();
    },
  };
}

const NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** The image with its axes, as a file; the numbers are a picture in it. */
function svgOf({ label, shape, first = 0, firstColumn = 0, names }, image) {
  const [nRows, nColumns] = shape;
  const [width, height] = [640, 576];
  const [left, top, wide, high] = [60, 34, 560, 490];
  const svg = sheet(label, { width, height });
  const place = { x: left, y: top, width: wide, height: high, preserveAspectRatio: "none" };
  const text = (x, y, words, more = {}) =>
    drawn(
      "text",
      { x, y, "font-size": 12, "text-anchor": "middle", fill: "#1b1e21", ...more },
      words,
    );
  svg.append(
    drawn("image", { ...place, href: image.toDataURL(), "image-rendering": "pixelated" }),
    text(left + wide / 2, height - 12, names[1]),
    text(0, 0, names[0], { transform: `translate(16 ${top + high / 2}) rotate(-90)` }),
  );
  for (const at of wholeTicks(firstColumn, firstColumn + nColumns - 1, 7)) {
    svg.append(text(left + ((at - firstColumn + 0.5) / nColumns) * wide, top + high + 18, `${at}`));
  }
  for (const at of wholeTicks(first, first + nRows - 1, 8)) {
    const y = top + ((at - first + 0.5) / nRows) * high + 4;
    svg.append(text(left - 8, y, `${at}`, { "text-anchor": "end" }));
  }
  return svgText(svg);
}

/** The colors from the lowest number to the highest. */
function legend({ low, high, isSigned }) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  painted(canvas, (context, width, height) => {
    const table = colorTable(isSigned);
    for (let x = 0; x < width; x += 1) {
      const at = Math.round((x / (width - 1)) * 255) * 4;
      context.fillStyle = `rgb(${table.subarray(at, at + 3).join()})`;
      context.fillRect(x, 0, 1.5, height);
    }
  });
  return make(
    "div",
    { class: "legend" },
    make("span", {}, NUMBER.format(low)),
    canvas,
    make("span", {}, NUMBER.format(high)),
  );
}
