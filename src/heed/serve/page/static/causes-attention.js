// What an attention reads in the changed model, beside what it read before.

import * as api from "./api.js";
import { failed, titleOf } from "./causes-data.js";
import { highOf } from "./colors.js";
import { make } from "./element.js";
import { heatmap } from "./heatmap.js";
import { saveButtons } from "./save.js";

const WHEN = { difference: "Difference", after: "After", before: "Before" };
const ENDING = ".weights";

/** @returns {HTMLDetailsElement} with `show(trace, changes)` */
export function attentionChange() {
  let trace = null;
  let changes = [];
  let found = null;
  let when = "difference";
  let asked = new AbortController();

  const sublayer = make("select", { "aria-label": "Attention", onchange: () => find() });
  const head = make("select", { "aria-label": "Head", onchange: () => draw() });
  const buttons = Object.entries(WHEN).map(([name, words]) =>
    make(
      "button",
      {
        type: "button",
        dataset: { when: name },
        onclick: () => {
          when = name;
          draw();
        },
      },
      words,
    ),
  );
  const message = make("p", { class: "hint", role: "status" });
  const map = make("div", {});
  const element = make(
    "details",
    { class: "attention-change", ontoggle: () => find() },
    make("summary", {}, "Attention with the changes"),
    make(
      "div",
      { class: "row" },
      sublayer,
      head,
      make("div", { class: "choice", role: "group", "aria-label": "When" }, ...buttons),
    ),
    message,
    map,
  );

  async function find() {
    if (!element.open || !changes.length) return;
    asked.abort();
    asked = new AbortController();
    message.textContent = "Computing …";
    const body = { changes, attention: sublayer.value };
    try {
      found = await api.post(`trace/${trace.id}/attention`, body, asked.signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      message.textContent = failed(error);
      map.replaceChildren();
      return;
    }
    const nHeads = found.after.length;
    const chosen = Number(head.value) < nHeads ? head.value : "";
    head.replaceChildren(
      make("option", { value: "" }, "mean of the heads"),
      ...found.after.map((_, index) => make("option", { value: index }, `head ${index}`)),
    );
    head.value = chosen;
    message.textContent = "";
    draw();
  }

  function draw() {
    for (const button of buttons)
      button.setAttribute("aria-pressed", String(button.dataset.when === when));
    if (!found) return;
    const [before, after] = [found.before, found.after].map((heads) =>
      head.value === "" ? meanOf(heads) : heads[Number(head.value)].flat(),
    );
    const difference = after.map((value, place) => value - before[place]);
    const values = { before, after, difference }[when];
    const { axes } = trace.nodes.find(({ name }) => name === `${sublayer.value}${ENDING}`);
    const title = `${titleOf(sublayer.value)}, ${head.selectedOptions[0].text}: ${WHEN[when].toLowerCase()}`;
    const isSigned = when === "difference";
    const whole = heatmap({
      label: title,
      rows: tokensOf(axes.at(-2)),
      columns: tokensOf(axes.at(-1)),
      values,
      ...(isSigned ? { low: -Math.max(...difference.map(Math.abs), 0.01) } : scaleOf(before, after)),
    });
    map.replaceChildren(
      whole,
      saveButtons(`attention-${when}`, { svg: whole.svg, table: whole.table, json: () => found }),
    );
  }

  const scaleOf = (before, after) => ({ low: 0, high: highOf(before, after) });

  function tokensOf(axis) {
    const sides = { src: trace.source_tokens, tgt: trace.target_tokens };
    return sides[axis] ?? [...trace.source_tokens, ...trace.target_tokens];
  }

  element.show = (given, wanted) => {
    if (given !== trace) {
      trace = given;
      found = null;
      const names = trace.nodes
        .filter(({ name, axes }) => name.endsWith(`attention${ENDING}`) && axes.length === 3)
        .map(({ name }) => name.slice(0, -ENDING.length));
      const cross = names.filter((name) => name.includes("cross"));
      sublayer.replaceChildren(
        ...names.map((name) => make("option", { value: name }, titleOf(name))),
      );
      sublayer.value = cross.at(-1) ?? names.at(-1) ?? "";
      map.replaceChildren();
    }
    changes = wanted;
    // A page that is a file computes nothing.
    element.hidden = !changes.length || !sublayer.value || Boolean(trace.switched);
    find();
  };
  return element;
}

/** The mean of several maps, as one list. */
function meanOf(heads) {
  const sum = heads[0].flat().fill(0);
  for (const head of heads) head.flat().forEach((value, place) => (sum[place] += value));
  return sum.map((value) => value / heads.length);
}
