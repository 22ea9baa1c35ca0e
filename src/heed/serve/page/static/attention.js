// The attention of one head: what each position reads.

import { make } from "./element.js";
import { heatmap } from "./heatmap.js";
import { looked, tensors } from "./looked.js";
import { setParams } from "./route.js";
import { textBar } from "./textbar.js";
import { point } from "./tokens.js";

const USES = {
  encoder: { title: "Encoder", module: "encoder", ending: "self_attention.weights" },
  decoder: { title: "Decoder", module: "decoder", ending: "self_attention.weights" },
  cross: { title: "Cross", module: "decoder", ending: "cross_attention.weights" },
};

let params = {};
let root = null;
let view = null;

export function show(section, changed) {
  params = changed;
  if (!root) {
    root = section;
    view = make("div", { class: "view" });
    root.append(make("h1", { class: "unseen" }, "Attention"), textBar(), view);
    looked.on(["trace"], draw);
  } else draw();
}

async function draw() {
  if (!looked.trace) return view.replaceChildren();
  const use = USES[params.use] ? params.use : "cross";
  const all = await tensors("attention.weights");
  const { module, ending } = USES[use];
  const maps = [...all].filter(([name]) => name.startsWith(module) && name.endsWith(ending));
  const layer = Math.min(Number(params.layer ?? maps.length - 1), maps.length - 1);
  const { data, shape } = maps[layer][1];
  const [nHeads, nRows, nColumns] = shape;
  const head = Math.min(Number(params.head ?? 0), nHeads - 1);
  const { source_tokens: source, target_tokens: target } = looked.trace;
  const rows = use === "encoder" ? source : target;
  const columns = use === "decoder" ? target : source;
  view.replaceChildren(
    make(
      "div",
      { class: "controls" },
      pick("Attention", "use", Object.entries(USES).map(([key, { title }]) => [key, title]), use),
      pick("Layer", "layer", maps.map((_, index) => [index, `${index + 1}`]), layer),
      pick("Head", "head", Array.from({ length: nHeads }, (_, index) => [index, `${index + 1}`]), head),
    ),
    heatmap({
      label: `Attention weights of ${USES[use].title}, layer ${layer + 1}, head ${head + 1}`,
      rows,
      columns,
      values: data.subarray(head * nRows * nColumns, (head + 1) * nRows * nColumns),
      low: 0,
      high: 1,
      onPoint: (row) => point({ side: use === "encoder" ? "src" : "tgt", index: row }),
    }),
  );
}

function pick(label, name, choices, chosen) {
  const select = make("select", { onchange: () => setParams({ [name]: select.value }) });
  select.append(...choices.map(([value, title]) => make("option", { value }, title)));
  select.value = chosen;
  return make("label", { class: "pick" }, make("span", {}, label), select);
}
