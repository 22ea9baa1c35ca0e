// The address of what is shown: `#/attention?layer=3&head=2`. It never holds a text.

const DEFAULT = "translate";
const listeners = [];

/** @returns {{screen: string, params: Object<string, string>}} */
export function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const isScreen = location.hash.startsWith("#/") && path;
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

/** Change parameters of the screen that is shown; null removes one. The back button skips it. */
export function setParams(changes) {
  const { screen, params } = route();
  const all = Object.entries({ ...params, ...changes });
  const kept = Object.fromEntries(all.filter(([, value]) => value !== null && value !== ""));
  const address = addressOf(screen, kept);
  if (address === location.hash) return;
  history.replaceState(null, "", address);
  tell();
}

/** Call `listener` now and whenever the screen or its parameters change. */
export function onRoute(listener) {
  listeners.push(listener);
  listener(route());
}

function tell() {
  for (const listener of listeners) listener(route());
}

addEventListener("hashchange", () => {
  // Links inside the page, such as the one that skips to the text, are not addresses of screens.
  if (!location.hash || location.hash.startsWith("#/")) tell();
});
