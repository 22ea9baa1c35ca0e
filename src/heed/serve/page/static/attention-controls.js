// The controls of the screen of attention. They are made once; `update` shows what is chosen.

import { VIEWS, spellHeads } from "./attention-choice.js";
import { STAGES, USES } from "./attention-data.js";
import { make } from "./element.js";
import { setParams } from "./route.js";

/** A group of buttons of which one is pressed. */
function choice(label, entries, onChoose) {
  const buttons = new Map(
    entries.map(([value, text]) => [
      value,
      make(
        "button",
        { type: "button", "aria-pressed": "false", onclick: () => onChoose(value) },
        text,
      ),
    ]),
  );
  const element = make(
    "div",
    { class: "choice", role: "group", "aria-label": label },
    ...buttons.values(),
  );
  element.update = (chosen, allowed) => {
    for (const [value, button] of buttons) {
      button.setAttribute("aria-pressed", value === chosen);
      button.hidden = !allowed.includes(value);
    }
  };
  return element;
}

function check(label, title, onChange) {
  const box = make("input", { type: "checkbox", onchange: () => onChange(box.checked) });
  const element = make("label", { class: "check", title }, box, label);
  element.update = (isOn, isAllowed = true) => {
    box.checked = isOn;
    element.hidden = !isAllowed;
  };
  return element;
}

/** Tabs of the three uses. @returns {HTMLElement} with `update(choice)` */
export function useTabs() {
  const tabs = new Map(
    Object.entries(USES).map(([use, { title, about }]) => [
      use,
      make(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${use}`,
          title: about,
          "aria-controls": "attention-panel",
          onclick: () =>
            setParams({
              use,
              layer: null,
              head: null,
              heads: null,
              mix: null,
              row: null,
              col: null,
            }),
        },
        title,
      ),
    ]),
  );
  const element = make(
    "div",
    { class: "choice tabs", role: "tablist", "aria-label": "Kind of attention" },
    ...tabs.values(),
  );
  element.addEventListener("keydown", (event) => {
    const shown = [...tabs.values()].filter((tab) => !tab.hidden);
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const next =
      shown[(shown.indexOf(document.activeElement) + step + shown.length) % shown.length];
    next.focus();
    next.click();
  });
  element.update = ({ use, uses }) => {
    for (const [name, tab] of tabs) {
      tab.hidden = !uses.includes(name);
      tab.setAttribute("aria-selected", name === use);
      tab.tabIndex = name === use ? 0 : -1;
    }
  };
  return element;
}

/** The controls above the large view. @returns {HTMLElement} with `update(choice)` */
export function viewControls() {
  const view = choice("View", Object.entries(VIEWS), (value) =>
    setParams({ view: value === "map" ? null : value }),
  );
  const stage = choice(
    "Stage of the computation",
    Object.entries(STAGES).map(([value, { title }]) => [value, title]),
    (value) => setParams({ stage: value === "weights" ? null : value }),
  );
  let hidden = [];
  const hide = (kind) => (isOn) =>
    setParams({
      hide: [...hidden.filter((one) => one !== kind), ...(isOn ? [kind] : [])].join(",") || null,
    });
  const flag = (name) => (isOn) => setParams({ [name]: isOn ? "1" : null });
  const words = check(
    "Words",
    "Sum over the pieces that are read, mean over those that read",
    flag("words"),
  );
  const special = check(
    "Hide </s>",
    "Leave out </s>, <s> and tags; the rest is divided by its sum",
    hide("special"),
  );
  const signs = check(
    "Hide punctuation",
    "Leave it out; the rest is divided by its sum",
    hide("punctuation"),
  );
  const padding = check(
    "Padding",
    "Show the places of padding: nothing reads them, their weight is exactly 0",
    (isOn) => setParams({ padding: isOn ? null : "0" }),
  );
  const unscaled = check(
    "Without √dₖ",
    "Softmax of the raw products, not divided by √d_k",
    flag("unscaled"),
  );
  const element = make(
    "div",
    { class: "controls" },
    view,
    stage,
    words,
    special,
    signs,
    padding,
    unscaled,
  );
  element.update = (chosen) => {
    const isLinks = chosen.view === "links";
    const isWeights = chosen.stage === "weights";
    hidden = chosen.hidden;
    view.update(chosen.view, chosen.views);
    stage.update(chosen.stage, chosen.stages);
    stage.hidden = isLinks || chosen.stages.length < 2 || chosen.view === "lines";
    words.update(chosen.isByWord, isLinks || isWeights);
    special.update(hidden.includes("special"), !isLinks && isWeights);
    signs.update(hidden.includes("punctuation"), !isLinks && isWeights);
    padding.update(chosen.isPadded, !isLinks && chosen.hasPadding);
    unscaled.update(chosen.isUnscaled, !isLinks && chosen.mayBeUnscaled);
  };
  return element;
}

/** What is averaged: chips of heads with their shares, and buttons. */
export function mixControls() {
  const chips = make("div", { class: "chips" });
  const mean = button("Mean of the layer", ({ layer, nHeads }) => ({
    mix: null,
    heads: spellHeads(
      Array.from({ length: nHeads[layer] }, (_, head) => ({ layer, head, share: 1 })),
    ),
  }));
  const all = button("All layers", () => ({ mix: "layers", stage: null }));
  const rollout = button("Rollout", () => ({ mix: "rollout", stage: null }));
  const one = button("One head", () => ({ mix: null, heads: null }));
  const element = make("div", { class: "mix" }, chips, one, mean, all, rollout);
  let current = null;
  function button(text, changes) {
    return make(
      "button",
      {
        type: "button",
        class: "button small",
        "aria-pressed": "false",
        onclick: () => setParams(changes(current)),
      },
      text,
    );
  }
  element.update = (chosen) => {
    current = chosen;
    rollout.hidden = !chosen.canRollOut;
    one.setAttribute("aria-pressed", !chosen.isSeveral && !chosen.mix);
    all.setAttribute("aria-pressed", chosen.mix === "layers");
    rollout.setAttribute("aria-pressed", chosen.mix === "rollout");
    const isMean =
      chosen.isSeveral &&
      !chosen.mix &&
      chosen.heads.length === chosen.nHeads[chosen.heads[0].layer];
    mean.setAttribute("aria-pressed", isMean);
    chips.hidden = !chosen.isSeveral;
    const key = chosen.heads.map(({ layer, head }) => `${layer}.${head}`).join();
    if (chips.dataset.key === key) return; // an input may have the focus
    chips.dataset.key = key;
    chips.replaceChildren(...chosen.heads.map((_, index) => chip(index)));
  };
  function chip(index) {
    const { layer, head, share } = current.heads[index];
    const name = `layer ${layer}, head ${head}`;
    const change = (heads) => setParams({ heads: spellHeads(heads) || null });
    const input = make("input", {
      type: "number",
      min: "0",
      step: "0.25",
      value: `${share}`,
      "aria-label": `Share of ${name}`,
      onchange: () => {
        const heads = current.heads.map((one) => ({ ...one }));
        heads[index].share = Math.max(0, Number(input.value) || 0);
        change(heads);
      },
    });
    const remove = make(
      "button",
      {
        type: "button",
        "aria-label": `Leave out ${name}`,
        onclick: () => change(current.heads.filter((_, place) => place !== index)),
      },
      "×",
    );
    return make("span", { class: "chip" }, make("b", {}, `${layer}.${head}`), "×", input, remove);
  }
  return element;
}

/** The menu of what an alignment is read from. */
export function byMenu() {
  const select = make("select", { onchange: () => setParams({ by: select.value }) });
  const about = make("span", { class: "hint" });
  const element = make("div", { class: "by" }, make("label", {}, "Aligned by ", select), about);
  element.update = ({ by, best, nLayers, isSeveral, layer, head }) => {
    const options = [
      ...(best ? [["best", `the best on development data: ${titleOf(best.heads)}`]] : []),
      ...Array.from({ length: nLayers }, (_, index) => [
        `layer-${index}`,
        `the mean of layer ${index}`,
      ]),
      ["chosen", isSeveral ? "the chosen heads" : `the chosen head: ${layer}.${head}`],
    ];
    select.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
    select.value = by.name;
    const rate = by.name === "best" && best.errorRate !== null;
    about.textContent = rate
      ? `Error rate ${best.errorRate.toFixed(3)} against ${best.measure}.`
      : best || by.name !== `layer-${Math.max(0, nLayers - 2)}`
        ? ""
        : "heed choose-heads finds the heads that align best.";
  };
  return element;
}

/** Heads in words. */
export function titleOf(heads) {
  const [{ layer, head }] = heads;
  if (heads.length === 1) return `layer ${layer}, head ${head}`;
  const isOneLayer = heads.every((one) => one.layer === layer);
  return isOneLayer
    ? `layer ${layer}, mean of ${heads.length} heads`
    : `mean of ${heads.length} heads`;
}
