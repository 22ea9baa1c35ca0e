// The search that the decoding screen shows: its options, its record, the numbers of its steps.

import * as api from "./api.js";
import { looked } from "./looked.js";
import { makeStore } from "./store.js";

const PAUSE_MS = 150;

/** Parameter in the address → option of decoding, and how its text is read. */
const OPTIONS = {
  beam: ["beam_size", Number],
  alpha: ["length_penalty", Number],
  formula: ["length_formula", String],
  ngram: ["no_repeat_ngram_size", Number],
  stop: ["early_stopping", String],
};
const FILTERS = {
  temperature: ["temperature", Number],
  topk: ["top_k", Number],
  topp: ["top_p", Number],
  minp: ["min_p", Number],
  seed: ["seed", Number],
};
const NOT_SAMPLED = { sample: false, temperature: 1, top_k: 0, top_p: 1, min_p: 0 };

/**
 * answer: of POST /api/v1/search, or null. greedy: the same for greedy search, if the answer is of a
 * beam. greedyError: why there is no such search, an ApiError or null. isBusy. error: an ApiError or
 * null. prefix: ids that the translation must begin with.
 */
export const searched = makeStore({
  answer: null,
  greedy: null,
  greedyError: null,
  isBusy: false,
  error: null,
  prefix: [],
});

let current = new AbortController();
let waiting = 0;
let asked = "";
let pieces = null; // of the target vocabulary: promise of texts by id
let pieceId = "";
const steps = new Map(); // of the current record: number → promise of its distributions

/** The options that these parameters of the address ask for. */
export function optionsOf(params) {
  const { strategy = "beam" } = params;
  const read = (table) =>
    Object.fromEntries(
      Object.entries(table)
        .filter(([name]) => params[name] !== undefined && params[name] !== "")
        .map(([name, [option, convert]]) => [option, convert(params[name])]),
    );
  const common = { n_best: 1, ...read(OPTIONS) };
  if (strategy === "sample") return { ...common, sample: true, ...neutral(), ...read(FILTERS) };
  if (strategy === "greedy") return { ...common, ...NOT_SAMPLED, beam_size: 1 };
  return { ...common, ...NOT_SAMPLED };
}

const neutral = () => ({ temperature: 1, top_k: 0, top_p: 1, min_p: 0, seed: 0 });

/** Search again if anything that decides the search has changed; sliders move quickly. */
export function search(params, delay = PAUSE_MS) {
  const { text, from, to, model } = looked;
  const request = {
    text,
    source: from,
    target: to,
    ...(model ? { model } : {}),
    ...(searched.prefix.length ? { prefix_ids: searched.prefix } : {}),
    ...(params.memory === "off" ? { use_memory: false } : {}),
    options: optionsOf(params),
  };
  const key = JSON.stringify(request);
  if (key === asked) return;
  asked = key;
  clearTimeout(waiting);
  current.abort();
  if (!text.trim() || !to) {
    searched.set({ answer: null, greedy: null, isBusy: false, error: null });
    return;
  }
  searched.set({ isBusy: true, error: null });
  // At once where it may be: the trace that other screens need is slower, and would be before it.
  if (delay && searched.answer) waiting = setTimeout(() => run(request), delay);
  else run(request);
}

async function run(request) {
  current = new AbortController();
  const { signal } = current;
  try {
    const answer = await api.post("search", request, signal);
    steps.clear();
    searched.set({ answer, greedy: null, greedyError: null, isBusy: false });
    if (answer.strategy === "beam") await runGreedy(request, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    asked = ""; // the same may be asked again
    searched.set({ answer: null, greedy: null, error, isBusy: false });
  }
}

/** Greedy search, to compare the answer with; the answer stays if this fails. */
async function runGreedy(request, signal) {
  const options = { ...request.options, beam_size: 1 };
  try {
    searched.set({ greedy: await api.post("search", { ...request, options }, signal) });
  } catch (error) {
    if (error.name !== "AbortError") searched.set({ greedyError: error });
  }
}

/** The translation must begin with these ids; none = it is free. */
export function force(prefix) {
  searched.set({ prefix });
}

/**
 * The distributions of one step.
 * @returns {Promise<Array<{slot: number, logProbs: Float32Array, scores: Float32Array}>>}
 */
export function distributions(number) {
  const { answer } = searched;
  if (!steps.has(number)) {
    const read = api.bytes(`search/${answer.id}/step/${number}`).then((buffer) => {
      const size = answer.vocab_size;
      const { rows } = answer.steps[number];
      const all = new Float32Array(buffer);
      const part = (line) => all.subarray(line * size, (line + 1) * size);
      return rows.map(({ slot }, line) => ({
        slot,
        logProbs: part(line),
        scores: part(rows.length + line),
      }));
    });
    read.catch(() => {
      if (steps.get(number) === read) steps.delete(number); // the next request may succeed
    });
    steps.set(number, read);
  }
  return steps.get(number);
}

/** The pieces of the target vocabulary by id. */
export function vocabulary() {
  const { answer } = searched;
  const key = `${answer.model} ${answer.source} ${answer.target} ${answer.vocab_size}`;
  if (pieceId !== key) {
    pieceId = key;
    pieces = api.get(`search/${answer.id}/pieces`);
    pieces.catch(() => {
      if (pieceId === key) pieceId = "";
    });
  }
  return pieces;
}

/** The random numbers that the first samples of the sentence use at a step. */
export function numbersAt(step, seed, count) {
  const query = new URLSearchParams({ step, seed, count });
  return api.get(`search/${searched.answer.id}/draws?${query}`).then(({ numbers }) => numbers);
}

/** The candidates that lead to one, itself last. */
export function pathTo(steps_, number, place) {
  const path = [];
  let at = place;
  for (let step = number; step >= 0 && at !== null; step -= 1) {
    const candidate = steps_[step].candidates[at];
    path.unshift(candidate);
    at = steps_[step].rows.find(({ slot }) => slot === candidate.parent).candidate;
  }
  return path;
}
