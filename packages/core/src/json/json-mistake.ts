/** Quotes at most one character, because the text may contain secrets. */
export function jsonMistake(text: string, error: Error): string {
  const [, expected, position] = /^(.+?)(?: in JSON)? at position (\d+)/.exec(error.message) ?? [];
  if (expected && position)
    return `${placeOf(text, Number(position))}: ${expected.charAt(0).toLowerCase()}${expected.slice(1)}`;
  if (!error.message.startsWith('Unexpected token')) return 'it ends too early';
  const at = firstBad(text);
  return `${placeOf(text, at)}: unexpected ${JSON.stringify(text[at])}`;
}

/** V8's message, whose excerpt of the input may contain secrets. */
export function withoutExcerpt(error: unknown): string {
  return String((error as Error).message).replace(/, (\.\.\.)?"[\s\S]*$/, '');
}

/** The last character of the shortest prefix that fails with this error. */
function firstBad(text: string): number {
  let good = 0;
  let bad = text.length;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (hasWrongToken(text.slice(0, middle))) bad = middle;
    else good = middle;
  }
  return bad - 1;
}

function hasWrongToken(beginning: string): boolean {
  try {
    JSON.parse(beginning);
    return false;
  } catch (error) {
    return (error as Error).message.startsWith('Unexpected token');
  }
}

function placeOf(text: string, position: number): string {
  const lines = text.slice(0, position).split('\n');
  return `line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}
