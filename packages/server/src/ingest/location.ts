import { rawJsonAt } from '@gateway/core/json';
import { headerOf } from './providers.js';

const LOCATION = /^(?:request\.)?(header|body|query(?:param)?)\.(.+)$/i;
/** Maximum length of an event type. */
const VALUE_LENGTH_MAX = 4_096;

/** Form of a location in settings, as JSON Schema has it. */
export const LOCATION_PATTERN = '^([Rr]equest\\.)?([Hh]eader|[Bb]ody|[Qq]uery([Pp]aram)?)\\.[^\\u0000-\\u001f\\u007f]+$';

/** What of a request locations look into. */
export interface Located {
  /** Values of repeated headers apart: joined by commas they could be one value with a comma. */
  readonly headers: () => Readonly<Record<string, readonly string[] | undefined>>;
  readonly query: Readonly<Record<string, string | string[] | undefined>>;
  /** The text of the body; undefined when it is no JSON. */
  readonly json: () => string | undefined;
}

/** The text, number or boolean at `header.X-Topic`, `body.data.id` or `query.type`; undefined when there is none. */
export function valueAt(location: string, request: Located): string | undefined {
  const json = jsonAt(location, request) ?? '';
  const text = json.startsWith('"') ? (JSON.parse(json) as string) : json;
  return /^($|[[{]|null$)/.test(json) || text === '' || text.length > VALUE_LENGTH_MAX ? undefined : text;
}

/**
 * The value at a location as JSON: two texts are equal only if the values and their types are. Numbers, objects and arrays stand as they were sent, because
 * parsing a number would lose digits. Undefined when there is nothing, `null`, or an empty value, which tells no two requests apart.
 */
export function jsonAt(location: string, { headers, query, json }: Located): string | undefined {
  const [, part = '', name = ''] = LOCATION.exec(location) ?? [];
  const found = (() => {
    switch (part.toLowerCase()) {
      case 'header':
        return jsonOf(headerOf(headers(), name.toLowerCase()));
      case 'body': {
        const raw = rawJsonAt(json() ?? '', name.split('.'));
        // A string can be spelled in several ways.
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
