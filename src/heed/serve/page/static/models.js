// The models: which one translates, and what each is.

import { byId, make, openPanel } from "./element.js";
import { size } from "./document.js";
import { markdown } from "./markdown.js";
import { nameOf, session, setModel, sourceCode } from "./session.js";

const button = byId("show-models");
const dialog = byId("models");
const COUNT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3, notation: "compact" });
const SPEED = "Of the text that is shown, else of what the server translated lately";
const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function showModels() {
  button.addEventListener("click", open);
  session.on(["models", "answer", "model", "from", "to"], () => {
    const model = used();
    button.hidden = !model;
    if (model)
      button.replaceChildren(
        make("span", {}, model.name),
        make("span", { class: "kind" }, model.dtype),
      );
    button.title = "The model";
    if (model) button.setAttribute("aria-label", `The model: ${model.name}, ${model.dtype}`);
  });
}

/** The model of the answer that is shown, else one that would translate. */
export function used() {
  const name = session.model || session.answer?.model;
  return session.models.find((one) => one.name === name) ?? fitting()[0] ?? session.models[0];
}

/** The models for the direction that is chosen. */
function fitting() {
  const source = sourceCode();
  const fits = ([from, to]) => to === session.to && (!source || from === source);
  return session.models.filter(({ directions }) => directions.some(fits));
}

function open() {
  const chosen = used();
  const fits = fitting();
  const cards = session.models.map((model) => card(model, model === chosen, fits));
  openPanel(dialog, cards.length > 1 ? "Models" : "The model", ...cards);
}

function card(model, isChosen, fits) {
  const directions = model.directions.map(([from, to]) => `${nameOf(from)} to ${nameOf(to)}`);
  const facts = [
    ["Size", size(model.size_bytes)],
    ["Parameters", COUNT.format(model.parameters)],
    ["Numbers", model.dtype],
    ["Speed", speedOf(model), SPEED],
    ["In memory", model.is_loaded ? "yes" : "not yet"],
  ];
  const picker =
    fits.length > 1 && fits.includes(model) && !isChosen
      ? make(
          "button",
          { type: "button", class: "button", onclick: () => pick(model) },
          "Translate with this one",
        )
      : null;
  const mark = isChosen ? make("span", { class: "badge" }, "in use") : null;
  return make(
    "article",
    { class: "model-card" },
    make("h3", {}, model.name, mark),
    make("p", { class: "hint" }, directions.join(", ")),
    make(
      "dl",
      { class: "facts" },
      ...facts.map(([name, value, title]) =>
        make("div", { title }, make("dt", {}, name), make("dd", {}, value)),
      ),
    ),
    picker,
    model.card
      ? make(
          "details",
          { open: isChosen },
          make("summary", {}, "Card"),
          make("div", { class: "prose" }, ...markdown(model.card)),
        )
      : null,
  );
}

/** As measured on the text that is shown, else on what the server translated lately. */
function speedOf(model) {
  const { answer } = session;
  const isKnown = answer?.model === model.name && answer.nTokens && answer.seconds;
  const speed = isKnown ? answer.nTokens / answer.seconds : model.tokens_per_s;
  return speed ? `${WHOLE.format(speed)} tokens/s` : "not used yet";
}

function pick(model) {
  setModel(model.name);
  dialog.close();
}
