/**
 * The part of `JSON` that has no TypeScript types yet, and that browsers have since 2023 (Chrome) to
 * 2025 (Safari, Firefox): https://github.com/tc39/proposal-json-parse-with-source
 */
interface Exact {
  rawJSON?: (source: string) => unknown;
  isRawJSON?: (value: unknown) => boolean;
  stringify: (value: unknown, replacer?: never, space?: number | string) => string | undefined;
}

const exact: Exact = JSON;
if (!exact.rawJSON) addRawJson();

/** Adds `JSON.rawJSON` and `JSON.isRawJSON` to a browser, and has `JSON.stringify` print such values. */
function addRawJson(): void {
  const mark = newMark();
  const marked = new RegExp(`"${mark}([-+.\\dEe]+)"`, 'g');
  class Raw {
    constructor(readonly rawJSON: string) {}
    toJSON(): string {
      return mark + this.rawJSON;
    }
  }
  const { stringify } = exact;
  exact.rawJSON = (source) => Object.freeze(new Raw(source));
  exact.isRawJSON = (value) => value instanceof Raw;
  exact.stringify = (...given) => stringify(...given)?.replace(marked, '$1');
}

/** Returns a text that no data contains. */
function newMark(): string {
  return `number-${Math.random().toString(36).slice(2)}-`;
}

export function isRawNumber(value: unknown): boolean {
  return exact.isRawJSON!(value);
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/**
 * Parses JSON so that `JSON.stringify` prints every number with its original digits. `1.10` and
 * integers beyond 2^53 keep their source text.
 */
export function parseExactly(text: string): unknown {
  // Refuses what is not JSON, with the browser's sentence.
  const rounded: unknown = JSON.parse(text);
  const sources: string[] = [];
  const mark = newMark();
  const masked = text.replace(TOKEN, (token) => {
    if (token.startsWith('"') || String(Number(token)) === token) return token;
    return JSON.stringify(mark + String(sources.push(token) - 1));
  });
  if (sources.length === 0) return rounded;
  return JSON.parse(masked, (_, value: unknown) =>
    typeof value === 'string' && value.startsWith(mark)
      ? exact.rawJSON!(sources[Number(value.slice(mark.length))]!)
      : value,
  );
}
