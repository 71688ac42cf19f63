/** TypeScript has no types for it yet: https://github.com/tc39/proposal-json-parse-with-source. */
interface Exact {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context?: { readonly source?: string }) => unknown,
  ): unknown;
  readonly rawJSON?: (text: string) => unknown;
}

/**
 * Parses JSON so that `JSON.stringify` prints every number with its original digits: `1.10` and
 * integers beyond 2^53 keep their source text.
 */
export function parseExactly(text: string): unknown {
  const exact: Exact = JSON;
  const { rawJSON } = exact;
  if (!rawJSON) return JSON.parse(text);
  return exact.parse(text, (_, value, context) =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
      ? rawJSON(context.source)
      : value,
  );
}
