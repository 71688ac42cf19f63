/** Not yet in the types of TypeScript: https://github.com/tc39/proposal-json-parse-with-source. */
interface Exact {
  parse(text: string, reviver: (key: string, value: unknown, context?: { readonly source?: string }) => unknown): unknown;
  readonly rawJSON?: (text: string) => unknown;
}

/** Parses JSON such that `JSON.stringify` gives every number with the digits it had: `1.10` and integers beyond 2^53 are kept as text. */
export function parseExactly(text: string): unknown {
  const exact: Exact = JSON;
  const { rawJSON } = exact;
  if (!rawJSON) return JSON.parse(text);
  return exact.parse(text, (_, value, context) =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source ? rawJSON(context.source) : value,
  );
}
