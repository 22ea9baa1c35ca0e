// The screens besides the translator, each a module that is loaded when it is first opened.

import { KEY_WANTED } from "./api.js";
import { byId, make } from "./element.js";
import { keyForm } from "./key.js";
import { addressOf, onRoute, setParams } from "./route.js";
import { ofTab } from "./storage.js";

/** Name in the address → title. The module and its styles have the same name. */
const SCREENS = {
  attention: "Attention",
  steps: "Steps",
  decoding: "Decoding",
  causes: "Causes",
  training: "Training",
  positions: "Positions",
};
const TRANSLATE = "Translate";

const { inside, models, runs, only } = document.documentElement.dataset;
const opened = {}; // name → {module, root}
let current = null;
let wasGone = false; // the server did not answer when a screen was opened
const AGAIN_MS = 5000;

export function showScreens() {
  const skip = document.querySelector(".skip");
  skip.addEventListener("click", (event) => {
    event.preventDefault(); // its address would take the place of the screen's
    byId(current === "translate" ? "source" : "inside").focus();
  });
  // What it shows is sent by the screen of translations.
  byId("show-request").hidden = models === "off";
  const nav = document.querySelector(".screens");
  const links = new Map([["translate", nav.querySelector("a")]]);
  for (const [name, title] of Object.entries(SCREENS)) {
    if (isThere(name)) links.set(name, make("a", { href: addressOf(name) }, title));
  }
  if (models === "off" || only) links.delete("translate");
  nav.replaceChildren(...links.values());
  addEventListener(KEY_WANTED, askForKey);
  onRoute(({ screen, params }) => {
    if (params.token) return takeToken(params.token);
    const name = links.has(screen) ? screen : links.keys().next().value;
    for (const [each, link] of links) {
      if (each === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    open(name, params);
  });
}

/** Keep the token that an address brought in this tab, and in no history. Training takes it. */
function takeToken(token) {
  ofTab.set("heed.run-token", token);
  setParams({ token: null }); // comes back without it
}

/** Whether there is a screen: one shows runs, the others look into models; a file has some only. */
function isThere(name) {
  if (only) return only.split(" ").includes(name);
  return name === "training" ? runs === "on" : inside === "on" && models === "on";
}

async function open(name, params) {
  if (current !== name) opened[current]?.module?.leave?.();
  current = name;
  const isTranslator = name === "translate";
  byId("translator").hidden = !isTranslator;
  byId("inside").hidden = isTranslator;
  document.title = `${SCREENS[name] ?? TRANSLATE} · heed`;
  apply(name);
  if (isTranslator) return;
  if (!opened[name]) {
    byId("inside").replaceChildren();
    const root = make("section", { class: `screen ${name}`, "aria-label": SCREENS[name] });
    opened[name] = { root };
    try {
      await Promise.all([load("inside"), load(name)]);
      opened[name].module = await import(`./${name}.js`);
    } catch {
      fail(name);
      return;
    }
  }
  const { module, root } = opened[name];
  if (current !== name || !module) return; // another one was opened meanwhile
  apply(name);
  if (root.parentElement !== byId("inside")) byId("inside").replaceChildren(root);
  module.show(root, params);
}

const reload = () => location.reload();

/** Ask for a key above the screen; the translator asks in a banner of its own. */
function askForKey() {
  const inside = byId("inside");
  if (current === "translate" || inside.querySelector(".banner")) return;
  const sentence = "This server answers only requests with a key.";
  inside.prepend(
    make("div", { class: "banner", role: "alert" }, make("p", {}, sentence), keyForm(reload)),
  );
}

/** Say that the files of a screen did not come. A module that failed once is not asked for again. */
function fail(name) {
  delete opened[name];
  if (current !== name) return;
  const sentence = "The files of this screen did not come. Check that the server runs.";
  const banner = make(
    "div",
    { class: "banner", role: "alert" },
    make("p", {}, sentence),
    make("button", { type: "button", class: "button", onclick: reload }, "Load again"),
  );
  byId("inside").replaceChildren(banner);
  reloadWhenBack(banner);
}

/** Reload the page as soon as a server answers again that did not, while the banner is shown. */
async function reloadWhenBack(banner) {
  while (banner.isConnected) {
    if (await isReady()) {
      // If it always answered, the files are missing for another reason. A file that was dropped
      // on the page, and its translation, would be lost.
      if (wasGone && byId("document").hidden) reload();
      return;
    }
    wasGone = true;
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

const isReady = () =>
  fetch("ready").then(
    ({ ok }) => ok,
    () => false,
  );

/** Only the styles of the screen that is shown are in force, so that names may repeat. */
function apply(name) {
  for (const { dataset, sheet } of document.head.querySelectorAll("[data-name]")) {
    if (sheet && SCREENS[dataset.name]) sheet.disabled = dataset.name !== name;
  }
}

const styles = {};

/** The styles of this name, once. */
function load(name) {
  if (document.querySelector(`style[data-name="${name}"]`)) return null; // in a page that is a file
  styles[name] ??= new Promise((resolve, reject) => {
    const href = new URL(`${name}.css`, import.meta.url).href;
    const events = { onload: resolve, onerror: reject };
    document.head.append(make("link", { rel: "stylesheet", href, dataset: { name }, ...events }));
  });
  return styles[name];
}
