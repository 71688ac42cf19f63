/** What a table has for a word from outside: `constructor` and `__proto__` are words that it does not have. */
export function own<Value>(table: Readonly<Record<string, Value>>, word: string): Value | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined;
}
