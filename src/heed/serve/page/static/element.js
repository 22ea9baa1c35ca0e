// Elements of the page. Text becomes text nodes: nothing a person or the server wrote is markup.

export const byId = (id) => document.getElementById(id);

/**
 * Make an element.
 * @param {string} name of the tag
 * @param {object} properties attributes; `class`; functions become event listeners (`onclick`);
 *   `dataset`; true sets an empty attribute; null, undefined and false set none
 * @param {...(Node|string|null)} children
 */
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (key === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Make these the children of an element. Those that are there already stay in the document. */
export function refill(parent, nodes) {
  const kept = new Set(nodes);
  for (const child of [...parent.childNodes]) if (!kept.has(child)) child.remove();
  let at = parent.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
}

/** A function that does `work` in the next frame, once, however often it is called before. */
export function onceAFrame(work) {
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      work();
    });
  };
}

const SVG = "http://www.w3.org/2000/svg";
const MATH = "http://www.w3.org/1998/Math/MathML";

/** An element of a drawing, with properties as `make` takes them. */
export function draw(name, properties = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** An element of a formula. */
export function math(name, ...children) {
  const element = document.createElementNS(MATH, name);
  element.append(...children);
  return element;
}

const ICONS = byId("icons") ? "#icon-" : `${new URL("icons.svg", import.meta.url).pathname}#`;

/** An icon of icons.svg, which a page that is one file holds itself. It says nothing to screen readers: its button has the name. */
export function icon(name) {
  return draw("svg", { "aria-hidden": "true" }, draw("use", { href: `${ICONS}${name}` }));
}

/** Read a text to those who cannot see it, once nothing has changed for a moment. */
export function announce(text, delay = 0) {
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => {
    byId("status").textContent = text;
  }, delay);
}

/** `button` shows an icon and, if given, words. */
export function fill(button, name, words = "") {
  button.replaceChildren(icon(name), ...(words ? [make("span", {}, words)] : []));
}

/** Copy a text; the button shows a check mark for a moment. */
export async function copy(text, button, name = "copy", words = "") {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyBySelection(text); // without https the clipboard's own interface is missing
  }
  fill(button, "check", words && "Copied");
  announce("Copied.");
  setTimeout(() => fill(button, name, words), 1600);
}

function copyBySelection(text) {
  const area = make("textarea", { class: "unseen", "aria-hidden": "true" });
  area.value = text;
  const focused = document.activeElement;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  focused?.focus();
}

/** A bar as long as `share`, 0 to 1. Its number stands beside it. */
export function bar(share) {
  const element = make("span", { class: "meter", "aria-hidden": "true" });
  element.style.setProperty("--share", Math.max(0, Math.min(1, share)));
  return element;
}

/** A dialog with a title, a button that closes it, and what is in it. */
export function openPanel(dialog, title, ...content) {
  const close = make("button", { type: "button", class: "icon", "aria-label": "Close" });
  close.addEventListener("click", () => dialog.close());
  fill(close, "close");
  const heading = make("h2", { id: `${dialog.id}-title` }, title);
  dialog.replaceChildren(
    make("header", {}, heading, close),
    make("div", { class: "inside" }, ...content),
  );
  dialog.onclick = (event) => {
    if (event.target === dialog) dialog.close();
  };
  if (!dialog.open) dialog.showModal();
}
