/** Deterministic pseudo-random numbers: Mulberry32. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** An integer, both bounds included. */
  between(low: number, high: number): number;
  pick<T>(list: readonly T[]): T;
  /** A shuffled copy. */
  shuffled<T>(list: readonly T[]): T[];
}

/** @param seed any integer; only the lower 32 bits count */
export function random(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (low: number, high: number) => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    between,
    pick: (list) => list[between(0, list.length - 1)]!,
    shuffled: (list) => {
      const copy = [...list];
      for (let k = copy.length - 1; k > 0; k--) {
        const other = between(0, k);
        [copy[k], copy[other]] = [copy[other]!, copy[k]!];
      }
      return copy;
    },
  };
}
