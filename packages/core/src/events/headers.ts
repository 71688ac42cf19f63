/** The message header that selects the recipients. */
export const MESSAGE_TYPE_HEADER = 'x-gateway-message-type';

/**
 * The default name of the signature header. Projects may change it, but messages must not set it.
 */
const PLAIN_SIGNATURE_HEADER = 'x-gateway-signature';

/**
 * Headers that messages must not set, and who sets them. RFC 9110, section 7.6.1, and RFC 9112,
 * section 6, define the headers that belong to the connection.
 */
const OWNERS: ReadonlyMap<string, 'the connection' | 'the gateway'> = new Map([
  ...[
    ...[
      'host',
      'connection',
      'keep-alive',
      'proxy-connection',
      'proxy-authorization',
      'transfer-encoding',
      'te',
      'trailer',
      'upgrade',
    ],
    ...['expect', 'content-length'],
  ].map((name) => [name, 'the connection'] as const),
  ...[
    'content-encoding',
    'accept-encoding',
    'webhook-id',
    'webhook-timestamp',
    'webhook-signature',
    PLAIN_SIGNATURE_HEADER,
  ].map((name) => [name, 'the gateway'] as const),
]);

const DEFAULTED = ['content-type', 'user-agent'];

const RESERVED = new Set(
  [...OWNERS.keys(), ...DEFAULTED, MESSAGE_TYPE_HEADER].filter(
    (name) => name !== PLAIN_SIGNATURE_HEADER,
  ),
);

/** A `token` (RFC 9110, section 5.6.2). */
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
/** A field value (RFC 9110, section 5.5): visible characters, spaces, tabs and opaque bytes. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Returns whether the header is reserved. Settings must not name reserved headers, and events do
 * not contain any.
 */
export function isReservedHeader(name: string): boolean {
  return RESERVED.has(name.toLowerCase());
}

/** Returns who sets a header that messages must not set, or undefined for other headers. */
export function headerOwner(name: string): 'the connection' | 'the gateway' | undefined {
  return OWNERS.get(name.toLowerCase());
}

/**
 * Returns why a custom header cannot be sent over HTTP, phrased as the predicate of a sentence
 * about it, or undefined if it can. Does not check the owner.
 */
export function customHeaderProblem(name: string, value: string): string | undefined {
  if (!isHeaderName(name)) return 'is not a header name';
  return isHeaderValue(value)
    ? undefined
    : 'has a value that HTTP cannot carry (control characters or letters beyond Latin-1)';
}

/**
 * Returns whether the name is a `token` as defined in RFC 9110, in upper or lower case. Reserved
 * names are valid.
 */
export function isHeaderName(name: string): boolean {
  return NAME.test(name);
}

/** Returns whether the value is empty or consists of tabs, printable ASCII and U+0080 to U+00FF. */
export function isHeaderValue(value: string): boolean {
  return VALUE.test(value);
}

const TRACE_HEADERS = ['traceparent', 'tracestate'];

/** Returns the headers of a message that may travel: those of its trace, and the named ones. */
export function forwardedHeaders(
  headers: Readonly<Record<string, string>>,
  names: readonly string[],
): Record<string, string> {
  const wanted = new Set([...TRACE_HEADERS, ...names.map((name) => name.toLowerCase())]);
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => wanted.has(name.toLowerCase())),
  );
}

/**
 * Returns the headers of an event, with lower-case names: the valid, unreserved headers from the
 * broker, overridden by the message's custom headers.
 */
export function travellingHeaders(
  broker: Readonly<Record<string, string>>,
  custom: Readonly<Record<string, string>>,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name in broker) {
    const lower = name.toLowerCase();
    const value = broker[name] as string;
    if (!RESERVED.has(lower) && isHeaderName(lower) && isHeaderValue(value))
      put(headers, lower, value);
  }
  for (const name in custom) {
    const lower = name.toLowerCase();
    if (!OWNERS.has(lower) && lower !== MESSAGE_TYPE_HEADER)
      put(headers, lower, custom[name] as string);
  }
  return headers;
}

/** Sets a header. A plain assignment to `__proto__`, a valid name, would change the prototype. */
function put(headers: Record<string, string>, name: string, value: string): void {
  if (name === '__proto__')
    Object.defineProperty(headers, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  else headers[name] = value;
}
