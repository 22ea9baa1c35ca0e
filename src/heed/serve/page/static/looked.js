// The sentence that the screens look into: its trace, and the tensors that were read of it.
// The text is kept in this tab only, as that of the translator.

import * as api from "./api.js";
import { fromHalf } from "./half.js";
import { addressOf, route, setParams } from "./route.js";
import { AUTO, session } from "./session.js";
import { makeStore } from "./store.js";

/**
 * text: of the sentence. forced: its given translation, or "" for the model's own. from, to: codes.
 * model: a name or "". trace: the answer of POST /api/v1/trace, or null. isBusy. error: an ApiError
 * or null. pointed: {side: "src"|"tgt", index}, the token under the mouse or the focus, or null.
 * isByWord: whether pieces are merged to words.
 */
export const looked = makeStore({
  text: sessionStorage.getItem("heed.looked") ?? "",
  forced: sessionStorage.getItem("heed.forced") ?? "",
  from: "",
  to: "",
  model: "",
  trace: null,
  isBusy: false,
  error: null,
  pointed: null,
  isByWord: false,
});

const read = new Map(); // of the current trace: address → promise of tensors
let current = new AbortController();

/** Take over the languages, and the text if there is none, from the translator. */
export function begin() {
  const { languages } = session;
  if (looked.to || !languages.length) return;
  const from = session.from === AUTO ? (session.answer?.source ?? languages[0].code) : session.from;
  const source = languages.find(({ code }) => code === from) ?? languages[0];
  const to = source.targets.includes(session.to) ? session.to : source.targets[0];
  looked.set({ from: source.code, to, text: looked.text || session.text.trim() });
  takeFromAddress();
  if (looked.text) look();
}

/** A link may bring a sentence; it does not stay in the address. */
function takeFromAddress() {
  const { text, translation = "", from, to } = route().params;
  if (!text) return;
  const isServed = session.languages.some(
    ({ code, targets }) => code === from && targets.includes(to),
  );
  looked.set({ text, forced: translation, ...(isServed ? { from, to } : {}) });
  setParams({ text: null, translation: null, from: null, to: null });
}

/** A link to what is shown, with the sentence: only on request, for whoever reads it sees the text. */
export function linkWithText() {
  const { screen, params } = route();
  const { text, forced, from, to } = looked;
  const sentence = { text, from, to, ...(forced ? { translation: forced } : {}) };
  return new URL(addressOf(screen, { ...params, ...sentence }), location.href).href;
}

/** Trace the sentence; changes are texts, languages or a model. */
export async function look(changes = {}) {
  looked.set(changes);
  const { text, forced, from, to, model } = looked;
  sessionStorage.setItem("heed.looked", text);
  sessionStorage.setItem("heed.forced", forced);
  current.abort();
  current = new AbortController();
  const { signal } = current;
  if (!text.trim() || !to) {
    looked.set({ trace: null, isBusy: false, error: null });
    return;
  }
  looked.set({ isBusy: true });
  const body = {
    text,
    source: from,
    target: to,
    ...(forced ? { translation: forced } : {}),
    ...(model ? { model } : {}),
  };
  try {
    const trace = await api.post("trace", body, signal);
    read.clear();
    looked.set({ trace, error: null, isBusy: false, pointed: null });
  } catch (error) {
    if (error.name !== "AbortError") looked.set({ error, isBusy: false });
  }
}

/** What the tensor of this name is. */
export const nodeOf = (name) => looked.trace?.nodes.find((node) => node.name === name);

/** The tensors whose names end so: Map of name → {data, shape, axes}. */
export function tensors(ending, dtype = "f16") {
  const { trace } = looked;
  const nodes = trace.nodes.filter(({ name }) => name.endsWith(ending));
  const query = new URLSearchParams({ ending, dtype });
  return remembered(`trace/${trace.id}?${query}`, nodes, dtype);
}

/** One tensor: {data: Float32Array, shape, axes}. */
export async function tensor(name, dtype = "f32") {
  const { trace } = looked;
  const address = `trace/${trace.id}/${encodeURIComponent(name)}?dtype=${dtype}`;
  return (await remembered(address, [nodeOf(name)], dtype)).get(name);
}

/** A row of a weight of the traced model, or the whole of it. */
export function weight(name, row) {
  const rest = row === undefined ? "" : `?row=${row}`;
  const address = `trace/${looked.trace.id}/weights/${encodeURIComponent(name)}${rest}`;
  return once(address, async () => new Float32Array(await api.bytes(address)));
}

/** The vocabulary of a side, all pieces in the order of their ids. */
export function pieces(side) {
  const address = `trace/${looked.trace.id}/pieces?side=${side}`;
  return once(address, () => api.get(address));
}

function remembered(address, nodes, dtype) {
  return once(address, async () => split(await api.bytes(address), nodes, dtype));
}

/** What `ask` answers, which is called once for each address of a trace. */
function once(address, ask) {
  if (!read.has(address)) read.set(address, ask());
  return read.get(address);
}

function split(buffer, nodes, dtype) {
  const all = dtype === "f16" ? fromHalf(new Uint16Array(buffer)) : new Float32Array(buffer);
  const found = new Map();
  let start = 0;
  for (const { name, shape, axes } of nodes) {
    const end = start + shape.reduce((product, length) => product * length, 1);
    found.set(name, { data: all.subarray(start, end), shape, axes });
    start = end;
  }
  return found;
}

session.on(["languages"], begin);
