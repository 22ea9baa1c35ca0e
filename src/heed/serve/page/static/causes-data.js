// What the screen of causes reads of a traced sentence, once for each trace; and how it is spelled.

import * as api from "./api.js";
import { looked } from "./looked.js";

const read = new Map(); // of one trace: path → promise
let id = "";

/** An answer about the current trace. */
export function ask(path) {
  if (looked.trace.id !== id) {
    read.clear();
    id = looked.trace.id;
  }
  if (!read.has(path)) {
    const answer = api.get(`trace/${id}/${path}`);
    answer.catch(() => read.delete(path));
    read.set(path, answer);
  }
  return read.get(path);
}

const KINDS = {
  self_attention: "Self-attention",
  cross_attention: "Cross-attention",
  joint_attention: "Attention to both sides",
  feed_forward: "Feed-forward",
};

/** A sublayer, such as `decoder.0.cross_attention`, in its parts; one alone has the layer NaN. */
export function partsOf(name) {
  const [stack, layer, kind] = name.split(".");
  return { stack, layer: Number(layer), kind };
}

export const kindTitle = (kind) => KINDS[kind] ?? kind ?? "";

export const stackTitle = (stack) => stack[0].toUpperCase() + stack.slice(1);

/** `decoder.0.cross_attention` → "Decoder 1, cross-attention". */
export function titleOf(name) {
  const { stack, layer, kind } = partsOf(name);
  const title = isNaN(layer) ? stackTitle(stack) : `${stackTitle(stack)} ${layer}`;
  return kind ? `${title}, ${kindTitle(kind).toLowerCase()}` : title;
}

const NATS = new Intl.NumberFormat("en", { maximumFractionDigits: 2, signDisplay: "exceptZero" });
const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

/** Nats with a sign: what a token loses is negative. */
export const nats = (number) => NATS.format(number === 0 ? 0 : number).replace("-", "−");

export const percent = (share) => (share < 0.0005 ? "< 0.1%" : PERCENT.format(share));

/** Color an element by a number: as much of the scale as `most` is the whole; orange if negative. */
export function tint(element, number, most) {
  element.style.setProperty("--share", Math.min(1, Math.abs(number) / (most || 1)));
  element.classList.toggle("is-negative", number < 0);
}

/** Show an error in the place of a view. */
export const failed = (error) => (error.name === "AbortError" ? "" : error.message);
