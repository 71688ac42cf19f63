/** As in curl. */
export const HEAD_MAX = 300 * 1024;
/**
 * Kept from a larger head, because undici rejects heads above 16 KB. The `DECIDING` fields have a
 * separate budget, so that they are kept wherever they occur.
 */
const KEPT_BYTES = 12 * 1024;
const DECIDING = /^(content-encoding|content-length|location|retry-after|transfer-encoding)$/;
const DECIDING_BYTES = 3 * 1024;

const TEXT = '[\\t -~\\x80-\\xff]*\\r\\n';
/** https://www.rfc-editor.org/rfc/rfc9110#name-tokens */
const NAME = "[!#$%&'*+.^_`|~\\w-]+";
const FIELDS = `(?:(?!content-length:|transfer-encoding:)${NAME}:${TEXT})*`;
const FRAMING = '(?:content-length: *\\d{1,15}|transfer-encoding: *chunked)\\r\\n';
const LINE = `(?:\\r\\n| ${TEXT})`;
const PLAIN = new RegExp(
  // undici rejects a Content-Length in a response without a body.
  `^HTTP/1\\.[01] (?:(?:204|304)${LINE}${FIELDS}|(?!204|304)[2-9]\\d\\d${LINE}${FIELDS}(?:${FRAMING}${FIELDS})?)\\r\\n`,
  'i',
);

/** A complete, final head that undici can parse. Runs for every response. */
export function isPlainHead(bytes: Buffer): boolean {
  const text = bytes.toString('latin1', 0, KEPT_BYTES);
  return text.startsWith('HTTP/') && PLAIN.test(text);
}

export interface Head {
  readonly status: number;
  /** In their original order, with lower-case names. */
  readonly fields: readonly (readonly [name: string, value: string])[];
}

/** Some HTTP/1.1 servers write `HTTP/2 200`. */
const STATUS_LINE = /^HTTP\/(?:1\.[01]|2(?:\.0)?) +([1-9]\d\d)(?!\d)/;

/**
 * As lenient as curl: joins folded lines, replaces control characters with spaces, and drops
 * malformed lines and an incomplete last line. Undefined if the status line is incomplete or not
 * HTTP.
 */
export function readHead(text: string): Head | undefined {
  const [line = '', ...lines] = text.slice(0, text.lastIndexOf('\n') + 1).split(/\r?\n/);
  const status = lines.length === 0 ? undefined : STATUS_LINE.exec(line)?.[1];
  if (status === undefined) return undefined;
  const fields: [string, string][] = [];
  const room = { other: KEPT_BYTES, deciding: DECIDING_BYTES };
  const keep = (name: string, value: string) => {
    const kind = DECIDING.test(name) ? 'deciding' : 'other';
    if ((room[kind] -= name.length + value.length + 4) >= 0) fields.push([name, value]);
  };
  // A line that begins with a space or tab continues the previous field:
  // https://www.rfc-editor.org/rfc/rfc9112#section-5.2
  for (const field of lines
    .join('\n')
    .replace(/\n[ \t]+/g, ' ')
    .split('\n')) {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+)[ \t]*:(.*)$/s.exec(field) ?? [];
    if (name !== undefined && value !== undefined)
      // eslint-disable-next-line no-control-regex
      keep(name.toLowerCase(), value.replace(/[\0-\x08\x0a-\x1f\x7f]/g, ' ').trim());
  }
  return { status: Number(status), fields };
}

/**
 * For undici, with `connection: close`: if the framing is ambiguous, the end of the body is a
 * guess, and bytes after it must not be parsed as the next response.
 */
export function mendedHead({ status, fields }: Head): Buffer {
  const kept = fields.filter(
    ([name]) => !/^(content-length|transfer-encoding|connection|keep-alive)$/.test(name),
  );
  const lines = kept.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(
    `HTTP/1.1 ${status} \r\n${lines}${framing(status, fields)}connection: close\r\n\r\n`,
    'latin1',
  );
}

/** https://www.rfc-editor.org/rfc/rfc9112#section-6.3 */
function framing(status: number, fields: Head['fields']): string {
  const given = (wanted: string) =>
    fields.filter(([name]) => name === wanted).flatMap(([, value]) => value.split(','));
  if (status === 204 || status === 304) return '';
  const codings = given('transfer-encoding')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== 'identity');
  if (codings.at(-1) === 'chunked') return 'transfer-encoding: chunked\r\n';
  const lengths = given('content-length');
  if (codings.length > 0 || lengths.length === 0) return '';
  // Use the smallest length, so that the gateway does not wait for missing bytes.
  const length = Math.min(
    ...lengths.map((text) => (/^\s*\+?\d+\s*$/.test(text) ? Number(text) : 0)),
  );
  return length <= Number.MAX_SAFE_INTEGER ? `content-length: ${length}\r\n` : '';
}

/** The bytes are not an HTTP/1.1 response. */
export function otherProtocol(bytes: Buffer): string {
  // A SETTINGS or GOAWAY frame on stream 0: https://www.rfc-editor.org/rfc/rfc9113#section-4.1
  const isFrame =
    bytes.length >= 9 &&
    bytes[0] === 0 &&
    (bytes[3] === 4 || bytes[3] === 7) &&
    bytes.readUInt32BE(5) === 0;
  if (isFrame) return 'it speaks HTTP/2 only, and endpoints are called with HTTP/1.1';
  // A TLS alert: https://www.rfc-editor.org/rfc/rfc8446#section-5.1
  if (bytes[0] === 0x15 && bytes[1] === 3)
    return 'it speaks TLS, so its URL has to begin with https://';
  const [line = ''] = bytes.toString('latin1', 0, 40).split(/[\r\n]/);
  return /^[\x20-\x7e]+$/.test(line)
    ? `it begins with ${JSON.stringify(line)}, which is not HTTP/1.1`
    : 'it is not HTTP/1.1';
}
