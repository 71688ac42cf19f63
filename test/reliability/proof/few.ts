const FEW = 5;

/** The count and the first elements: `7: 3, 4, 5, 6, 7, …`; `0` for an empty list. */
export function few(all: readonly (string | number)[]): string {
  if (all.length === 0) return '0';
  return `${all.length}: ${all.slice(0, FEW).join(', ')}${all.length > FEW ? ', …' : ''}`;
}
