export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** For untrusted keys: ignores inherited names such as `constructor` and `__proto__`. */
export function own<Value>(
  table: Readonly<Record<string, Value>>,
  word: string,
): Value | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined;
}

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
const COLON = 0x3a;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;

/** For untrusted JSON. Recursive functions overflow the stack on deeper values. */
export const NESTING_MAX = 200;

/**
 * Raw text of valid JSON, so that numbers keep their digits. If the name is repeated, the last one
 * wins.
 */
export function rawJsonValue(text: string, name: string): string | undefined {
  let found: string | undefined;
  let at = skipSpace(text, 0) + 1;
  for (;;) {
    at = skipSpace(text, at);
    if (text.charCodeAt(at) === CLOSE_BRACE) return found;
    const keyEnd = skipString(text, at);
    const isNamed = spells(text.slice(at, keyEnd), name);
    at = skipSpace(text, keyEnd);
    if (text.charCodeAt(at) === COLON) at++;
    const start = skipSpace(text, at);
    const end = skipValue(text, start);
    if (isNamed) found = text.slice(start, end);
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === COMMA) at++;
  }
}

/** Raw text of valid JSON. */
export function rawJsonElements(text: string): string[] {
  const elements: string[] = [];
  let at = skipSpace(text, 0) + 1;
  for (;;) {
    const start = skipSpace(text, at);
    if (text.charCodeAt(start) === CLOSE_BRACKET) return elements;
    const end = skipValue(text, start);
    elements.push(text.slice(start, end));
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === COMMA) at++;
  }
}

/** Raw text, so that numbers keep their digits. The path has names and indexes. */
export function rawJsonAt(text: string, path: readonly string[]): string | undefined {
  let at: string | undefined = text.trim();
  for (const name of path) {
    if (at?.startsWith('{')) at = rawJsonValue(at, name);
    else if (at?.startsWith('[') && /^(0|[1-9]\d*)$/.test(name))
      at = rawJsonElements(at)[Number(name)];
    else return undefined;
  }
  return at;
}

function spells(quoted: string, name: string): boolean {
  if (quoted.length <= name.length + 2)
    return quoted.length === name.length + 2 && quoted.startsWith(name, 1);
  return quoted.includes('\\') && JSON.parse(quoted) === name;
}

const STRUCTURE = /["[\]{}]/g;

/** Deeper than `NESTING_MAX`, even if it is not valid JSON. */
export function isTooDeep(text: string): boolean {
  let left = NESTING_MAX;
  // Counting brackets is fast, and most text has too few to be nested that deep.
  for (const bracket of ['{', '['])
    for (let at = -1; left >= 0 && (at = text.indexOf(bracket, at + 1)) !== -1;) left--;
  return left < 0 && nesting(text) > NESTING_MAX;
}

/** 0 for a scalar. The text need not be valid JSON. A megabyte without structure takes 1 ms. */
export function nesting(text: string): number {
  let depth = 0;
  let deepest = 0;
  STRUCTURE.lastIndex = 0;
  while (STRUCTURE.test(text)) {
    const at = STRUCTURE.lastIndex - 1;
    const code = text.charCodeAt(at);
    if (code === QUOTE) STRUCTURE.lastIndex = skipString(text, at);
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) deepest = Math.max(deepest, ++depth);
    else depth--;
  }
  return deepest;
}

function skipSpace(text: string, at: number): number {
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
    at++;
  }
}

/**
 * The position after the string that starts at `at`. Linear time: each backslash is read only once.
 */
export function skipString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = end;
    while (text.charCodeAt(slashes - 1) === BACKSLASH) slashes--;
    if ((end - slashes) % 2 === 0) return end + 1;
  }
  return text.length;
}

function skipValue(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return skipString(text, at);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) {
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || code <= 0x20)
        return at;
    }
    return at;
  }
  let depth = 0;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = skipString(text, at) - 1;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++;
    else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --depth === 0) return at + 1;
  }
  return at;
}
