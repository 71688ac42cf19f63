import { isRawNumber, parseExactly } from './exact-json.js';

/** Two spaces, keeping the digits of numbers. Other text is returned unchanged. */
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

/** One per line, such as `content-type: application/json`. */
export function headerLines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** The problem is worded as the end of a sentence. */
type Parsed<Value> =
  { readonly value: Value; readonly problem?: undefined } | { readonly problem: string };

/** Keeps the digits of numbers. An empty string yields null. */
export function valueOf(text: string): Parsed<unknown> {
  if (text.trim() === '') return { value: null };
  try {
    return { value: parseExactly(text) };
  } catch (error) {
    return { problem: `is not JSON: ${(error as Error).message}` };
  }
}

/** An empty string yields `{}`. */
export function objectOf(text: string): Parsed<JsonObject> {
  const parsed = valueOf(text);
  if (parsed.problem !== undefined) return parsed;
  const value = parsed.value ?? {};
  return typeof value === 'object' && !Array.isArray(value) && !isRawNumber(value)
    ? { value: value as JsonObject }
    : { problem: 'must be a JSON object: {…}' };
}
