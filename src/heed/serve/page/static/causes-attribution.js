// What each token adds to the log-prob of a target token, by one of several methods.

import { ask, failed, nats, tint } from "./causes-data.js";
import { make } from "./element.js";
import { heatmap } from "./heatmap.js";
import { looked } from "./looked.js";
import { setParams } from "./route.js";
import { saveButtons } from "./save.js";
import { tokenRow } from "./tokens.js";

/** By the server's name: a title, and what the number is. */
const METHODS = {
  erasure: [
    "Replaced by <unk>",
    "The log-prob that is lost when a token is replaced by <unk>, in nats.",
  ],
  masking: ["Masked", "The log-prob that is lost when nothing reads a source token, in nats."],
  deletion: ["Deleted", "The log-prob that is lost when a source token is taken out, in nats."],
  integrated: [
    "Integrated gradients",
    "The gradient along the way from a sentence of <unk>, times that way: the numbers add up to " +
      "the difference of the log-probs.",
  ],
  gradient: [
    "Gradient × input",
    "The gradient of the log-prob by a token's vector, times the vector: right only to first order.",
  ],
};

/** @returns {HTMLElement} with `show({trace, token, params})` */
export function attributionView() {
  const select = make("select", { onchange: () => setParams({ method: select.value }) });
  select.append(
    ...Object.entries(METHODS).map(([name, [title]]) => make("option", { value: name }, title)),
  );
  const about = make("p", { class: "hint" });
  const message = make("p", { class: "hint", role: "status" });
  const rows = make("div", { class: "amounts" });
  const map = make("div", {});
  const element = make(
    "div",
    { class: "card attribution" },
    make(
      "div",
      { class: "controls" },
      make("label", { class: "method" }, make("span", {}, "Method"), select),
    ),
    about,
    message,
    rows,
    map,
  );

  element.show = async ({ trace, token, params }) => {
    const method = Object.hasOwn(METHODS, params.method ?? "") ? params.method : "erasure";
    select.value = method;
    about.textContent = METHODS[method][1];
    message.textContent = "Computing …";
    let found;
    try {
      found = await ask(`attribute?method=${method}`);
    } catch (error) {
      message.textContent = failed(error);
      rows.replaceChildren();
      map.replaceChildren();
      return;
    }
    if (looked.trace !== trace || select.value !== method) return;
    message.textContent =
      found.gap > 0.005 ? `The sums are off by ${nats(found.gap)} nats at most.` : "";
    rows.replaceChildren(
      ...amounts("Source", found.source_tokens, "src", rowOf(found.source, token)),
      ...(found.target.flat().some(Boolean)
        ? amounts("Translation so far", found.target_tokens, "tgt", rowOf(found.target, token))
        : []),
    );
    rows.dataset.token = token;
    const whole = heatmap({
      label: `What each source token adds to each target token: ${METHODS[method][0]}`,
      rows: found.expected_tokens,
      columns: found.source_tokens,
      values: found.source.flat(),
      low: -0.01,
      sides: { columns: { side: "src" } },
      onPick: (row) => setParams({ at: row }),
    });
    whole.light(token < 0 ? null : token);
    map.replaceChildren(
      make("h2", {}, "Every target token (row) and source token (column)"),
      whole,
      saveButtons("attribution", { svg: whole.svg, table: whole.table, json: () => found }),
    );
  };
  return element;
}

/** The row of a token; without one, the sum of all rows. */
function rowOf(matrix, token) {
  if (token >= 0) return matrix[token];
  return matrix[0].map((_, column) => matrix.reduce((sum, row) => sum + row[column], 0));
}

/** Tokens with their numbers. */
function amounts(title, tokens, side, numbers) {
  const row = tokenRow(tokens, side);
  const most = Math.max(...numbers.map(Math.abs), 0.05);
  [...row.children].forEach((token, index) => {
    tint(token, numbers[index], most);
    const piece = make("span", {}, ...token.childNodes);
    token.replaceChildren(piece, make("small", { class: "amount" }, nats(numbers[index])));
  });
  return [make("h2", {}, title), row];
}
