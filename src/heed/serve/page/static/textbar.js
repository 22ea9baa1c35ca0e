// The bar above the screens that look into a sentence: the sentence, its languages, and optionally
// a given translation, whose positions are then computed in one pass. Several sentences are a batch.

import { copy, fill, make } from "./element.js";
import { MOST, linkWithText, look, looked } from "./looked.js";
import { setParams } from "./route.js";
import { nameOf, session } from "./session.js";
import { splitSentences } from "./words.js";

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
const OWN = "A search writes its own translation"; // where none is read

/** The remembered pair that guided a search, in words. */
export const guideNodes = ({ similarity, source, target }) => [
  `Guided by a remembered pair, ${Math.floor(100 * similarity)} % similar: `,
  make("bdi", {}, source),
  " → ",
  make("bdi", {}, target),
];

/**
 * @param {object} [options]
 * @param {boolean} [options.isBatched] whether the screen shows several sentences as one batch
 * @param {boolean} [options.isForced] whether the screen shows a given translation
 * @returns {HTMLElement} the bar; it shows and changes what is looked at
 */
export function textBar({ isBatched = false, isForced = true } = {}) {
  let rows = [];
  const list = make("div", { class: "sentences" });
  const add = make(
    "button",
    {
      type: "button",
      class: "quiet add",
      title: "Several sentences are read as one batch, padded to the longest",
      onclick: () => {
        write([...typed(), { text: "", forced: "" }]);
        rows.at(-1).text.focus();
      },
    },
    "+ Add a sentence",
  );
  const padded = make("span", { class: "hint padded", role: "status" });
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
  const guide = make("p", { class: "hint" });
  const several = make("p", { class: "hint several", hidden: true });
  const examples = make("select", {
    "aria-label": "Examples",
    onchange: () => {
      const row = rows[Math.min(looked.sentence, rows.length - 1)];
      row.text.value = examples.value;
      row.forced.value = "";
      examples.value = "";
      submit();
    },
  });
  const form = make(
    "form",
    { class: "textbar card" },
    list,
    make("div", { class: "row asking" }, add, padded, direction, examples, button, link),
    several,
    guide,
    message,
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });

  const typed = () =>
    rows.map(({ text, forced }) => ({ text: text.value.trim(), forced: forced.value.trim() }));

  function submit(sentence = looked.sentence) {
    const [from, to] = direction.value.split(" ");
    const given = typed();
    const before = given.slice(0, sentence).filter(({ text }) => text).length;
    look({ sentences: given.filter(({ text }) => text), sentence: before, from, to });
    setParams({ batch: looked.sentences.length > 1 ? looked.sentence : null });
  }

  /** Show these sentences; the elements stay as long as their number does. */
  function write(sentences) {
    if (rows.length !== sentences.length) {
      rows = sentences.map((_, number) => rowOf(number, sentences.length));
      list.replaceChildren(...rows.map(({ element }) => element));
      form.classList.toggle("is-batch", rows.length > 1);
    }
    sentences.forEach(({ text, forced }, number) => {
      const row = rows[number];
      if (row.text.value !== text) row.text.value = text;
      if (document.activeElement !== row.forced) row.forced.value = forced;
    });
    add.hidden = !isBatched || rows.length >= MOST;
    mark();
  }

  function rowOf(number, count) {
    const of = ` ${number} of the batch`;
    const input = (label, placeholder) =>
      make("input", {
        type: "text",
        class: "sentence",
        dir: "auto",
        autocomplete: "off",
        spellcheck: "false",
        "aria-label": label,
        placeholder,
      });
    const isAlone = count === 1;
    const text = input(isAlone ? "Sentence to look into" : `Sentence${of}`, "A sentence");
    const forced = input(
      `${isAlone ? "Translation to force" : `Translation of sentence${of}`}; empty for the model's own`,
      isForced ? "Its translation" : OWN,
    );
    forced.disabled = !isForced; // what was given stays, for the other screens
    if (!isForced) forced.title = OWN;
    if (isAlone) return { text, forced, element: make("div", { class: "row" }, text, forced) };
    const pick = make(
      "button",
      {
        type: "button",
        class: "number",
        "aria-label": `Show sentence ${number}`,
        title: `Show sentence ${number} of the batch`,
        onclick: () => (looked.sentences[number] ? setParams({ batch: number }) : submit(number)),
      },
      String(number),
    );
    const remove = make("button", {
      type: "button",
      class: "icon",
      "aria-label": `Leave out sentence ${number}`,
      title: "Leave it out",
      onclick: () => {
        write(typed().filter((_, other) => other !== number));
        rows[Math.min(number, rows.length - 1)].text.focus();
        submit(looked.sentence - (number < looked.sentence ? 1 : 0));
      },
    });
    fill(remove, "close");
    return {
      text,
      forced,
      pick,
      element: make("div", { class: "row" }, pick, text, forced, remove),
    };
  }

  /** Say that a text of several sentences is read as one, and offer to read each alone. */
  function markSeveral({ sentences: [{ text, forced }, ...others], from, to }) {
    const found = others.length ? [] : splitSentences(text, from);
    several.hidden = found.length < 2 || Boolean(document.documentElement.dataset.only);
    if (several.hidden) return;
    const given = splitSentences(forced, to);
    const isPaired = given.length === found.length;
    const split = () => {
      write(found.map((one, n) => ({ text: one, forced: isPaired ? given[n] : "" })).slice(0, MOST));
      submit(0);
    };
    several.replaceChildren(
      `${found.length} sentences, read as one. The translator reads each alone. `,
      make("button", { type: "button", class: "quiet", onclick: split }, "Split them"),
    );
  }

  /** Which of the sentences is shown, and what is known of them. */
  function mark() {
    const { trace, sentence } = looked;
    rows.forEach(({ pick, forced, element }, number) => {
      pick?.setAttribute("aria-pressed", String(number === sentence));
      element.classList.toggle("is-shown", Boolean(pick) && number === sentence);
      const own = trace?.nSentences ? trace.sentences[number] : number === sentence ? trace : null;
      if (isForced) forced.placeholder = own?.translation || "Its translation";
    });
    guide.hidden = !isForced || !trace?.match;
    guide.replaceChildren(...(trace?.match ? guideNodes(trace.match) : []));
    padded.textContent = trace?.nSentences
      ? `One batch: ${trace.nSentences} × ${trace.source_tokens.length} source and ` +
        `${trace.nSentences} × ${trace.target_tokens.length} target tokens with the padding.`
      : "";
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
  looked.on(["sentences"], ({ sentences }) => write(sentences));
  looked.on(["sentences", "from", "to"], markSeveral);
  looked.on(["trace", "sentence"], mark);
  looked.on(["isBusy", "error"], ({ isBusy, error }) => {
    form.classList.toggle("is-busy", isBusy);
    message.textContent = error ? error.message : "";
    button.textContent = isBusy ? "Computing …" : "Look";
  });
  return form;
}
