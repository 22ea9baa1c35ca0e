// The form that asks for the key of a server with keys.

import { setKey } from "./api.js";
import { make } from "./element.js";

/** @param {() => void} onKey called when a key has been given */
export function keyForm(onKey) {
  const input = make("input", {
    type: "password",
    "aria-label": "Key",
    placeholder: "Key",
    autocomplete: "off",
  });
  const form = make("form", {}, input, make("button", { class: "button" }, "Use it"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setKey(input.value.trim());
    onKey();
  });
  return form;
}
