// In a page that is one file: answers requests with what the file holds. `export.py` puts this in
// front of the page, which is otherwise the same as that of a server.
{
  const held = JSON.parse(document.getElementById("held").textContent);
  const nSentences = held.answers.trace.sentences?.length ?? 1;
  const SENTENCE =
    `This file holds ${nSentences > 1 ? `${nSentences} sentences` : "one sentence"} and some of ` +
    `${nSentences > 1 ? "their" : "its"} numbers; heed inspect has all.`;
  sessionStorage.setItem("heed.looked", held.text);
  sessionStorage.setItem("heed.forced", held.forced);

  const EDITS =
    "This file holds what follows if one of the parts that matter most is switched off; " +
    "heed inspect computes all changes.";

  /** An object as text that does not depend on the order of its fields. */
  const sorted = (object) => JSON.stringify(Object.entries(object).sort());

  const switched = new Map(held.switched.map(({ change, answer }) => [sorted(change), answer]));
  held.answers.trace.switched = held.switched.map(({ change }) => change);
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
    const nShares = asked.has("batch") ? nSentences : 1;
    const parts = names.map((name) => {
      const [first, all] = held.places[name];
      const count = all / nShares;
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
  async function inBlocks(path) {
    const [, id, , number] = path.split("/");
    const { answer: record } = held.searches.find(({ answer: one }) => one.id === id);
    const { length } = record.steps[number].rows;
    const size = record.vocab_size;
    const pairs = await pairsOf(path, length, size);
    const all = new Float32Array(pairs.length);
    for (let place = 0; place < 2 * length; place += 1) {
      const to = (place % 2) * length + Math.floor(place / 2);
      all.set(pairs.subarray(place * size, (place + 1) * size), to * size);
    }
    return new Response(all);
  }

  /** The distributions of a step, row by row: by the model, then what constraints leave. */
  async function pairsOf(path, nRows, size) {
    const { bits, fromHalf } = await numbers();
    const [start, count] = held.places[path];
    const packed = bits.subarray(start, start + count);
    const n = held.likeliest;
    if (!n) return fromHalf(packed);
    const pairs = new Float32Array(2 * nRows * size);
    for (let row = 0; row < nRows; row += 1) {
      const own = packed.subarray(row * (4 * n + 2), (row + 1) * (4 * n + 2));
      const found = fromHalf(own.subarray(2 * n));
      for (const which of [0, 1]) {
        const to = pairs.subarray((2 * row + which) * size, (2 * row + which + 1) * size);
        to.fill(found[2 * n + which]);
        for (let at = 0; at < n; at += 1) to[own[at] + own[n + at] * 65536] = found[which * n + at];
      }
    }
    return pairs;
  }

  /** Several texts as one, a text in each line. */
  const lines = (texts) => [texts].flat().join("\n");

  const json = (value) => Response.json(value);
  const refused = (sentence = SENTENCE) => Response.json({ error: { sentence } }, { status: 404 });

  /** What follows from changes, if it was computed for the file. */
  function edited(path, changes) {
    const found = changes.length === 1 && switched.get(sorted(changes[0]));
    return found ? json({ ...held.answers[path], ...found }) : refused(EDITS);
  }

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
      const { text, prefix_ids: prefix, use_memory, options: wanted } = JSON.parse(options.body);
      const found = held.searches.find((one) => sorted(one.options) === sorted(wanted));
      const isHeld = found && text === held.text && !prefix && use_memory !== false;
      return isHeld ? json(found.answer) : refused();
    }
    if (path.endsWith("/edit")) {
      const { changes } = JSON.parse(options.body);
      if (changes.length) return edited(path, changes);
    }
    if (held.places[path]) return inBlocks(path);
    const [, id, name, weight] = path.split("/");
    if (path.startsWith("trace/") && id === held.answers.trace.id) {
      if (!name) {
        const names = held.answers.trace.nodes.map((node) => node.name);
        const ending = asked.get("ending");
        return tensors(
          names.filter((each) => each.endsWith(ending)),
          asked,
        );
      }
      if (name === "weights") {
        const row = asked.has("row") ? `?row=${asked.get("row")}` : "";
        const of = `weights/${decodeURIComponent(weight)}${row}`;
        return held.places[of] ? tensors([of], asked) : refused();
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
    if (found?.error) return refused(found.error.sentence);
    return found === undefined ? refused() : json(found);
  }

  window.fetch = answer;
}
