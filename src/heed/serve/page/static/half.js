// Numbers of 16 bits.

/** @param {Uint16Array} bits @returns {Float32Array} */
export function fromHalf(bits) {
  const floats = new Float32Array(bits.length);
  bits.forEach((half, index) => {
    const exponent = (half >> 10) & 31;
    const fraction = half & 1023;
    const size =
      exponent === 0
        ? fraction * 2 ** -24
        : exponent === 31
          ? fraction
            ? NaN
            : Infinity
          : (1 + fraction / 1024) * 2 ** (exponent - 15);
    floats[index] = half & 0x8000 ? -size : size;
  });
  return floats;
}
