/** JSON has no NaN and no infinity: they become strings. */
export function numberText(value: number): string {
  if (!Number.isFinite(value)) return `"${value}"`;
  return Object.is(value, -0) ? '-0' : String(value);
}

/**
 * A number of 32 bits with as few digits as identify it: 0.1, not 0.10000000149011612.
 */
export function floatText(value: number): string {
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return numberText(short);
  }
  return numberText(value);
}
