// Markdown of a model's card as elements: headings, paragraphs, lists, tables, code, bold, links.
// What it does not know stays text.

import { make } from "./element.js";

/** @returns {Element[]} the blocks of a text */
export function markdown(text) {
  const blocks = [];
  const lines = body(text).split("\n");
  while (lines.length) {
    const line = lines.shift();
    const heading = /^(#{1,4}) (.*)/.exec(line);
    if (line.startsWith("```")) blocks.push(code(lines));
    else if (heading)
      blocks.push(make("h3", { class: `depth-${heading[1].length}` }, ...inline(heading[2])));
    else if (/^[-*] /.test(line)) blocks.push(list(line, lines));
    else if (line.startsWith("|")) blocks.push(table(line, lines));
    else if (line.trim()) blocks.push(paragraph(line, lines));
  }
  return blocks;
}

/** Without the front matter and comments. */
const body = (text) => text.replace(/^---\n[\s\S]*?\n---\n/, "").replace(/<!--[\s\S]*?-->/g, "");

function code(lines) {
  const end = lines.findIndex((line) => line.startsWith("```"));
  const inside = lines.splice(0, end < 0 ? lines.length : end + 1);
  return make("pre", { tabindex: "0" }, inside.slice(0, end < 0 ? undefined : -1).join("\n"));
}

function take(lines, test) {
  const end = lines.findIndex((line) => !test(line));
  return lines.splice(0, end < 0 ? lines.length : end);
}

function list(first, lines) {
  const items = [first, ...take(lines, (line) => /^[-*] /.test(line))];
  return make("ul", {}, ...items.map((item) => make("li", {}, ...inline(item.slice(2)))));
}

function table(first, lines) {
  const rows = [first, ...take(lines, (line) => line.startsWith("|"))].map((row) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  const isRule = (row) => row.every((cell) => /^:?-+:?$/.test(cell));
  const tr = (row, name) => make("tr", {}, ...row.map((cell) => make(name, {}, ...inline(cell))));
  return make(
    "table",
    {},
    ...rows.filter((row) => !isRule(row)).map((row, i) => tr(row, i ? "td" : "th")),
  );
}

function paragraph(first, lines) {
  const more = take(lines, (line) => line.trim() && !/^(#|```|\||[-*] )/.test(line));
  return make("p", {}, ...inline([first, ...more].join(" ")));
}

function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\(https?:[^)\s]+\))/).map((part) => {
    if (/^`.+`$/.test(part)) return make("code", {}, part.slice(1, -1));
    if (/^\*\*.+\*\*$/.test(part)) return make("strong", {}, part.slice(2, -2));
    const link = /^\[(.+)\]\((.+)\)$/.exec(part);
    if (!link) return part;
    return make("a", { href: link[2], rel: "noreferrer noopener", target: "_blank" }, link[1]);
  });
}
