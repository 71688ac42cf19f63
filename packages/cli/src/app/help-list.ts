import { stripVTControlCharacters } from 'node:util';
import { wrap } from '../output/text-table.js';

/** What a text beside its name needs; with less it stands below. */
const TEXT_MIN = 28;
const GAP = '  ';

/**
 * Names and what they mean, side by side as long as there is room. Names may have colours.
 *
 * @param width what the list may take
 */
export function helpList(rows: readonly (readonly (string | undefined)[])[], width: number): string {
  const lengths = rows.map(([name = '']) => stripVTControlCharacters(name).length);
  const widest = Math.max(0, ...lengths);
  const room = width - widest - GAP.length;
  return rows
    .flatMap(([name = '', text = ''], i) => {
      if (room < TEXT_MIN) return [name, ...wrap(text, width - 2 * GAP.length).map((line) => GAP.repeat(2) + line)];
      const [first = '', ...rest] = wrap(text, room);
      const below = rest.map((line) => ' '.repeat(widest) + GAP + line);
      return [first === '' ? name : name + ' '.repeat(widest - lengths[i]!) + GAP + first, ...below];
    })
    .join('\n');
}
