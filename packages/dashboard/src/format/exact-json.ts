/**
 * TypeScript has no types yet for this part of `JSON`, which browsers have since 2023 (Chrome) to
 * 2025 (Safari, Firefox): https://github.com/tc39/proposal-json-parse-with-source
 */
interface Exact {
  rawJSON?: (source: string) => unknown;
  isRawJSON?: (value: unknown) => boolean;
  stringify: (value: unknown, replacer?: never, space?: number | string) => string | undefined;
}

const exact: Exact = JSON;
if (!exact.rawJSON) addRawJson();

/** `JSON.rawJSON` and `JSON.isRawJSON`. `JSON.stringify` then prints such values. */
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

/** No data contains it. */
function newMark(): string {
  return `number-${Math.random().toString(36).slice(2)}-`;
}

export function isRawNumber(value: unknown): boolean {
  return exact.isRawJSON!(value);
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/**
 * `JSON.stringify` prints every number with its original digits: `1.10` and integers beyond 2^53
 * keep their source text.
 */
export function parseExactly(text: string): unknown {
  // Throws the browser's error for what is not JSON.
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
