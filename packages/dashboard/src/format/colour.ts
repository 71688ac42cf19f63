type Rgb = readonly [red: number, green: number, blue: number];

/** Six hexadecimal digits, with or without `#`. Undefined for other text. */
export function colourOf(text: string | null): Rgb | undefined {
  if (!/^#?[0-9a-f]{6}$/i.test(text ?? '')) return undefined;
  const number = Number.parseInt(text!.replace('#', ''), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

/** Such as `#2553cf`. */
export function hexOf(colour: Rgb): string {
  return `#${colour.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`;
}

/** A share of 0 returns the first colour, 1 the second. */
export function mixed(first: Rgb, second: Rgb, share: number): Rgb {
  const [red, green, blue] = first.map((part, k) => part + (second[k]! - part) * share);
  return [red!, green!, blue!];
}

/** From 0 (black) to 1 (white): https://www.w3.org/TR/WCAG22/#dfn-relative-luminance */
export function luminanceOf(colour: Rgb): number {
  const [red, green, blue] = colour.map((part) => {
    const it = part / 255;
    return it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

/** From 1 to 21: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio */
export function contrastOf(one: Rgb, other: Rgb): number {
  const [low, high] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => a - b);
  return (high! + 0.05) / (low! + 0.05);
}

/**
 * Mixes in just enough of `towards` for text in this colour to be readable on `ground`, with a
 * margin above the contrast required by WCAG AA.
 */
export function readable(colour: Rgb, towards: Rgb, ground: Rgb): Rgb {
  const shares = Array.from({ length: 11 }, (_, k) => k / 10);
  return (
    shares
      .map((share) => mixed(colour, towards, share))
      .find((it) => contrastOf(it, ground) >= 4.6) ?? towards
  );
}
