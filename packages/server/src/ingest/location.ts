import { memberAt } from '@gateway/core/events';
import type { IncomingHttpHeaders } from 'node:http';

const LOCATION = /^(?:request\.)?(header|body|query(?:param)?)\.(.+)$/i;
/** Of values in a message that become part of a name. */
const VALUE_LENGTH_MAX = 4_096;

/** Form of a location in settings, as JSON Schema has it. */
export const LOCATION_PATTERN = '^([Rr]equest\\.)?([Hh]eader|[Bb]ody|[Qq]uery([Pp]aram)?)\\.[^\\u0000-\\u001f\\u007f]+$';

/** What of a request locations look into. */
export interface Located {
  readonly headers: IncomingHttpHeaders;
  readonly query: Readonly<Record<string, string | string[] | undefined>>;
  /** The parsed body; undefined when it is no JSON. */
  readonly json: () => unknown;
}

/** The value at `header.X-Topic`, `body.data.id` or `query.type`; undefined when there is none that is a text, a number or a boolean. */
export function valueAt(location: string, { headers, query, json }: Located): string | undefined {
  const [, part = '', name = ''] = LOCATION.exec(location) ?? [];
  const found = (() => {
    switch (part.toLowerCase()) {
      case 'header':
        return headers[name.toLowerCase()];
      case 'body':
        return memberAt(json(), name.split('.'));
      default:
        return Object.hasOwn(query, name) ? query[name] : undefined;
    }
  })();
  if (typeof found !== 'string' && typeof found !== 'number' && typeof found !== 'boolean') return undefined;
  const text = String(found);
  return text === '' || text.length > VALUE_LENGTH_MAX ? undefined : text;
}
