// Formulas of positions as MathML.

import { make, math } from "./element.js";

const NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

const letter = (text) => math("mi", text);
const number = (text) => math("mn", String(text));
const sign = (text) => math("mo", text);
const row = (...parts) => math("mrow", ...parts);
const power = (exponent) => math("msup", number("10000"), exponent);
const call = (name, ...inside) => row(letter(name), sign("("), ...inside, sign(")"));
const over = (top, bottom) => math("mfrac", top, bottom);
const share = (...parts) => row(...parts.slice(0, -1), sign("/"), parts.at(-1));

function written(...parts) {
  const element = math("math", row(...parts));
  element.setAttribute("displaystyle", "true");
  return element;
}

/** The formula of a kind of positions; in words where it has none. */
export function formulaOf(table) {
  // Made anew each time: an element stands in one place.
  const two = () => row(number(2), letter("i"));
  const angle = () => over(letter("pos"), power(share(two(), letter("d"))));
  const cell = (dimension) => call("PE", letter("pos"), sign(","), dimension);
  const pair = (first, second) => [
    written(cell(first), sign("="), call("sin", angle())),
    written(cell(second), sign("="), call("cos", angle())),
  ];
  const kinds = {
    sinusoidal: () => pair(two(), row(two(), sign("+"), number(1))),
    sinusoidal_halves: () =>
      pair(letter("i"), row(share(letter("d"), number(2)), sign("+"), letter("i"))),
  };
  const parts = kinds[table.kind]?.() ?? [table.formula];
  return make("div", { class: "formula" }, ...parts.map((part) => make("span", {}, part)));
}

/** One number written out: PE(5, 4) = sin(5 / 10000^(4/16)) = sin(0.5) = 0.4794. */
export function termOf(table, position, dimension, value) {
  const wave = table.waves[dimension];
  const cell = call("PE", number(position), sign(","), number(dimension));
  const result = number(NUMBER.format(value));
  if (table.kind === "alibi") {
    const slope = position ? [number(NUMBER.format(-value / position))] : [];
    const head = math("msub", letter("m"), number(dimension));
    const times = (factor) => [sign("−"), factor, sign("·"), number(position), sign("=")];
    return [written(...times(head), ...slope.flatMap(times), result)];
  }
  if (!wave || (table.kind === "seed1" && position === 0))
    return [written(cell, sign("="), result)];
  const width = table.shape[1];
  const angle = (position * 2 * Math.PI) / wave.wavelength;
  const exponent = share(number(2 * wave.pair), number(width));
  const length = () =>
    table.is_normalized ? [sign("/"), sign("|"), call("PE", number(position)), sign("|")] : [];
  return [
    written(
      cell,
      sign("="),
      call(wave.function, over(number(position), power(exponent))),
      ...length(),
      sign("="),
      call(wave.function, number(NUMBER.format(angle))),
      ...length(),
      sign("="),
      result,
    ),
  ];
}
