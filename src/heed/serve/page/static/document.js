// A file, dropped or chosen: sent, translated, offered for download.

import { upload } from "./api.js";
import { announce, byId, fill, icon, make } from "./element.js";
import { AUTO, nameOf, session } from "./session.js";

const box = byId("document");
const veil = byId("drop");
const KILOBYTE = 1000;

let current = new AbortController();
let address = "";

/** Whether the translator is on the screen; elsewhere a file has no languages. */
const isShown = () => !byId("translator").hidden;

export function showDocument() {
  const chooser = byId("file");
  fill(byId("choose-file"), "file", "Translate a file");
  byId("choose-file").addEventListener("click", () => chooser.click());
  chooser.addEventListener("change", () => {
    if (chooser.files.length) send(chooser.files[0]);
    chooser.value = "";
  });
  const hasFile = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault(); // else the browser would open the file
    if (isShown()) veil.hidden = false;
    else event.dataTransfer.dropEffect = "none";
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) veil.hidden = true;
  });
  addEventListener("drop", (event) => {
    veil.hidden = true;
    if (!hasFile(event)) return;
    event.preventDefault();
    if (isShown()) send(event.dataTransfer.files[0]);
  });
}

async function send(file) {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  const progress = make("progress", { max: "1", value: "0", "aria-label": "Sent" });
  const state = make("span", { class: "state" }, "Sending");
  draw(
    file,
    state,
    progress,
    closeButton("Cancel", () => current.abort()),
  );
  const form = new FormData();
  form.append("file", file);
  form.append("source", session.from);
  form.append("target", session.to);
  const onProgress = (share) => {
    progress.value = share;
    if (share < 1) return;
    progress.removeAttribute("value"); // from here on the server works, and does not say how far
    state.textContent = "Translating";
  };
  try {
    const { blob, name } = await upload("files", form, { onProgress, signal });
    if (signal === current.signal) offer(file, blob, name || nameFor(file.name));
  } catch (error) {
    if (signal !== current.signal) return; // another file has taken its place
    if (error.name === "AbortError") hide();
    else failed(file, error);
  }
}

/** The translated file: `report.docx` becomes `report.de.docx`. */
function nameFor(name) {
  const at = name.lastIndexOf(".");
  return at > 0 ? `${name.slice(0, at)}.${session.to}${name.slice(at)}` : `${name}.${session.to}`;
}

function offer(file, blob, name) {
  URL.revokeObjectURL(address);
  address = URL.createObjectURL(blob);
  const link = make("a", { class: "button", href: address, download: name });
  fill(link, "download", `Download ${name}`);
  draw(file, make("span", { class: "state" }, "Translated"), link, closeButton("Close", hide));
  link.focus();
  announce("The file is translated.");
}

function failed(file, error) {
  if (error.status === 401) session.set({ error }); // the banner asks for the key
  const again = make(
    "button",
    { type: "button", class: "button", onclick: () => send(file) },
    "Try again",
  );
  const state = make("span", { class: "state error", role: "alert" }, error.message);
  draw(file, state, again, closeButton("Close", hide));
}

function draw(file, ...rest) {
  const from = session.from === AUTO ? "detected language" : nameOf(session.from);
  const about = `${size(file.size)} · ${from} to ${nameOf(session.to)}`;
  const name = make("span", { class: "name", dir: "auto" }, file.name);
  box.replaceChildren(
    icon("file"),
    make("p", {}, name, make("span", { class: "about" }, about)),
    ...rest,
  );
  box.hidden = false;
}

function closeButton(name, onclick) {
  const button = make("button", {
    type: "button",
    class: "icon",
    "aria-label": name,
    title: name,
    onclick,
  });
  fill(button, "close");
  return button;
}

function hide() {
  box.hidden = true;
  URL.revokeObjectURL(address);
  byId("choose-file").focus();
}

/** Bytes as a person reads them. */
export function size(bytes) {
  const units = ["bytes", "kB", "MB", "GB"];
  const power =
    bytes < KILOBYTE ? 0 : Math.min(3, Math.floor(Math.log(bytes) / Math.log(KILOBYTE)));
  const number = bytes / KILOBYTE ** power;
  return `${power && number < 10 ? number.toFixed(1) : Math.round(number)} ${units[power]}`;
}
