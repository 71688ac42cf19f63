/** For an untrusted key: ignores inherited names such as `constructor` and `__proto__`. */
export function own<Value>(
  table: Readonly<Record<string, Value>>,
  word: string,
): Value | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined;
}

export { clip } from '@gateway/plugin/clip';

/** Adds a missing full stop. */
export function capital(text: string): string {
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
