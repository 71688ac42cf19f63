/** The middle one of these by a figure of theirs; of an even number the upper one of both. */
export function median<T>(all: readonly T[], by: (one: T) => number): T {
  return [...all].sort((a, b) => by(a) - by(b))[Math.floor(all.length / 2)]!;
}

export function round(value: number | null): string {
  return Math.round(value ?? 0).toLocaleString('en');
}

export function ms(value: number | null): string {
  return `${(value ?? 0).toFixed(1)} ms`;
}

export function ratio(value: number | null, reference: number | null, digits = 2): string {
  return `${((value ?? 0) / (reference || 1)).toFixed(digits)}×`;
}
