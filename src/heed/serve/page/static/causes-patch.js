// A form that puts a tensor of another sentence in the place of this one's.

import * as api from "./api.js";
import { failed, titleOf } from "./causes-data.js";
import { make } from "./element.js";
import { looked } from "./looked.js";
import { readPiece } from "./tokens.js";

const PATCHABLE = /^(memory|(encoder|decoder)\.\d+\.out)$/;

/**
 * @param {(key: string, change: object) => void} onAdd
 * @param {(key: string) => void} onRemove
 * @returns {{element: HTMLElement, begin: (trace: object) => void, clear: () => void}}
 */
export function patchForm(onAdd, onRemove) {
  let trace = null;
  let other = null;
  const sentence = make("input", {
    type: "text",
    class: "sentence",
    dir: "auto",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Another sentence",
    placeholder: "Another sentence",
  });
  const name = make("select", { "aria-label": "Tensor", onchange: () => drawPlaces() });
  const here = make("select", { "aria-label": "Position in this sentence" });
  const there = make("select", { "aria-label": "Position in the other sentence" });
  const places = make("div", { class: "row places", hidden: true }, "at", here, "that of", there);
  const read = make("button", { type: "submit", class: "button" }, "Read it");
  const put = make(
    "button",
    { type: "button", class: "button", onclick: add, hidden: true },
    "Put it in",
  );
  const list = make("div", { class: "tokens" });
  const message = make("p", { class: "hint", role: "status" });
  const form = make(
    "form",
    { class: "patch" },
    make("div", { class: "row" }, sentence, name, read),
    places,
    make("div", { class: "row" }, put),
    message,
    list,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    find();
  });
  const element = make(
    "details",
    {},
    make("summary", {}, "Patch with another sentence"),
    make(
      "p",
      { class: "hint" },
      "What the model computed of another sentence takes the place of what it computes here.",
    ),
    form,
  );

  async function find() {
    if (!sentence.value.trim()) return;
    message.textContent = "Computing …";
    const { from, to, model } = looked;
    const body = {
      text: sentence.value.trim(),
      source: from,
      target: to,
      ...(model ? { model } : {}),
    };
    try {
      other = await api.post("trace", body);
      message.textContent = `It is translated as: ${other.translation}`;
      places.hidden = put.hidden = false;
      drawPlaces();
    } catch (error) {
      message.textContent = failed(error);
    }
  }

  const tokensOf = (found) => {
    const { axes } = found.nodes.find((node) => node.name === name.value);
    const sides = { src: found.source_tokens, tgt: found.target_tokens };
    return sides[axes[0]] ?? [...found.source_tokens, ...found.target_tokens];
  };

  function drawPlaces() {
    if (!other) return;
    const option = (piece, place) =>
      make("option", { value: place }, `${place} ${readPiece(piece)}`);
    here.replaceChildren(
      make("option", { value: "" }, "all positions"),
      ...tokensOf(trace).map(option),
    );
    there.replaceChildren(
      make("option", { value: "" }, "the same"),
      ...tokensOf(other).map(option),
    );
  }

  function add() {
    const change = { kind: "patch", name: name.value, trace: other.id };
    if (here.value) change.positions = { [here.value]: Number(there.value || here.value) };
    const key = JSON.stringify(change);
    const at = here.value ? ` at ${here.selectedOptions[0].text}` : "";
    const words = `${tensorTitle(name.value)}${at} of “${other.text}” ×`;
    const chip = make(
      "button",
      {
        type: "button",
        class: "token",
        "aria-label": `Remove ${words}`,
        onclick: () => {
          chip.remove();
          onRemove(key);
        },
      },
      words,
    );
    list.append(chip);
    onAdd(key, change);
  }

  return {
    element,
    begin(given) {
      trace = given;
      other = null;
      places.hidden = put.hidden = true;
      message.textContent = "";
      list.replaceChildren();
      const names = trace.nodes.map((node) => node.name).filter((one) => PATCHABLE.test(one));
      names.sort((one, other) => (other === "memory") - (one === "memory"));
      name.replaceChildren(...names.map((one) => make("option", { value: one }, tensorTitle(one))));
      element.hidden = !names.length;
    },
    clear: () => list.replaceChildren(),
  };
}

const tensorTitle = (name) =>
  name === "memory" ? "Memory" : `${titleOf(name.replace(".out", ""))}, output`;
