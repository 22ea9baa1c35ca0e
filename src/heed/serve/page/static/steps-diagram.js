// The network as a column of blocks for each stack, made from the nodes of a trace, input below.

import { make } from "./element.js";

const TITLES = {
  embedding: "Embedding",
  self_attention: "Self-attention",
  cross_attention: "Cross-attention",
  joint_attention: "Attention to both",
  feed_forward: "Feed-forward",
};

/** The block of a node: a sublayer with what stands around it, an embedding, an output. */
export function blockOf(name) {
  const layer = /^(encoder|decoder)\.\d+\./.exec(name)?.[0] ?? "";
  const rest = name.slice(layer.length);
  if (!layer) return rest.includes(".") ? rest.split(".")[0] : rest;
  const part = rest.split(".")[0];
  const inner = {
    around_self: "self_attention",
    around_cross: "cross_attention",
    around_joint: "joint_attention",
    around_feed_forward: "feed_forward",
  };
  if (part === "in" || part === "out") return `${layer}${part}`;
  return `${layer}${inner[part] ?? part}`;
}

const isOfTarget = (name) =>
  /^(decoder|cross_attention|embed_tgt|embedded_tgt|states|logits|log_probs|sides)/.test(name);

function titleOf(block, nodes) {
  if (block === "pieces") return "Pieces";
  const part = block.replace(/^(encoder|decoder)\.\d+\./, "");
  if (/^embed(_src|_tgt)?$/.test(block)) {
    const sum = nodes.find(({ name }) => name.startsWith(`${block}.`) && name.endsWith("sum"));
    return sum?.formula.includes("PE") ? "Embedding + position" : "Embedding";
  }
  if (TITLES[part]) return TITLES[part];
  return (
    {
      embedded_src: "Embedded source",
      embedded_tgt: "Embedded target",
      bridge: "Bridge",
      last: "Last states",
      memory: "Memory",
      states: "States",
      logits: "Logits",
      log_probs: "Softmax",
      in: "In",
      out: "Out",
    }[part] ?? part
  );
}

/**
 * @param {object[]} nodes of the trace
 * @param {string} current name of the node that is shown
 * @param {(name: string) => void} onPick is given the first node of a block
 * @returns {HTMLElement}
 */
export function diagram(nodes, current, onPick) {
  const blocks = new Map(); // block → first node
  for (const { name } of nodes) {
    const block = blockOf(name);
    if (!/\.(in|out)$/.test(block) && !blocks.has(block)) blocks.set(block, name);
  }
  const lit = blockOf(current);
  const litLayer = /^(encoder|decoder)\.\d+/.exec(current)?.[0];
  const [hasEncoder, hasDecoder] = ["encoder.", "decoder."].map((stack) =>
    nodes.some(({ name }) => name.startsWith(stack)),
  );
  // A model of one stack reads source and target in it.
  const sideOf = (name) => Number(hasEncoder && hasDecoder ? isOfTarget(name) : hasDecoder);
  const sides = [[], []];
  let layer = null;
  for (const [block, first] of blocks) {
    const stack = sides[sideOf(block)];
    const name = /^(encoder|decoder)\.\d+/.exec(block)?.[0];
    if (!name) {
      layer = null;
      stack.push(button(titleOf(block, nodes), first, block === lit, onPick));
    } else {
      if (name !== layer) {
        layer = name;
        stack.push(layerBox(name, first, name === litLayer, onPick));
      }
      if (name === litLayer) {
        stack
          .at(-1)
          .append(
            button(titleOf(block, nodes), first, block === lit, onPick, hasResidual(nodes, block)),
          );
      }
    }
  }
  return make(
    "nav",
    { class: "diagram", "aria-label": "Parts of the network" },
    ...sides.map((stack, side) =>
      stack.length
        ? make(
            "div",
            { class: "stack" },
            make("p", { class: "stack-title" }, side ? "Decoder" : "Encoder"),
            ...stack.reverse(),
          )
        : null,
    ),
  );
}

function layerBox(name, first, isOpen, onPick) {
  const title = `Layer ${name.split(".")[1]}`; // numbers from 0, as in the names of tensors
  const head = button(title, first, false, onPick);
  head.classList.add("layer-title");
  head.setAttribute("aria-expanded", String(isOpen));
  return make("div", { class: `layer${isOpen ? " is-open" : ""}` }, head);
}

function hasResidual(nodes, block) {
  const around = block
    .replace(/(self|cross|joint)_attention$/, "around_$1")
    .replace(/\.feed_forward$/, ".around_feed_forward");
  const found = nodes.find(({ name }) => name === `${around}.out`);
  return Boolean(found?.formula.includes("+"));
}

function button(title, name, isLit, onPick, isResidual = false) {
  return make(
    "button",
    {
      type: "button",
      class: `block${isLit ? " is-lit" : ""}${isResidual ? " has-residual" : ""}`,
      "aria-current": isLit ? "step" : null,
      title: isResidual ? "With a residual connection around it" : null,
      onclick: () => onPick(name),
    },
    title,
  );
}
