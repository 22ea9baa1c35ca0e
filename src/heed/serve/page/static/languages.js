// The languages: the two lists, the swap button, and what was detected.

import { byId, fill, make } from "./element.js";
import { percent } from "./reason.js";
import * as session from "./session.js";

const { AUTO, nameOf, targetsOf } = session;
const state = session.session;
const from = byId("from");
const to = byId("to");
const swap = byId("swap");

export function showLanguages() {
  fill(swap, "swap");
  swap.addEventListener("click", session.swap);
  from.addEventListener("change", () => session.setFrom(from.value));
  to.addEventListener("change", () => session.setTo(to.value));
  state.on(["languages", "from", "to"], drawLists);
  state.on(["answer", "from", "to"], drawSwap);
  state.on(["answer", "from"], drawDetected);
}

function drawLists({ languages }) {
  const sources = languages.map(({ code }) => code);
  const all = sources.length > 1 ? [AUTO, ...sources] : sources;
  drawList(from, all, state.from);
  drawList(to, targetsOf(state.from), state.to);
}

function drawList(list, codes, chosen) {
  const options = codes.map((code) => {
    const name = code === AUTO ? "Detect language" : nameOf(code);
    return make("option", { value: code, selected: code === chosen }, name);
  });
  list.replaceChildren(...options);
  list.value = chosen;
}

function drawSwap() {
  const can = session.canSwap();
  swap.setAttribute("aria-disabled", String(!can));
  const source = nameOf(session.sourceCode());
  const reason = source
    ? `No model translates from ${nameOf(state.to)} to ${source}`
    : "The language of the text is not known yet";
  swap.title = can ? "Swap (Alt+Shift+S)" : reason;
}

function drawDetected({ answer }) {
  const line = byId("detected");
  line.hidden = state.from !== AUTO || !answer?.source || answer.confidence == null;
  if (line.hidden) return;
  const doubt = answer.doubts.find(({ kind }) => kind === "language_doubtful");
  const name = `${nameOf(answer.source)}${doubt ? "?" : ""}`;
  line.classList.toggle("doubtful", Boolean(doubt));
  line.title = doubt?.sentence ?? "The detected language and its probability";
  line.replaceChildren(
    make(
      "button",
      {
        type: "button",
        class: "link",
        title: "Keep this language",
        onclick: () => session.setFrom(answer.source),
      },
      name,
    ),
    make("span", { class: "number" }, percent(answer.confidence)),
  );
}
