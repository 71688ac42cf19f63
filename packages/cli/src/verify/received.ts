import { GatewayError } from '@gateway/core/errors';
import { isObject } from '@gateway/core/json';

/** A delivery as its receiver got it. */
export interface Received {
  readonly id: string;
  /** As in `webhook-timestamp`. */
  readonly timestamp: string;
  /** As in `webhook-signature`: one or more, separated by spaces. Empty: only the plain one is verified. */
  readonly signature: string;
  /** The plain HMAC of the project's own header; empty: there is none. */
  readonly plainSignature: string;
  readonly body: Buffer;
}

/** Where the plain HMAC stands unless the project is configured otherwise. */
export const PLAIN_HEADER = 'X-Gateway-Signature';

/**
 * The headers of a request that was saved: lines of `name: value`, with or without the request line, or a JSON object of names and values.
 * Names come out in lower case; of several values of a name the last one counts.
 *
 * @throws GatewayError `wrong_use` when there is no header in it
 */
export function headersOf(text: string, file: string): ReadonlyMap<string, string> {
  const pairs = text.trimStart().startsWith('{') ? fromJson(text, file) : fromLines(text);
  const headers = new Map(pairs.map(([name, value]) => [name.trim().toLowerCase(), value.trim()]));
  if (headers.size > 0) return headers;
  throw new GatewayError('wrong_use', {
    sentence: `${file} holds no headers`,
    fix: 'write one header per line as `webhook-id: msg_…`, or a JSON object of names and values',
  });
}

function fromLines(text: string): [string, string][] {
  return text.split(/\r?\n/).flatMap((line): [string, string][] => {
    // `curl -v` puts < or > before each.
    const [, name, value] = /^[<>]?\s*([\w-]+):\s*(.*)$/.exec(line) ?? [];
    return name === undefined || value === undefined ? [] : [[name, value]];
  });
}

function fromJson(text: string, file: string): [string, string][] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new GatewayError('wrong_use', { sentence: `${file} begins like JSON and is none`, fix: 'write one header per line instead' });
  }
  if (!isObject(value)) return [];
  return Object.entries(value).map(([name, it]) => [name, String(Array.isArray(it) ? it.at(-1) : it)]);
}
