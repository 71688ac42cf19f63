/** The entry of a table for a word from outside. `constructor` and `__proto__` have none. */
export function own<Value>(table: Readonly<Record<string, Value>>, word: string): Value | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined;
}
