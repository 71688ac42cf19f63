import { rawJsonAt } from '@gateway/core/json';
import { headerOf } from './providers.js';

const LOCATION = /^(?:request\.)?(header|body|query(?:param)?)\.(.+)$/i;
const VALUE_LENGTH_MAX = 4_096;

export const LOCATION_PATTERN =
  '^([Rr]equest\\.)?([Hh]eader|[Bb]ody|[Qq]uery([Pp]aram)?)\\.[^\\u0000-\\u001f\\u007f]+$';

export interface Located {
  /** Unjoined, so that repeated headers never equal a single comma-separated one. */
  readonly headers: () => Readonly<Record<string, readonly string[] | undefined>>;
  readonly query: Readonly<Record<string, string | string[] | undefined>>;
  /** Undefined if the body is not JSON. */
  readonly json: () => string | undefined;
}

/** Reads a location such as `header.X-Topic`, `body.data.id` or `query.type`. */
export function valueAt(location: string, request: Located): string | undefined {
  const json = jsonAt(location, request) ?? '';
  const text = json.startsWith('"') ? (JSON.parse(json) as string) : json;
  return /^($|[[{]|null$)/.test(json) || text === '' || text.length > VALUE_LENGTH_MAX
    ? undefined
    : text;
}

/**
 * As JSON, so that results are equal only if values and types are. Numbers, objects and arrays keep
 * their text, because parsing a number loses digits. Undefined for a missing, `null` or empty
 * value, which does not distinguish requests.
 */
export function jsonAt(location: string, { headers, query, json }: Located): string | undefined {
  const [, part = '', name = ''] = LOCATION.exec(location) ?? [];
  const found = (() => {
    switch (part.toLowerCase()) {
      case 'header':
        return jsonOf(headerOf(headers(), name.toLowerCase()));
      case 'body': {
        const raw = rawJsonAt(json() ?? '', name.split('.'));
        // A string has several spellings in JSON, so it is normalised.
        return raw?.startsWith('"') ? JSON.stringify(JSON.parse(raw)) : raw;
      }
      default:
        return jsonOf(Object.hasOwn(query, name) ? query[name] : undefined);
    }
  })();
  return found === undefined || /^(null|""|\[\s*\]|\{\s*\})$/.test(found) ? undefined : found;
}

function jsonOf(given: string | readonly string[] | undefined): string | undefined {
  return JSON.stringify(Array.isArray(given) && given.length === 1 ? given[0] : given);
}
