/** Looks up an untrusted key: `constructor` and `__proto__` have no entry. */
export function own<Value>(
  table: Readonly<Record<string, Value>>,
  word: string,
): Value | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined;
}
