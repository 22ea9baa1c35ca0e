// A part of the page as a drawing for a file: its boxes, bars and texts where they stand, in the
// colors in which they are shown.

import { draw } from "./element.js";
import { sheet, svgText } from "./save.js";

const MARGIN = 16;
const HEAD = 28; // the title above
const OWN = "button.button, .save, input, select, .zooms, .unseen, [aria-hidden=true] > use";

/**
 * @param {string} title of the drawing
 * @param {...Element} elements in the document, of which one is visible at least
 * @returns {string} SVG
 */
export function pictureOf(title, ...elements) {
  const shapes = elements.flatMap((element) => [...shapesOf(element)]);
  const all = (side) => shapes.map(({ box }) => box[side]);
  const [left, top] = [Math.min(...all("left")), Math.min(...all("top"))];
  const [right, bottom] = [Math.max(...all("right")), Math.max(...all("bottom"))];
  const size = { width: right - left + 2 * MARGIN, height: bottom - top + 2 * MARGIN + HEAD };
  const ink = plain(getComputedStyle(document.body).color);
  const svg = sheet(title, size, { "font-size": 13 });
  svg.lastElementChild.setAttribute("fill", paperOf(elements[0]));
  const head = { x: MARGIN, y: MARGIN + 6, fill: ink, "font-weight": 600 };
  const moved = draw("g", {
    transform: `translate(${rounded(MARGIN - left)} ${rounded(MARGIN + HEAD - top)})`,
  });
  moved.append(...shapes.map(({ shape }) => shape));
  svg.append(draw("text", head, title), moved);
  return svgText(svg);
}

const rounded = (number) => Number(number.toFixed(2));

/** What stands behind an element: the first color among its ancestors. */
function paperOf(element) {
  for (let each = element; each; each = each.parentElement) {
    const { backgroundColor } = getComputedStyle(each);
    if (isSeen(backgroundColor)) return plain(backgroundColor);
  }
  return "#fff";
}

/** A color as every program reads it: `color(srgb …)`, which mixed colors have, is too new. */
function plain(color) {
  const [, inside] = /^color\(srgb ([^)]*)\)$/.exec(color) ?? [];
  if (!inside) return color;
  const [red, green, blue, , alpha = "1"] = inside.split(/\s+/);
  const parts = [red, green, blue].map((part) => Math.round(Number(part) * 255));
  return `rgba(${parts.join(", ")}, ${alpha})`;
}

const isSeen = (color) => !/^(transparent|rgba\(.*, 0\))$/.test(color);

/** The shapes of an element, each with the box it takes. */
function* shapesOf(element) {
  if (element.matches(OWN) || !element.checkVisibility({ visibilityProperty: true })) return;
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  if (element.localName === "canvas") {
    const place = { x: box.left, y: box.top, width: box.width, height: box.height };
    const href = element.toDataURL();
    const look = { preserveAspectRatio: "none", "image-rendering": "pixelated" };
    yield { box, shape: draw("image", { ...place, href, ...look }) };
    return;
  }
  if (element.localName === "svg") return; // icons; drawings have files of their own
  yield* backs(element, style, box);
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) yield* lines(child, style);
    else if (child.nodeType === Node.ELEMENT_NODE) yield* shapesOf(child);
  }
}

/** Background, border, the bar inside, and the stroke of what is pressed. */
function* backs(element, style, box) {
  if (!box.width || !box.height) return;
  const fill = isSeen(style.backgroundColor) ? plain(style.backgroundColor) : "none";
  const width = Number.parseFloat(style.borderTopWidth);
  const isFramed = width > 0 && style.borderLeftWidth === style.borderTopWidth;
  const stroke = isFramed && isSeen(style.borderTopColor) ? plain(style.borderTopColor) : "none";
  const rx = Number.parseFloat(style.borderTopLeftRadius) || 0;
  const inset = stroke === "none" ? 0 : width / 2;
  if (fill !== "none" || stroke !== "none") yield rect(box, { fill, stroke, rx, inset });
  const before = getComputedStyle(element, "::before");
  const length = Number.parseFloat(before.width);
  if (before.content !== "none" && length > 0 && isSeen(before.backgroundColor)) {
    const right = box.left + Math.min(length, box.width);
    const { left, top, bottom } = box;
    yield rect({ left, top, bottom, right }, { fill: plain(before.backgroundColor), rx });
  }
  if (element.getAttribute("aria-pressed") === "true" && style.backgroundImage !== "none") {
    const { left, top, right, bottom } = box;
    const d = `M${rounded(left)} ${rounded(bottom)}L${rounded(right)} ${rounded(top)}`;
    yield { box, shape: draw("path", { d, stroke: plain(style.borderTopColor) }) };
  }
}

function rect({ left, top, right, bottom }, { fill, stroke = "none", rx = 0, inset = 0 }) {
  const shape = draw("rect", {
    x: rounded(left + inset),
    y: rounded(top + inset),
    width: rounded(Math.max(0, right - left - 2 * inset)),
    height: rounded(Math.max(0, bottom - top - 2 * inset)),
    rx: rounded(Math.min(rx, (bottom - top) / 2)),
    fill,
    stroke,
  });
  return { box: { left, top, right, bottom }, shape };
}

const ruler = document.createElement("canvas").getContext("2d");

/** The lines of a text, as they are broken on the page. */
function* lines(node, style) {
  const range = document.createRange();
  let line = null;
  const found = [];
  for (let at = 0; at < node.data.length; at += 1) {
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    const box = range.getBoundingClientRect();
    if (!box.width) continue;
    if (!line || Math.abs(box.top - line.top) > 2) {
      const { left, top, right, bottom } = box;
      line = { left, top, right, bottom, text: "" };
      found.push(line);
    }
    line.text += node.data[at];
    line.left = Math.min(line.left, box.left);
    line.right = Math.max(line.right, box.right);
  }
  ruler.font = style.font;
  const ascent = ruler.measureText("x").fontBoundingBoxAscent;
  const isStruck = style.textDecorationLine.includes("line-through");
  for (const { text, ...box } of found) {
    if (!text.trim()) continue;
    const shape = draw("text", {
      x: rounded(box.left),
      y: rounded(box.top + ascent),
      fill: plain(style.color),
      "font-size": style.fontSize,
      "font-weight": style.fontWeight,
      ...(isStruck ? { "text-decoration": "line-through" } : {}),
    });
    shape.setAttribute("xml:space", "preserve");
    shape.append(text);
    yield { box, shape };
  }
}
