// Requests to /api/v1, relative to the page, so that the server may stand behind a prefix.

import { ofTab } from "./storage.js";

const ROOT = "api/v1/";
const KEY = "heed.key";
const AGAIN_S = 5; // a server that is being started again answers in a few seconds

/** An event of the window: the server refused a request that has no valid key. */
export const KEY_WANTED = "heed-key-wanted";

/** An answer that is an error: the server's own sentence. */
export class ApiError extends Error {
  constructor(sentence, { status = 0, code = "", retryAfter = 0 } = {}) {
    super(sentence);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

/** The key that a server with keys wants; forgotten when the tab closes. */
export const setKey = (key) => ofTab.set(KEY, key || null);

export const get = (path) => request(path, {}).then((response) => received(response.json()));

export const bytes = (path) =>
  request(path, {}).then((response) => received(response.arrayBuffer()));

export const post = (path, body, signal) =>
  request(path, asJson(body, signal)).then((response) => received(response.json()));

/** The events of a stream, as [name, data], until it ends. Without a body it is a GET. */
export async function* events(path, body, signal) {
  const response = await request(path, body ? asJson(body, signal) : { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await received(reader.read());
    if (done) return;
    const blocks = (waiting + value.replaceAll("\r", "")).split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) {
      const event = readEvent(block);
      if (event) yield event;
    }
  }
}

/** One block of a stream of server-sent events; null for a comment. */
export function readEvent(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? [name, JSON.parse(data.join("\n"))] : null;
}

/**
 * Send a file; fetch cannot tell how much of it has been sent, XMLHttpRequest can.
 * @returns {Promise<{blob: Blob, name: string}>} the answer's file, and its name if it has one
 */
export function upload(path, form, { onProgress, signal }) {
  return new Promise((resolve, reject) => {
    const http = new XMLHttpRequest();
    http.open("POST", ROOT + path);
    for (const [name, value] of Object.entries(keyHeader())) http.setRequestHeader(name, value);
    http.responseType = "blob";
    http.upload.onprogress = (event) => onProgress(event.loaded / event.total);
    http.onerror = () => reject(unreachable());
    http.onabort = () => reject(new DOMException("", "AbortError"));
    http.onload = async () => {
      if (http.status === 200) {
        const named = /filename\*=UTF-8''([^;]+)/.exec(
          http.getResponseHeader("Content-Disposition") ?? "",
        );
        resolve({ blob: http.response, name: named ? decodeURIComponent(named[1]) : "" });
      } else {
        reject(
          errorOf(http.status, await http.response.text(), http.getResponseHeader("Retry-After")),
        );
      }
    };
    signal.addEventListener("abort", () => http.abort());
    http.send(form);
  });
}

/** @throws {ApiError} the answer is none, or an error */
export async function request(path, options) {
  const headers = { ...options.headers, ...keyHeader() };
  const response = await received(fetch(ROOT + path, { ...options, headers }));
  if (response.ok) return response;
  if (response.status === 401) dispatchEvent(new Event(KEY_WANTED));
  throw errorOf(response.status, await response.text(), response.headers.get("Retry-After"));
}

const asJson = (body, signal) => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
  signal,
});

function keyHeader() {
  const key = ofTab.get(KEY);
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** What the server sends; an error of the connection becomes one that a person can read. */
async function received(sent) {
  try {
    return await sent;
  } catch (error) {
    throw error.name === "AbortError" ? error : unreachable();
  }
}

const unreachable = () =>
  new ApiError("The server does not answer. Check that it runs and that you are connected to it.", {
    retryAfter: AGAIN_S,
  });

function errorOf(status, text, retryAfter) {
  let error = {};
  try {
    const body = JSON.parse(text).error;
    error = typeof body === "string" ? { sentence: body } : (body ?? {});
  } catch {
    // Something between the page and the server answered, such as a proxy.
  }
  return new ApiError(error.sentence || `The server answered with the status ${status}.`, {
    status,
    code: error.code,
    retryAfter: Number(retryAfter) || 0,
  });
}
