/** The median by a figure; of an even number, the upper one. */
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

/**
 * The growth per hour of figures taken at equal intervals, by least squares; 0 for fewer than two.
 */
export function slopePerHour(figures: readonly number[], everyMs: number): number {
  const mean = (all: readonly number[]) => all.reduce((sum, one) => sum + one, 0) / all.length;
  const hours = figures.map((_, k) => (k * everyMs) / 3_600_000);
  const [middle, level] = [mean(hours), mean(figures)];
  const spread = hours.reduce((sum, at) => sum + (at - middle) ** 2, 0);
  if (spread === 0) return 0;
  return (
    hours.reduce((sum, at, k) => sum + (at - middle) * ((figures[k] ?? 0) - level), 0) / spread
  );
}
