// The endpoints of openapi.json, each with a form that asks it. No text is ever taken for markup.
"use strict";

const byId = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** The fields of an operation: where they go, what they are, and an example. */
function fieldsOf(operation) {
  const fields = (operation.parameters || []).map((each) => ({
    name: each.name,
    place: each.in,
    schema: each.schema,
    about: each.description || "",
    isNeeded: each.required,
    example: each.example,
  }));
  const [mediaType, body] = Object.entries(operation.requestBody?.content || {})[0] || [];
  const examples = body?.example || {};
  for (const [name, schema] of Object.entries(body?.schema?.properties || {})) {
    fields.push({
      name,
      place: "body",
      schema,
      about: schema.description || "",
      isNeeded: (body.schema.required || []).includes(name),
      example: examples[name],
    });
  }
  if (body && !body.schema.properties) {
    const about = "The body.";
    fields.push({ name: "", place: "whole", schema: body.schema, about, isNeeded: true, example: examples });
  }
  return { fields, mediaType };
}

/** Words, with code where backticks are around it. */
function wordsOf(about) {
  return about.split("`").map((part, index) => (index % 2 ? make("code", {}, part) : part));
}

function spelled(value) {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The control in which a field is filled. */
function controlOf(field, id) {
  const { schema } = field;
  if (schema.contentMediaType) return make("input", { id, type: "file" });
  if (schema.enum || schema.type === "boolean") {
    const choices = schema.enum || [true, false];
    const select = make("select", { id }, make("option", { value: "" }, "–"));
    for (const choice of choices) {
      const isChosen = field.example === choice;
      select.append(make("option", { value: String(choice), selected: isChosen }, String(choice)));
    }
    return select;
  }
  const isLong = field.place === "body" && field.isNeeded && !schema.maxLength;
  const control = make(isLong || field.place === "whole" ? "textarea" : "input", { id, rows: 2 });
  control.value = spelled(field.example);
  return control;
}

/** What stands in a control, as JSON where the schema is not plain text. */
function valueOf(field, control) {
  const text = control.value;
  if (text === "") return undefined;
  const { schema } = field;
  const isText = schema.type === "string" || (schema.oneOf && !/^\s*\[/.test(text));
  if (isText) return text;
  return JSON.parse(text);
}

/** The request of a filled form: address and options of `fetch`. */
function requestOf(method, path, filled, mediaType, key) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const query = new URLSearchParams();
  const body = {};
  let whole;
  let address = path.slice(1);
  for (const [field, control] of filled) {
    if (control.type === "file") {
      if (control.files.length) body[field.name] = control.files[0];
      continue;
    }
    const value = valueOf(field, control);
    if (value === undefined) continue;
    if (field.place === "path") address = address.replace(`{${field.name}}`, encodeURIComponent(value));
    else if (field.place === "query") query.append(field.name, value);
    else if (field.place === "whole") whole = value;
    else body[field.name] = value;
  }
  if (query.size) address += `?${query}`;
  const options = { method, headers };
  if (mediaType === "multipart/form-data") {
    options.body = new FormData();
    for (const [name, value] of Object.entries(body)) options.body.append(name, value);
  } else if (mediaType) {
    headers["Content-Type"] = mediaType;
    options.body = JSON.stringify(whole ?? body);
  }
  return { address, options };
}

/** The same request for a terminal. The key is not shown. */
function commandOf(address, options) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ["curl", "-s", "-X", options.method, quoted(new URL(address, document.baseURI).href)];
  if (options.headers["Content-Type"]) {
    parts.push("-H", quoted(`Content-Type: ${options.headers["Content-Type"]}`));
  }
  if (typeof options.body === "string") parts.push("-d", quoted(options.body));
  if (options.body instanceof FormData) {
    for (const [name, value] of options.body) {
      parts.push("-F", quoted(`${name}=${value instanceof File ? `@${value.name}` : value}`));
    }
  }
  return parts.join(" ");
}

async function show(answer, output) {
  const type = answer.headers.get("content-type") || "";
  if (type.startsWith("application/json")) {
    const text = await answer.text();
    output.textContent = JSON.stringify(JSON.parse(text || "null"), null, 2);
  } else if (type.startsWith("text/")) {
    output.textContent = await answer.text();
  } else {
    const content = await answer.blob();
    output.textContent = content.size ? `${content.size} bytes of ${type}` : "(no content)";
  }
}

/** A form that asks an endpoint and shows its answer. */
function formOf(method, path, operation, id) {
  const { fields, mediaType } = fieldsOf(operation);
  const filled = fields.map((field, index) => [field, controlOf(field, `${id}-${index}`)]);
  const form = make("form", { class: "body" });
  for (const [field, control] of filled) {
    const label = make("label", { for: control.id }, field.name || "body");
    if (field.isNeeded) label.classList.add("needed");
    form.append(
      make("div", { class: "field" }, label, control, make("p", { class: "about" }, ...wordsOf(field.about))),
    );
  }
  const button = make("button", {}, "Send");
  const status = make("span", { class: "status", role: "status" });
  const command = make("pre", { hidden: true, tabindex: 0 });
  const output = make("pre", { hidden: true, tabindex: 0 });
  form.append(make("div", { class: "actions" }, button, status), command, output);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    status.className = "status";
    status.textContent = "…";
    const start = performance.now();
    try {
      const key = byId("key").value;
      const { address, options } = requestOf(method, path, filled, mediaType, key);
      command.textContent = commandOf(address, options);
      command.hidden = false;
      const answer = await fetch(new URL(address, document.baseURI), options);
      await show(answer, output);
      status.textContent = `${answer.status}, ${Math.round(performance.now() - start)} ms`;
      status.classList.toggle("bad", !answer.ok);
      output.hidden = false;
    } catch (error) {
      status.textContent = `Not sent: ${error.message}`;
      status.classList.add("bad");
    } finally {
      button.disabled = false;
    }
  });
  return form;
}

function sectionOf(method, path, operation, id) {
  const details = make(
    "details",
    { "data-find": `${method} ${path} ${operation.summary}`.toLowerCase() },
    make(
      "summary",
      {},
      make("span", { class: "method" }, method),
      make("span", { class: "path" }, path),
      make("span", { class: "about" }, operation.summary),
    ),
  );
  // Forms of closed sections would make the page slow; each is built when it is first opened.
  details.addEventListener("toggle", () => {
    if (details.childElementCount === 1) details.append(formOf(method, path, operation, id));
  });
  return details;
}

function fill(described) {
  byId("version").textContent = described.info.version;
  const main = byId("operations");
  main.replaceChildren();
  for (const { name } of described.tags) {
    const id = `api-${name.replace(/\W+/g, "-")}`;
    const section = make("section", { id, "aria-label": name }, make("h2", {}, name));
    for (const [path, operations] of Object.entries(described.paths)) {
      for (const [method, operation] of Object.entries(operations)) {
        if (operation.tags.includes(name)) {
          const upper = method.toUpperCase();
          section.append(sectionOf(upper, path, operation, operation.operationId));
        }
      }
    }
    main.append(section);
    byId("tags").append(make("a", { href: `#${id}` }, name));
  }
}

byId("tools").addEventListener("submit", (event) => event.preventDefault());

byId("filter").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  for (const details of document.querySelectorAll("details")) {
    details.hidden = !details.dataset.find.includes(wanted);
  }
});

fetch(new URL("openapi.json", document.baseURI))
  .then((answer) => answer.json())
  .then(fill)
  .catch((error) => {
    byId("operations").replaceChildren(make("p", {}, `openapi.json could not be read: ${error.message}`));
  });
