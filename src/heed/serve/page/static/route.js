// The address of what is shown: `#/attention?layer=3&head=2`. It never holds a text.

const DEFAULT = "translate";
const PAUSE_MS = 200; // browsers refuse more than 20 changes of the address a second
const listeners = [];
let waiting = null; // {address, instead}: what the address becomes, and what it is until then
let timer = 0;
let writtenAt = -Infinity;

const here = () => waiting?.address ?? location.hash;

/** @returns {{screen: string, params: Object<string, string>}} */
export function route() {
  const [path, query = ""] = here().replace(/^#\/?/, "").split("?");
  const isScreen = here().startsWith("#/") && path;
  return {
    screen: isScreen ? path : DEFAULT,
    params: isScreen ? Object.fromEntries(new URLSearchParams(query)) : {},
  };
}

/** The address of a screen, for links. */
export function addressOf(screen, params = {}) {
  const query = new URLSearchParams(params).toString();
  return `#/${screen}${query ? `?${query}` : ""}`;
}

/**
 * Change parameters of the screen that is shown; null removes one. The back button skips it. While a
 * slider moves, the screen follows at once and the address now and then.
 */
export function setParams(changes) {
  const { screen, params } = route();
  const all = Object.entries({ ...params, ...changes });
  const kept = Object.fromEntries(all.filter(([, value]) => value !== null && value !== ""));
  const address = addressOf(screen, kept);
  if (address === here()) return;
  waiting = { address, instead: location.hash };
  const wait = writtenAt + PAUSE_MS - performance.now();
  if (wait <= 0) write();
  else if (!timer) timer = setTimeout(write, wait);
  tell();
}

/** Put what waits into the address, unless another one has been opened. */
function write() {
  clearTimeout(timer);
  timer = 0;
  if (waiting?.instead === location.hash) {
    history.replaceState(null, "", waiting.address);
    writtenAt = performance.now();
  }
  waiting = null;
}

addEventListener("pagehide", write);

/** Call `listener` now and whenever the screen or its parameters change. */
export function onRoute(listener) {
  listeners.push(listener);
  listener(route());
}

function tell() {
  for (const listener of listeners) listener(route());
}

addEventListener("hashchange", () => {
  waiting = null;
  // Links inside the page, such as the one that skips to the text, are not addresses of screens.
  if (!location.hash || location.hash.startsWith("#/")) tell();
});
