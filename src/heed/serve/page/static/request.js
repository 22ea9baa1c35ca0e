// "Show the request": what the page sends, to be sent by a program instead.

import { byId, copy, fill, make, openPanel } from "./element.js";
import { asked, session } from "./session.js";

const dialog = byId("request");
const KINDS = { curl, Python: python, JavaScript: javascript };

export function showRequest() {
  byId("show-request").addEventListener("click", open);
}

function open() {
  const body = asked(session.text || "A text.");
  const address = new URL("api/v1/translate", location.href).href;
  const code = make("pre", { tabindex: "0", id: "code", "aria-label": "The request" });
  const copyButton = make("button", { type: "button", class: "button" });
  copyButton.addEventListener("click", () => copy(code.textContent, copyButton, "copy", "Copy"));
  fill(copyButton, "copy", "Copy");
  const choices = Object.entries(KINDS).map(([name, write], i) => {
    const show = () => (code.textContent = write(address, body));
    if (!i) show();
    const radio = make("input", { type: "radio", name: "kind", checked: !i, onchange: show });
    return make("label", {}, radio, make("span", {}, name));
  });
  const kinds = make(
    "fieldset",
    { class: "kinds" },
    make("legend", { class: "unseen" }, "Language of the program"),
    ...choices,
  );
  openPanel(dialog, "The request", make("div", { class: "split" }, kinds, copyButton), code);
}

/** A string between single quotes of a shell, whatever it holds. */
export const shellQuoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function curl(address, body) {
  const lines = [
    "-H 'Content-Type: application/json'",
    `-d ${shellQuoted(JSON.stringify(body, null, 2))}`,
  ];
  return [`curl ${address}`, ...lines].join(" \\\n  ");
}

export function python(address, body) {
  return [
    "import json, urllib.request",
    "",
    "request = urllib.request.Request(",
    `    ${JSON.stringify(address)},`,
    `    data=json.dumps(${pythonValue(body)}).encode(),`,
    '    headers={"Content-Type": "application/json"},',
    ")",
    "with urllib.request.urlopen(request) as response:",
    '    print(json.load(response)["translations"][0]["text"])',
  ].join("\n");
}

function pythonValue(value) {
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const rows = Object.entries(value).map(
    ([name, one]) => `${JSON.stringify(name)}: ${pythonValue(one)}`,
  );
  return `{${rows.join(", ")}}`;
}

export function javascript(address, body) {
  return [
    `const response = await fetch(${JSON.stringify(address)}, {`,
    '  method: "POST",',
    '  headers: { "Content-Type": "application/json" },',
    `  body: JSON.stringify(${JSON.stringify(body)}),`,
    "});",
    "console.log((await response.json()).translations[0].text);",
  ].join("\n");
}
