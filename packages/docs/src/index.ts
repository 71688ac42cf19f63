/**
 * The folder of the built site, whose texts hold `BASE` in place of the path that the site is
 * served at. A clone has it after `npm run docs:site`.
 */
export const site = new URL('./site/', import.meta.url);

export const BASE = '/__docs__';

/** An origin makes the router of the site treat a link as one that leaves it. */
export const OUTSIDE = 'https://docs.invalid';

const PLACEHOLDER = new RegExp(`(?:${OUTSIDE})?${BASE}`, 'g');

/** Returns a text of the site for a server that has it at `path`, such as `/docs`. */
export function placeAt(text: string, path: string): string {
  return text.replaceAll(PLACEHOLDER, path);
}

/** True for files of the site that hold text. */
export function isText(name: string): boolean {
  return /\.(html|js|css|json|md|svg|txt)$/.test(name);
}
