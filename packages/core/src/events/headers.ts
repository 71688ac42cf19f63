/** Custom header of a message that selects the recipients of the event. */
export const MESSAGE_TYPE_HEADER = 'x-gateway-message-type';

/** Default name of the plain signature header: a project may set it, a message may not. */
const PLAIN_SIGNATURE_HEADER = 'x-gateway-signature';

/** Headers that no message may set, and who sets them. Those of the connection: RFC 9110 7.6.1, RFC 9112 6. */
const OWNERS: ReadonlyMap<string, 'the connection' | 'the gateway'> = new Map([
  ...[
    ...['host', 'connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'transfer-encoding', 'te', 'trailer', 'upgrade'],
    ...['expect', 'content-length'],
  ].map((name) => [name, 'the connection'] as const),
  ...['content-encoding', 'accept-encoding', 'webhook-id', 'webhook-timestamp', 'webhook-signature', PLAIN_SIGNATURE_HEADER].map(
    (name) => [name, 'the gateway'] as const,
  ),
]);

/** Headers that the gateway sets unless a message does. */
const DEFAULTED = ['content-type', 'user-agent'];

const RESERVED = new Set([...OWNERS.keys(), ...DEFAULTED, MESSAGE_TYPE_HEADER].filter((name) => name !== PLAIN_SIGNATURE_HEADER));

/** RFC 9110 5.6.2 `token`. */
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
/** RFC 9110 5.5: visible characters, space and tab; bytes beyond ASCII are opaque. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** True for a header that belongs to the gateway or the connection: no setting may name it, and no event carries it. */
export function isReservedHeader(name: string): boolean {
  return RESERVED.has(name.toLowerCase());
}

/** Who sets this header instead of a message; undefined when a message may set it. */
export function headerOwner(name: string): 'the connection' | 'the gateway' | undefined {
  return OWNERS.get(name.toLowerCase());
}

/** Why HTTP cannot carry this custom header, as the rest of a sentence that begins with its name. `headerOwner` is another question. */
export function customHeaderProblem(name: string, value: string): string | undefined {
  if (!isHeaderName(name)) return 'is not a header name';
  return isHeaderValue(value) ? undefined : 'has a value that HTTP cannot carry (control characters or letters beyond Latin-1)';
}

/** True for a `token` of RFC 9110, in upper or lower case. Reserved names are not excluded. */
export function isHeaderName(name: string): boolean {
  return NAME.test(name);
}

/** True for text of tabs, printable ASCII and U+0080 to U+00FF, also when it is empty. */
export function isHeaderValue(value: string): boolean {
  return VALUE.test(value);
}

/** The headers of an event, in lower case: the valid ones of the broker message that are not reserved, overridden by the custom headers without an owner. */
export function travellingHeaders(
  broker: Readonly<Record<string, string>>,
  custom: Readonly<Record<string, string>>,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name in broker) {
    const lower = name.toLowerCase();
    const value = broker[name] as string;
    if (!RESERVED.has(lower) && isHeaderName(lower) && isHeaderValue(value)) put(headers, lower, value);
  }
  for (const name in custom) {
    const lower = name.toLowerCase();
    if (!OWNERS.has(lower) && lower !== MESSAGE_TYPE_HEADER) put(headers, lower, custom[name] as string);
  }
  return headers;
}

/** `__proto__` is a valid header name. */
function put(headers: Record<string, string>, name: string, value: string): void {
  if (name === '__proto__') Object.defineProperty(headers, name, { value, enumerable: true, configurable: true, writable: true });
  else headers[name] = value;
}
