// The error banner: the server's sentence, and what can be done about it.

import { byId, fill, icon, make } from "./element.js";
import { keyForm } from "./key.js";
import { session, start, translate } from "./session.js";

const banner = byId("banner");
let again = 0;

export function showBanner() {
  session.on(["error"], draw);
}

function draw({ error }) {
  clearTimeout(again);
  // The server says when it expects to have time; a person need not watch the clock.
  if (error?.retryAfter) again = setTimeout(retry, error.retryAfter * 1000);
  const hadFocus = banner.contains(document.activeElement);
  const wantsKey = error?.status === 401 || error?.status === 403;
  // Screen readers need not read the same words every few seconds.
  if (error && (wantsKey || !isShown(error.message))) show(error, wantsKey);
  banner.hidden = !error;
  if (!hadFocus) return;
  if (!error) byId("source").focus();
  else if (!banner.contains(document.activeElement)) banner.querySelector("input, button").focus();
}

const isShown = (sentence) => !banner.hidden && banner.querySelector("p").textContent === sentence;

function show(error, wantsKey) {
  const close = make("button", {
    type: "button",
    class: "icon",
    "aria-label": "Close",
    onclick: () => session.set({ error: null }),
  });
  fill(close, "close");
  banner.replaceChildren(
    icon("warn"),
    make("p", {}, error.message),
    wantsKey
      ? keyForm(retry)
      : make("button", { type: "button", class: "button", onclick: retry }, "Try again"),
    close,
  );
}

const retry = () => (session.languages.length ? translate() : start());
