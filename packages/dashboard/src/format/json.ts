/** JSON text with two spaces a level; text that is not JSON stays as it is. Numbers keep their digits: the text is not made anew from values. */
export function pretty(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  return tokens
    .map((token, index) => {
      const next = tokens[index + 1];
      if (token === '{' || token === '[') {
        if (next === '}' || next === ']') return token;
        depth++;
        return token + line();
      }
      if (token === '}' || token === ']') {
        const before = tokens[index - 1];
        if (before === '{' || before === '[') return token;
        depth--;
        return line() + token;
      }
      if (token === ',') return token + line();
      return token === ':' ? ': ' : token;
    })
    .join('');
}

/** Headers as lines: `content-type: application/json`. */
export function headerLines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** A JSON object, or why the text is none, as the end of a sentence. Empty text is an empty object. */
export function objectOf(text: string): { readonly value: JsonObject; readonly problem?: undefined } | { readonly problem: string } {
  if (text.trim() === '') return { value: {} };
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value: value as JsonObject };
    return { problem: 'must be a JSON object: {…}' };
  } catch (error) {
    return { problem: `is not JSON: ${(error as Error).message}` };
  }
}
