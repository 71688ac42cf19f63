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

/** What a text is, or why it is not what is wanted, as the end of a sentence. */
export type Parsed<Value> = { readonly value: Value; readonly problem?: undefined } | { readonly problem: string };

/** JSON of any kind; null for an empty text. */
export function valueOf(text: string): Parsed<unknown> {
  if (text.trim() === '') return { value: null };
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { problem: `is not JSON: ${(error as Error).message}` };
  }
}

/** A JSON object; an empty one for an empty text. */
export function objectOf(text: string): Parsed<JsonObject> {
  const parsed = valueOf(text);
  if (parsed.problem !== undefined) return parsed;
  const value = parsed.value ?? {};
  return typeof value === 'object' && !Array.isArray(value) ? { value: value as JsonObject } : { problem: 'must be a JSON object: {…}' };
}
