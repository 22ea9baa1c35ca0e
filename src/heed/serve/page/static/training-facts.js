// What happened in a run, what it is made of, and in what runs differ.

import { icon, make } from "./element.js";
import { duration } from "./training-curves.js";

const KINDS = {
  alarm: "Alarm",
  average: "Average",
  best: "Best",
  checkpoint: "Saved",
  end: "End",
  mend: "Mended",
  note: "Note",
  pause: "Stopped",
  resumed: "Resumed",
  skipped: "Skipped",
};
const N_EVENTS = 200; // shown, the latest ones
const NUMBER = new Intl.NumberFormat("en");

/** The alarms of a run with their remedies. */
export function alarms(whole) {
  const found = whole.marks.filter(({ kind }) => kind === "alarm");
  return found.map(({ step, text, remedy }) =>
    make(
      "div",
      { class: "alarm" },
      icon("warn"),
      make(
        "div",
        {},
        make(
          "p",
          {},
          make("b", {}, text),
          make("span", { class: "hint" }, ` Step ${NUMBER.format(step)}.`),
        ),
        remedy ? make("p", { class: "remedy" }, remedy) : null,
      ),
    ),
  );
}

/** The events of a run, the latest first. */
export function events(whole) {
  const shown = whole.marks.slice(-N_EVENTS).reverse();
  const rows = shown.map(({ kind, step, seconds, text, remedy }) =>
    make(
      "tr",
      { "data-kind": kind },
      make("td", {}, KINDS[kind] ?? kind),
      make("td", { class: "number" }, NUMBER.format(step)),
      make("td", { class: "number" }, seconds === null ? "" : duration(seconds)),
      make("td", {}, text, remedy ? make("span", { class: "hint" }, ` ${remedy}`) : null),
    ),
  );
  return table("Events", ["Event", "Step", "Time", "What happened"], rows);
}

/** The settings in which runs differ; of one run, all of them. */
export function settings(runs, differences) {
  if (runs.length === 1) {
    const entries = Object.entries(runs[0].settings);
    return table(
      "Settings",
      ["Setting", "Value"],
      entries.map((entry) => row(entry)),
    );
  }
  const names = Object.keys(differences);
  if (!names.length)
    return make("p", { class: "hint" }, "The settings of these runs are the same.");
  const rows = names.map((name) => row([name, ...differences[name].map((value) => value ?? "–")]));
  return table("Settings that differ", ["Setting", ...runs.map(({ status }) => status.name)], rows);
}

const row = ([name, ...values]) =>
  make(
    "tr",
    {},
    make("th", { scope: "row" }, name),
    ...values.map((value) => make("td", {}, `${value}`)),
  );

function table(label, heads, rows) {
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...rows),
    ),
  );
}

/** A run's model and corpus in a line. */
export function factsLine({ facts }) {
  const corpus = Object.entries(facts.corpus)
    .filter(([, count]) => count !== null)
    .map(([name, count]) => `${NUMBER.format(count)} ${name}`);
  const size =
    facts.parameters === null ? "" : `${(facts.parameters / 1e6).toFixed(1)} million parameters`;
  return [...corpus, size, facts.model].filter(Boolean).join(" · ");
}
