// What the screen of attention shows, by the parameters of its address.

import {
  STAGES,
  canBeUnscaled,
  hasRollout,
  stageName,
  sublayers,
  usesOf,
} from "./attention-data.js";
import { JOINS } from "./attention-maps.js";
import { looked, nodeOf } from "./looked.js";

export const VIEWS = { map: "Heat map", lines: "Lines", links: "Alignment" };

/** Everything that is chosen, valid for the current trace; null if the model has no attention. */
export function choiceOf(params) {
  const uses = usesOf();
  if (!uses.length) return null;
  const use = uses.includes(params.use) ? params.use : uses.includes("cross") ? "cross" : uses[0];
  const names = sublayers(use);
  const nHeads = names.map((name) => nodeOf(`${name}.weights`).shape[0]);
  const best = use === "cross" ? bestHeads(names.length) : null;
  const first = best?.heads[0];
  const layer = within(params.layer, names.length) ?? first?.layer ?? names.length - 1;
  const head = within(params.head, nHeads[layer]) ?? (first?.layer === layer ? first.head : 0);
  const several = parseHeads(params.heads, nHeads);
  const mix =
    params.mix === "layers" || (params.mix === "rollout" && hasRollout(use)) ? params.mix : "";
  const heads = several.length ? several : [{ layer, head, share: 1 }];
  const read = heads.map((one) => names[one.layer]);
  const stages = mix
    ? ["weights"]
    : Object.keys(STAGES).filter((stage) => read.every((name) => stageName(name, stage)));
  const stage = stages.includes(params.stage) ? params.stage : "weights";
  const mayBeUnscaled = !mix && stage === "weights" && read.every(canBeUnscaled);
  const views = Object.keys(VIEWS).filter((view) => view !== "links" || use === "cross");
  return {
    uses,
    use,
    layer,
    head,
    heads,
    isSeveral: several.length > 0,
    mix,
    stages,
    stage,
    views,
    view: views.includes(params.view) ? params.view : "map",
    mayBeUnscaled,
    isUnscaled: mayBeUnscaled && params.unscaled === "1",
    hidden: (params.hide ?? "").split(",").filter(Boolean),
    isByWord: params.words === "1",
    hasPadding: looked.trace.source_padding + looked.trace.target_padding > 0,
    isPadded: params.padding !== "0",
    order: ["sharp", "flat"].includes(params.order) ? params.order : "layer",
    join: Object.hasOwn(JOINS, params.join ?? "") ? params.join : "none",
    by: alignedBy(params, best, names.length, nHeads, heads),
    best,
    nLayers: names.length,
    nHeads,
    canRollOut: hasRollout(use),
    row: params.row === undefined ? null : Number(params.row),
    col: params.col === undefined ? null : Number(params.col),
  };
}

/** Heads as they stand in an address: `2.0,2.3*0.5`. */
export const spellHeads = (heads) =>
  heads
    .map(({ layer, head, share }) => `${layer}.${head}${share === 1 ? "" : `*${share}`}`)
    .join(",");

function parseHeads(text, nHeads) {
  const found = [...(text ?? "").matchAll(/(\d+)\.(\d+)(?:\*(\d*\.?\d+))?(?:,|$)/g)];
  return found
    .map(([, layer, head, share]) => ({ layer: +layer, head: +head, share: share ? +share : 1 }))
    .filter(({ layer, head }) => head < (nHeads[layer] ?? 0));
}

function within(text, count) {
  const number = Number(text);
  return text !== undefined && Number.isInteger(number) && number >= 0 && number < count
    ? number
    : null;
}

/** The heads that are stored with the model as those that align best, or null. */
function bestHeads(nLayers) {
  const stored = looked.trace.alignment_heads;
  if (!stored) return null;
  const layer = (stored.layer + nLayers) % nLayers;
  const count = nodeOf(`${sublayers("cross")[layer]}.weights`).shape[0];
  const heads = stored.heads.length
    ? stored.heads
    : Array.from({ length: count }, (_, head) => head);
  return {
    heads: heads.map((head) => ({ layer, head, share: 1 })),
    isShifted: stored.is_shifted,
    errorRate: stored.error_rate,
    measure: stored.measure,
  };
}

/**
 * What the alignment is read from: the stored heads; without them the mean of the last layer but
 * one, as in the literature; or what is asked for: a layer's mean, or the chosen heads.
 */
function alignedBy(params, best, nLayers, nHeads, heads) {
  const ofLayer = (layer) => ({
    name: `layer-${layer}`,
    heads: Array.from({ length: nHeads[layer] }, (_, head) => ({ layer, head, share: 1 })),
    isShifted: false,
  });
  const asked = params.by ?? (best ? "best" : "");
  if (asked === "chosen") return { name: "chosen", heads, isShifted: false };
  if (asked === "best" && best) return { name: "best", ...best };
  const layer = within(/^layer-(\d+)$/.exec(asked)?.[1], nLayers);
  return ofLayer(layer ?? Math.max(0, nLayers - 2));
}
