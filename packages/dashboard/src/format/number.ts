const plain = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** Other text is returned unchanged, so that the server reports what is wrong. */
export function typedNumber(typed: string): number {
  return typed.trim() === '' || Number.isNaN(Number(typed))
    ? (typed as unknown as number)
    : Number(typed);
}

/** Such as `12,480`. */
export function count(value: number): string {
  return plain.format(value);
}

/** For narrow places, such as `12.5K`. */
export function compact(value: number): string {
  return short.format(value);
}

/** From a share of 0 to 1, such as `99.2%`. Only exactly 1 is `100%`. */
export function percent(share: number): string {
  if (share === 1) return '100%';
  const rounded = Math.min(share * 100, share > 0.999 ? 99.9 : 100);
  return `${rounded.toFixed(rounded >= 99 || rounded < 10 ? 1 : 0)}%`;
}

/** Such as `1.2 kB`. A kB is 1,000 bytes, as for the limits in the settings. */
export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  return value < 1_000_000
    ? `${(value / 1000).toFixed(1)} kB`
    : `${(value / 1_000_000).toFixed(1)} MB`;
}

/** Such as `0.4/s` or `1,250/s`, or per minute if below 0.1/s: `2.4/min`. */
export function rate(perSecond: number): string {
  if (perSecond === 0) return '0/s';
  if (perSecond < 0.1) return `${(perSecond * 60).toFixed(1)}/min`;
  return `${perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond))}/s`;
}
