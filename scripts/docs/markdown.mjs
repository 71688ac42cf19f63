// @ts-check

/** The line under the title of a page that is made. */
export const MADE = '<!-- Made by scripts/docs.mjs from the tables in the code. Change those, then run `node scripts/docs.mjs`. -->';

/**
 * @param {readonly string[]} heads
 * @param {readonly (readonly string[])[]} rows
 */
export function table(heads, rows) {
  const line = (/** @type {readonly string[]} */ cells) =>
    `| ${cells.map((cell) => escaped(cell).replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  return [line(heads), `|${'---|'.repeat(heads.length)}`, ...rows.map(line)].join('\n');
}

/**
 * A text in which nothing outside of code is taken for HTML: `<host>:<port>` in a sentence.
 * @param {string} text
 */
export function escaped(text) {
  return text
    .split(/(`[^`]*`)/)
    .map((part, i) => (i % 2 === 0 ? part.replaceAll('<', '&lt;') : part))
    .join('');
}

/** @param {string} text */
export function code(text) {
  return `\`${text}\``;
}
