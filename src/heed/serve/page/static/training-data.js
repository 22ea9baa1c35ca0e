// The runs that are shown: read once, then kept up to date by the server's events.

import * as api from "./api.js";
import { ofTab } from "./storage.js";
import { makeStore } from "./store.js";

export const MAX_CHOSEN = 6; // as many as there are colors
const TOKEN = "heed.run-token"; // screens.js takes it from the address
const AGAIN_MS = 3000; // after the connection was lost
const LOOK_MS = 10_000; // whether a run that had stopped goes on

/**
 * runs: the status of each run of the server. chosen: names of those that are shown, the main one
 * first. whole: name → all of a run (see explain/training/report.py). hasToken: the buttons work.
 * error: an ApiError, or null.
 */
export const watched = makeStore({
  runs: [],
  chosen: [],
  whole: {},
  hasToken: false,
  takesToken: false,
  error: null,
});

const streams = new Map(); // name → AbortController

/** See whether this tab has a token by now. */
export function lookForToken() {
  watched.set({ hasToken: Boolean(ofTab.get(TOKEN)) });
}

/** Read the list of runs. */
export async function readRuns() {
  try {
    const { runs, is_controllable: takesToken } = await api.get("runs");
    watched.set({ runs, takesToken, error: null });
  } catch (error) {
    watched.set({ error });
  }
}

/** Show these runs, and no others. */
export function choose(names) {
  const chosen = names.slice(0, MAX_CHOSEN);
  for (const [name, controller] of streams) {
    if (chosen.includes(name)) continue;
    controller.abort();
    streams.delete(name);
  }
  if (JSON.stringify(chosen) !== JSON.stringify(watched.chosen)) watched.set({ chosen });
  for (const name of chosen) if (!streams.has(name)) follow(name);
}

/** End all streams; what was read stays. */
export function rest() {
  for (const controller of streams.values()) controller.abort();
  streams.clear();
}

async function follow(name) {
  const controller = new AbortController();
  streams.set(name, controller);
  while (!controller.signal.aborted) {
    let pause = AGAIN_MS;
    try {
      const whole = await api.get(pathOf(name));
      put(name, whole);
      for await (const [event, change] of listen(name, whole.cursor, controller.signal)) {
        if (event === "news") add(name, change);
        if (event === "anew") pause = 0;
        if (event === "end") pause = LOOK_MS;
      }
      watched.set({ error: null });
    } catch (error) {
      if (error.name === "AbortError") return;
      watched.set({ error });
      if (error.status === 404) return;
    }
    await sleep(pause, controller.signal);
    if (pause === LOOK_MS) await change(name, controller.signal);
  }
}

const pathOf = (name) => `runs/${encodeURIComponent(name)}`;

const listen = (name, cursor, signal) =>
  api.events(`${pathOf(name)}/events?since=${encodeURIComponent(cursor)}`, null, signal);

/** Wait until a run that had stopped goes on, or was changed. */
async function change(name, signal) {
  const before = watched.whole[name].cursor;
  while (!signal.aborted) {
    const { runs } = await api.get("runs").catch(() => ({ runs: [] }));
    const status = runs.find((run) => run.name === name);
    if (status && (status.cursor !== before || isLive(status))) return;
    await sleep(LOOK_MS, signal);
  }
}

export const isLive = ({ state }) => state === "training" || state === "preparing";

function put(name, whole) {
  const runs = watched.runs.map((run) => (run.name === name ? whole.status : run));
  watched.set({ whole: { ...watched.whole, [name]: whole }, runs, error: null });
}

function add(name, news) {
  const old = watched.whole[name];
  const longer = (table, more) =>
    Object.fromEntries(Object.keys(table).map((key) => [key, table[key].concat(more[key] ?? [])]));
  put(name, {
    ...old,
    status: news.status,
    cursor: news.cursor,
    steps: longer(old.steps, news.steps),
    validations: longer(old.validations, news.validations),
    marks: old.marks.concat(news.marks),
    samples: news.samples ?? old.samples,
  });
}

function sleep(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Ask the run to `save` or to `stop`. @throws {ApiError} */
export function control(name, action) {
  const headers = { "X-Heed-Token": ofTab.get(TOKEN) ?? "" };
  return api.request(`${pathOf(name)}/${action}`, { method: "POST", headers });
}

/** All numbers of the runs that are shown, as rows of a table; each part has its own head. */
export function asRows() {
  const rows = [];
  for (const name of watched.chosen) {
    const whole = watched.whole[name];
    for (const [part, kind] of [
      ["steps", "step"],
      ["validations", "validation"],
    ]) {
      const table = whole?.[part] ?? { step: [] };
      const columns = Object.keys(table);
      if (!table.step.length) continue;
      rows.push(["run", "kind", ...columns]);
      table.step.forEach((_, row) =>
        rows.push([name, kind, ...columns.map((key) => table[key][row] ?? "")]),
      );
    }
  }
  return rows;
}
