// What a person does here, and what the server says to it. The other modules show its values and
// call its functions. The text is kept in this tab only (sessionStorage), never in an address.

import * as api from "./api.js";
import { bareAnswer, readAnswer, readPartial, readSegment, withSentence } from "./answer.js";
import { ofBrowser, ofTab } from "./storage.js";
import { makeStore } from "./store.js";

export const AUTO = "auto";
const PAUSE_MS = 300;
const STREAM_FROM = 240; // characters; a shorter text is answered at once
const REDRAW_MS = 100; // of a text that arrives
const N_ALTERNATIVES = 4;
const N_CHOICES = 6;

export const charLimit = Number(document.documentElement.dataset.charLimit) || 100_000;

/**
 * languages, models: of the server. from, to: codes. text: to translate. answer: see answer.js, or
 * null. isBusy: a request is on its way. error: an ApiError, or null. canUndo, canRedo. glossary:
 * term → term, for this direction. pointed: {side, segment, word}, what the mouse or the focus is
 * on, or null. model: a name, or "" for the server's choice.
 */
export const session = makeStore({
  languages: [],
  models: [],
  from: AUTO,
  to: "",
  text: "",
  answer: null,
  isBusy: false,
  error: null,
  canUndo: false,
  canRedo: false,
  glossary: {},
  pointed: null,
  model: "",
});

const past = [];
const future = [];
let waiting = 0;
let current = new AbortController();
let isCurrent = false; // the answer is of the text, the languages and the model that are chosen

/** Languages and models of the server, then the text of this tab. */
export async function start() {
  try {
    const [languages, models] = await Promise.all([api.get("languages"), api.get("models")]);
    session.set({ languages: languages.filter(({ targets }) => targets.length), models });
  } catch (error) {
    session.set({ error });
    return;
  }
  const stored = ofBrowser.object("heed.languages");
  const codes = session.languages.map(({ code }) => code);
  const from = codes.includes(stored.from) ? stored.from : codes.length > 1 ? AUTO : codes[0];
  const to = targetsOf(from).includes(stored.to) ? stored.to : targetsOf(from)[0];
  session.set({ error: null, from, to });
  // Somebody may have begun to type already.
  setText(session.text || (ofTab.get("heed.text") ?? ""), 0);
}

/** The languages into which `from` can be translated. */
export function targetsOf(from) {
  if (from !== AUTO) return session.languages.find(({ code }) => code === from)?.targets ?? [];
  return [...new Set(session.languages.flatMap(({ targets }) => targets))];
}

const NAMES = new Intl.DisplayNames(["en"], { type: "language" });

/** The name of a language; one that is only translated into is not among the server's names. */
export function nameOf(code) {
  const known = session.languages.find((one) => one.code === code)?.name;
  try {
    return known ?? NAMES.of(code);
  } catch {
    return code; // no code of a language
  }
}

/** The language of the text: chosen, detected, or the only one possible; "" if not known yet. */
export function sourceCode() {
  if (session.from !== AUTO) return session.from;
  if (session.answer?.source) return session.answer.source;
  const possible = session.languages.filter(({ targets }) => targets.includes(session.to));
  return possible.length === 1 ? possible[0].code : "";
}

/** @param {number} delay milliseconds until it is translated, if nothing more is typed */
export function setText(text, delay = PAUSE_MS) {
  isCurrent = false;
  session.set({ text });
  ofTab.set("heed.text", text);
  clearTimeout(waiting);
  waiting = setTimeout(translate, delay);
}

export function setFrom(from) {
  session.set({ from });
  const targets = targetsOf(from);
  setTo(targets.includes(session.to) ? session.to : targets[0]);
}

export function setTo(to) {
  session.set({ to, model: "" });
  keepLanguages();
  if (session.text) translate();
}

function keepLanguages() {
  const { from, to } = session;
  ofBrowser.set("heed.languages", JSON.stringify({ from, to }));
}

export function setModel(model) {
  session.set({ model });
  translate();
}

/** Whether the texts can change sides. */
export function canSwap() {
  return targetsOf(session.to).includes(sourceCode());
}

/** Languages change sides, and so do the texts. */
export function swap() {
  if (!canSwap()) return;
  const [from, to] = [session.to, sourceCode()];
  // The answer to what was typed before, or in another language, must not take the text's place.
  const text = (isCurrent && session.answer?.text) || session.text;
  session.set({ from, to, model: "", answer: null });
  keepLanguages();
  setText(text, 0);
}

/** Translate now; a request on its way is given up. */
export async function translate() {
  clearTimeout(waiting);
  isCurrent = false;
  current.abort();
  current = new AbortController();
  const { text, to } = session;
  if (!to) return; // the languages are not here yet
  past.length = future.length = 0;
  if (!text.trim() || text.length > charLimit) {
    session.set({ answer: null, isBusy: false, error: null, canUndo: false, canRedo: false });
    return;
  }
  await during(current.signal, async (signal) => {
    const sent = await showAnswer(text, signal);
    // It told the language of the text, for which there may be another glossary than was sent.
    if (sent !== JSON.stringify(session.glossary)) await showAnswer(text, signal);
    isCurrent = !signal.aborted;
  });
}

/** Show the answer to a text; returns the glossary that was sent for it, in JSON. */
async function showAnswer(text, signal) {
  const sent = JSON.stringify(session.glossary);
  const answer = await (text.length < STREAM_FROM ? whole(text, signal) : streamed(text, signal));
  if (isTurnedAround(answer)) return showAnswer(text, signal);
  session.set({ answer, error: null, canUndo: false, canRedo: false });
  return sent;
}

/** A text that is in the target language already is translated into another one instead. */
function isTurnedAround({ source }) {
  const other = targetsOf(source)[0];
  if (session.from !== AUTO || source !== session.to || !other) return false;
  session.set({ to: other, model: "" });
  return true;
}

async function whole(text, signal) {
  return readAnswer(text, await api.post("translate", asked(text, N_ALTERNATIVES), signal));
}

async function streamed(text, signal) {
  const segments = [];
  let next = 0;
  for await (const [name, data] of api.events("translate/stream", asked(text, 0), signal)) {
    if (name === "segment") {
      segments.push(readSegment(data));
      if (performance.now() < next) continue;
      session.set({ answer: readPartial(text, segments), error: null });
      next = performance.now() + REDRAW_MS;
    } else if (name === "error") {
      throw new api.ApiError(data.error?.sentence ?? data.sentence);
    } else if (name === "done") {
      return { ...readAnswer(text, data), alternatives: null }; // they were not asked for
    }
  }
  throw new api.ApiError("The connection ended before the translation did. Try again.");
}

/** The body of a request, as "Show the request" shows it too. */
export function asked(text, alternatives = N_ALTERNATIVES) {
  const { from, to, glossary, model } = session;
  return {
    text,
    source: from,
    target: to,
    details: true,
    ...(alternatives ? { alternatives } : {}),
    ...(Object.keys(glossary).length ? { glossary } : {}),
    ...(model ? { model } : {}),
  };
}

const askedAgain = (segment, more) => ({
  ...asked(segment.source, 0),
  source: session.answer.source,
  ...more,
});

/** The most probable words at a place of the translation. */
export async function choicesAt(index, offset, signal) {
  const segment = session.answer.segments[index];
  const { text, source, target, model } = askedAgain(segment, {});
  const prefix = segment.text.slice(0, offset).trimEnd();
  const body = { text, prefix, source, target, k: N_CHOICES, ...(model ? { model } : {}) };
  const { choices } = await api.post("continue", body, signal);
  return { prefix, choices };
}

/** Other translations of one sentence. */
export async function alternativesOf(index, signal) {
  const segment = session.answer.segments[index];
  const body = askedAgain(segment, { alternatives: N_ALTERNATIVES, details: false });
  const { translations } = await api.post("translate", body, signal);
  return translations[0].alternatives;
}

/**
 * Put another translation in place of a sentence: its text at once, its pieces when they come.
 * @param {number} index of the sentence
 * @param {string} text of the whole sentence
 * @param {string} prefix what of it the decoder is told; it finds the rest again
 */
export async function choose(index, text, prefix) {
  const { answer } = session;
  if (!isCurrent) return; // a newer translation is on its way
  const segment = answer.segments[index];
  past.push(answer);
  future.length = 0;
  const bare = withSentence(answer, index, bareAnswer(segment.source, text));
  session.set({ answer: bare, canUndo: true, canRedo: false });
  current.abort();
  current = new AbortController();
  await during(current.signal, async (signal) => {
    const body = askedAgain(segment, { prefix });
    const other = readAnswer(segment.source, await api.post("translate", body, signal));
    if (other.text !== text || session.answer !== bare) return;
    session.set({ answer: withSentence(answer, index, other) });
  });
}

export function undo() {
  step(past, future);
}

export function redo() {
  step(future, past);
}

function step(from, to) {
  if (!from.length) return;
  current.abort();
  to.push(session.answer);
  const answer = from.pop();
  session.set({ answer, canUndo: past.length > 0, canRedo: future.length > 0, isBusy: false });
}

async function during(signal, work) {
  session.set({ isBusy: true });
  try {
    await work(signal);
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted) return;
    session.set({ error });
  }
  if (!signal.aborted) session.set({ isBusy: false });
}
