// The sentences that the screens look into: their trace, and the tensors that were read of it.
// The texts are kept in this tab only, as that of the translator.

import * as api from "./api.js";
import { fromHalf } from "./half.js";
import { addressOf, onRoute, route, setParams } from "./route.js";
import { AUTO, session } from "./session.js";
import { ofTab } from "./storage.js";
import { makeStore } from "./store.js";

/** Screens that show what several sentences are together; the others look into one of them. */
const TOGETHER = ["attention", "steps"];
const ALONE = ["decoding", "causes", "positions"];
const NOTHING = { text: "", forced: "" };
/** Sentences that a screen takes over or adds. */
export const MOST = 8;

/**
 * sentences: [{text, forced}], read as one batch where there are several; forced is a given
 * translation, or "" for the model's own. sentence: number of the one that is shown. text, forced:
 * of this one. from, to: codes. model: a name or "". trace: the answer of POST /api/v1/trace, or
 * null; of a batch that of one sentence, with its number `batch` and their count `nSentences`.
 * isBusy. error: an ApiError or null. pointed: {side: "src"|"tgt", index}, the token under the mouse
 * or the focus, or null. isByWord: whether pieces are merged to words.
 */
export const looked = makeStore({
  ...chosen(
    paired(ofTab.get("heed.looked") ?? "", ofTab.get("heed.forced") ?? ""),
    Number(route().params.batch ?? ofTab.get("heed.sentence")) || 0,
  ),
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
let answer = null; // of the server, of all sentences that were asked for

/** Sentences from two texts, which have one in each line. */
function paired(texts, translations) {
  const given = translations.split("\n");
  const found = texts.split("\n").map((text, line) => ({ text, forced: given[line] ?? "" }));
  return found.filter(({ text }) => text.trim());
}

/** Sentences as one text, one in each line. */
const lines = (sentences, part) => sentences.map((one) => one[part]).join("\n");

/** Sentences of which one is shown, as the store has them. */
function chosen(given, number) {
  const sentences = given.length ? given : [NOTHING];
  const sentence = Math.max(0, Math.min(number, sentences.length - 1));
  return { sentences, sentence, ...sentences[sentence] };
}

/** Take over the languages, and the sentences if there are none, from the translator. */
export function begin() {
  const { languages } = session;
  if (looked.to || !languages.length) return;
  const from = session.from === AUTO ? (session.answer?.source ?? languages[0].code) : session.from;
  const source = languages.find(({ code }) => code === from) ?? languages[0];
  const to = source.targets.includes(session.to) ? session.to : source.targets[0];
  looked.set({ from: source.code, to });
  // What a person typed while the languages were on their way stays.
  const found = translated();
  if (!looked.text && found.length) looked.set(chosen(found, 0));
  takeFromAddress();
  if (looked.text) look();
}

/** The sentences of the translator: as it has split them, if it has. */
function translated() {
  const { answer, text } = session;
  const isOf = answer?.sourceText === text;
  const texts = isOf ? answer.segments.slice(0, MOST).map(({ source }) => source) : [text];
  return texts.map((one) => ({ ...NOTHING, text: oneLine(one) })).filter((one) => one.text);
}

const oneLine = (text) => text.trim().replace(/\s*\n\s*/g, " ");

/** A link may bring sentences; they do not stay in the address. */
function takeFromAddress() {
  const { text, translation = "", from, to, batch } = route().params;
  if (!text) return;
  const isServed = session.languages.some(
    ({ code, targets }) => code === from && targets.includes(to),
  );
  const given = chosen(paired(text, translation), Number(batch) || 0);
  looked.set({ ...given, ...(isServed ? { from, to } : {}) });
  setParams({ text: null, translation: null, from: null, to: null });
}

/** A link to what is shown, with the text: only on request, for whoever reads it sees the text. */
export function linkWithText() {
  const { screen, params } = route();
  const { sentences, from, to } = looked;
  const forced = lines(sentences, "forced");
  const sentence = {
    text: lines(sentences, "text"),
    from,
    to,
    ...(forced.trim() ? { translation: forced } : {}),
  };
  return new URL(addressOf(screen, { ...params, ...sentence }), location.href).href;
}

/**
 * Trace the sentences.
 * @param {object} changes sentences, sentence, languages or a model
 */
export async function look({
  sentences = looked.sentences,
  sentence = looked.sentence,
  ...rest
} = {}) {
  looked.set({ ...chosen(sentences, sentence), ...rest });
  keep();
  const { text, from, to, model } = looked;
  current.abort();
  current = new AbortController();
  const { signal } = current;
  answer = null;
  if (!text.trim() || !to) {
    looked.set({ trace: null, isBusy: false, error: null });
    return;
  }
  looked.set({ isBusy: true, error: null });
  const part = (name) => (isTogether() ? looked.sentences.map((one) => one[name]) : looked[name]);
  const isGiven = [part("forced")].flat().some(Boolean);
  const body = {
    text: part("text"),
    source: from,
    target: to,
    ...(isGiven ? { translation: part("forced") } : {}),
    ...(model ? { model } : {}),
  };
  try {
    answer = await api.post("trace", body, signal);
    read.clear();
    looked.set({ trace: partOf(looked.sentence), isBusy: false, pointed: null });
    if (!isFitting()) look();
  } catch (error) {
    // The numbers of another sentence must not stand under this one.
    if (error.name !== "AbortError") looked.set({ error, isBusy: false, trace: null });
  }
}

/** Whether the screen shows all sentences as one batch. */
const isTogether = () => looked.sentences.length > 1 && !ALONE.includes(route().screen);

/** Whether the answer is of as many sentences as the screen looks into. */
const isFitting = () =>
  !answer ||
  looked.sentences.length < 2 ||
  !(answer.sentences ? ALONE : TOGETHER).includes(route().screen);

/** The trace, for what looks into one sentence; null while it is of several. */
export const traceOfOne = () => (looked.trace?.nSentences ? null : looked.trace);

/** Remember the sentences in this tab. */
function keep() {
  ofTab.set("heed.looked", lines(looked.sentences, "text"));
  ofTab.set("heed.forced", lines(looked.sentences, "forced"));
  ofTab.set("heed.sentence", looked.sentence);
}

/** The answer of the server as one sentence of it. */
function partOf(batch) {
  const { sentences } = answer;
  if (!sentences) return answer;
  const nodes = answer.nodes.map((node) => ({
    ...node,
    shape: node.shape.slice(1),
    axes: node.axes.slice(1),
  }));
  return { ...answer, ...sentences[batch], nodes, batch, nSentences: sentences.length };
}

/** Show another of the sentences. */
function choose(number) {
  if (number === looked.sentence || !looked.sentences[number]) return;
  looked.set({ ...chosen(looked.sentences, number), pointed: null });
  keep();
  if (answer?.sentences) looked.set({ trace: partOf(number) });
  else if (looked.to && !(looked.isBusy && isTogether())) look();
}

/** The places of padding along an axis: of a batch, behind the tokens of each side. */
export function paddingOf(axis) {
  const { trace } = looked;
  const sides = {
    src: [trace.source_tokens.length, trace.source_padding],
    tgt: [trace.target_tokens.length, trace.target_padding],
  };
  const found = [];
  let start = 0;
  for (const side of axis.split("+")) {
    const [length, count] = sides[side] ?? [0, 0];
    for (let place = length - count; place < length; place += 1) found.push(start + place);
    start += length;
  }
  return found;
}

/** What the tensor of this name is. */
export const nodeOf = (name) => looked.trace?.nodes.find((node) => node.name === name);

/** The tensors whose names end so: Map of name → {data, shape, axes}. */
export function tensors(ending, dtype = "f16") {
  const nodes = looked.trace.nodes.filter(({ name }) => name.endsWith(ending));
  return remembered("", { ending, dtype }, nodes);
}

/** One tensor: {data: Float32Array, shape, axes}. */
export async function tensor(name, dtype = "f32") {
  return (await remembered(`/${encodeURIComponent(name)}`, { dtype }, [nodeOf(name)])).get(name);
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

/** The numbers that one side of the model reads: a span that is kept has the number of its slot. */
export function idsOf(side) {
  return side === "src" ? looked.trace.source_ids : looked.trace.target_ids;
}

/** Tensors of the sentence that is shown. */
function remembered(path, query, nodes) {
  const { id, batch } = looked.trace;
  const of = batch === undefined ? {} : { batch };
  const address = `trace/${id}${path}?${new URLSearchParams({ ...query, ...of })}`;
  return once(address, async () => split(await api.bytes(address), nodes, query.dtype));
}

/** What `ask` answers, which is called once for each address of a trace. */
function once(address, ask) {
  if (!read.has(address)) {
    const asked = ask();
    asked.catch(() => read.delete(address)); // the next request may succeed
    read.set(address, asked);
  }
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
onRoute(({ screen, params }) => {
  if (params.batch !== undefined) choose(Number(params.batch));
  if (!isFitting()) look();
});
