// The bar above the screens that look into a sentence: the sentence, its languages, and optionally
// a given translation, whose positions are then computed in one pass.

import { copy, fill, make } from "./element.js";
import { linkWithText, look, looked } from "./looked.js";
import { nameOf, session } from "./session.js";

/** Sentences of papers and tutorials, by language. */
const EXAMPLES = {
  en: [
    "New York is a city",
    "I am a student",
    "You are welcome",
    "Why do we work?",
    "The animal didn't cross the street because it was too tired.",
  ],
  zh: ["纽约是一座城市", "吃饭没", "没吃饭"],
  de: ["Ein Mann fährt Fahrrad."],
  fr: ["Je suis étudiant"],
  es: ["De nada"],
};

/** @returns {HTMLElement} the bar; it shows and changes what is looked at */
export function textBar() {
  const text = make("input", {
    type: "text",
    class: "sentence",
    dir: "auto",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Sentence to look into",
    placeholder: "A sentence",
  });
  const forced = make("input", {
    type: "text",
    class: "sentence",
    dir: "auto",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Translation to force; empty for the model's own",
  });
  const direction = make("select", { "aria-label": "Languages", onchange: () => submit() });
  const button = make("button", { type: "submit", class: "button" }, "Look");
  const link = make("button", {
    type: "button",
    class: "icon",
    "aria-label": "Copy a link with the sentence",
    title: "Copy a link with the sentence",
    hidden: location.protocol === "file:",
    onclick: () => copy(linkWithText(), link, "link"),
  });
  fill(link, "link");
  const message = make("p", { class: "message", role: "alert" });
  const examples = make("select", {
    "aria-label": "Examples",
    onchange: () => {
      text.value = examples.value;
      forced.value = "";
      submit();
    },
  });
  const form = make(
    "form",
    { class: "textbar card" },
    make("div", { class: "row" }, text, direction),
    make("div", { class: "row" }, forced, examples, button, link),
    message,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });

  function submit() {
    const [from, to] = direction.value.split(" ");
    look({ text: text.value.trim(), forced: forced.value.trim(), from, to });
  }

  session.on(["languages"], ({ languages }) => {
    const pairs = languages.flatMap(({ code, targets }) => targets.map((to) => [code, to]));
    direction.replaceChildren(
      ...pairs.map(([from, to]) =>
        make("option", { value: `${from} ${to}` }, `${nameOf(from)} → ${nameOf(to)}`),
      ),
    );
    direction.value = `${looked.from} ${looked.to}`;
  });
  looked.on(["from", "to"], ({ from, to }) => {
    direction.value = `${from} ${to}`;
    const known = EXAMPLES[from] ?? [];
    examples.replaceChildren(
      make("option", { value: "", disabled: true, selected: true }, "Examples"),
      ...known.map((value) => make("option", { value }, value)),
    );
    examples.hidden = !known.length;
  });
  looked.on(["text"], (state) => {
    if (text.value !== state.text) text.value = state.text;
  });
  looked.on(["forced", "trace"], ({ trace, forced: given }) => {
    if (document.activeElement !== forced) forced.value = given;
    forced.placeholder = trace?.translation || "Its translation";
  });
  looked.on(["isBusy", "error"], ({ isBusy, error }) => {
    form.classList.toggle("is-busy", isBusy);
    message.textContent = error ? error.message : "";
    button.textContent = isBusy ? "Computing …" : "Look";
  });
  return form;
}
