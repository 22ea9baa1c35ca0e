// In a page that is one file: answers requests with what the file holds. `export.py` puts this in
// front of the page, which is otherwise the same as that of a server.
{
  const held = JSON.parse(document.getElementById("held").textContent);
  const SENTENCE = "This file holds one sentence and some of its numbers; heed inspect has all.";
  sessionStorage.setItem("heed.looked", held.text);
  sessionStorage.setItem("heed.forced", held.forced);

  let unpacked = null; // promise of the numbers

  function numbers() {
    unpacked ??= (async () => {
      const packed = Uint8Array.from(atob(held.numbers), (letter) => letter.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      const bits = new Uint16Array(await new Response(stream).arrayBuffer());
      const { fromHalf } = await import("heed/half.js");
      return { bits, fromHalf };
    })();
    return unpacked;
  }

  /** The tensors of these names, one behind the other; of a batch those of one sentence. */
  async function tensors(names, asked) {
    const { bits, fromHalf } = await numbers();
    const dtype = asked.get("dtype");
    const nSentences = asked.has("batch") ? held.answers.trace.sentences.length : 1;
    const parts = names.map((name) => {
      const [first, all] = held.places[name];
      const count = all / nSentences;
      const start = first + count * Number(asked.get("batch") ?? 0);
      return bits.subarray(start, start + count);
    });
    const all = new Uint16Array(parts.reduce((sum, part) => sum + part.length, 0));
    let start = 0;
    for (const part of parts) {
      all.set(part, start);
      start += part.length;
    }
    return new Response(dtype === "f16" ? all : fromHalf(all));
  }

  /** A step as the server sends it: first the distributions of all rows, then those that are left. */
  async function inBlocks(response, path) {
    const [, id, , number] = path.split("/");
    const { answer: record } = held.searches.find(({ answer: one }) => one.id === id);
    const pairs = new Float32Array(await response.arrayBuffer());
    const all = new Float32Array(pairs.length);
    const { length } = record.steps[number].rows;
    const size = record.vocab_size;
    for (let place = 0; place < 2 * length; place += 1) {
      const to = (place % 2) * length + Math.floor(place / 2);
      all.set(pairs.subarray(place * size, (place + 1) * size), to * size);
    }
    return new Response(all);
  }

  /** Several texts as one, a text in each line. */
  const lines = (texts) => [texts].flat().join("\n");

  /** An object as text that does not depend on the order of its fields. */
  const sorted = (object) => JSON.stringify(Object.entries(object).sort());

  const json = (value) => Response.json(value);
  const refused = () => Response.json({ error: { sentence: SENTENCE } }, { status: 404 });

  async function answer(address, options) {
    const [path, query] = String(address)
      .replace(/^api\/v1\//, "")
      .split("?");
    const asked = new URLSearchParams(query);
    if (path === "trace") {
      const { text, translation = "" } = JSON.parse(options.body);
      const isHeld = lines(text) === held.text && lines(translation).trim() === held.forced.trim();
      return isHeld ? json(held.answers.trace) : refused();
    }
    if (path === "search") {
      const { text, prefix_ids: prefix, options: wanted } = JSON.parse(options.body);
      const found = held.searches.find((one) => sorted(one.options) === sorted(wanted));
      return found && text === held.text && !prefix ? json(found.answer) : refused();
    }
    if (path.endsWith("/edit") && JSON.parse(options.body).changes.length) return refused();
    if (held.places[path]) return inBlocks(await tensors([path], asked), path);
    const [, id, name] = path.split("/");
    if (path.startsWith("trace/") && id === held.answers.trace.id) {
      if (!name) {
        const names = held.answers.trace.nodes.map((node) => node.name);
        const ending = asked.get("ending");
        return tensors(
          names.filter((each) => each.endsWith(ending)),
          asked,
        );
      }
      const decoded = decodeURIComponent(name);
      if (path.split("/").length === 3 && held.places[decoded]) {
        return tensors([decoded], asked);
      }
    }
    asked.delete("model"); // there is one only
    asked.sort();
    const key = `${path}${asked.size ? `?${asked}` : ""}`;
    const found = held.answers[held.same[key] ?? key];
    return found === undefined ? refused() : json(found);
  }

  window.fetch = answer;
}
