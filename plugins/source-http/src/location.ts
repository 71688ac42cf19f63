import type { JsonBody, PushRequest } from '@gateway/plugin';
import { headerOf } from './providers.js';

const LOCATION = /^(?:request\.)?(header|body|query(?:param)?)\.(.+)$/i;
const VALUE_LENGTH_MAX = 4_096;

export interface Located {
  /** Unjoined, so that repeated headers never equal a single comma-separated one. */
  readonly headers: PushRequest['headersDistinct'];
  readonly query: URLSearchParams;
  /** Undefined if the body is not JSON, or no location needs it. */
  readonly json: JsonBody | undefined;
}

/** The URL may be a path. */
export function queryOf(url: string): URLSearchParams {
  return new URLSearchParams(url.replace(/^[^?]*/, ''));
}

export function isInBody(location: string): boolean {
  return /^(request\.)?body\./i.test(location);
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
        return jsonOf(headerOf(headers, name.toLowerCase()) ?? []);
      case 'body': {
        const raw = json?.at(name.split('.'));
        // A string has several spellings in JSON, so it is normalised.
        return raw?.startsWith('"') ? JSON.stringify(JSON.parse(raw)) : raw;
      }
      default:
        return jsonOf(query.getAll(name));
    }
  })();
  return found === undefined || /^(null|""|\[\s*\]|\{\s*\})$/.test(found) ? undefined : found;
}

function jsonOf(given: readonly string[]): string | undefined {
  return given.length === 0 ? undefined : JSON.stringify(given.length === 1 ? given[0] : given);
}
