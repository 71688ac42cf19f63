const FEW = 5;

/** How many there are, and which the first of them are: `7: 3, 4, 5, 6, 7, …`; `0` for none. */
export function few(all: readonly (string | number)[]): string {
  if (all.length === 0) return '0';
  return `${all.length}: ${all.slice(0, FEW).join(', ')}${all.length > FEW ? ', …' : ''}`;
}
