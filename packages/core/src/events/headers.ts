/** Selects the recipients. */
export const MESSAGE_TYPE_HEADER = 'x-gateway-message-type';

/** Projects may change it, but messages must not set it. */
const PLAIN_SIGNATURE_HEADER = 'x-gateway-signature';

/**
 * Messages must not set these. RFC 9110, section 7.6.1, and RFC 9112, section 6, define the headers
 * that belong to the connection.
 */
const OF_CONNECTION = [
  ...['host', 'connection', 'keep-alive', 'proxy-connection', 'proxy-authorization'],
  ...['transfer-encoding', 'te', 'trailer', 'upgrade', 'expect', 'content-length'],
];
const OF_GATEWAY = [
  ...['content-encoding', 'accept-encoding', 'webhook-id', 'webhook-timestamp'],
  ...['webhook-signature', PLAIN_SIGNATURE_HEADER],
];
const OWNERS: ReadonlyMap<string, 'the connection' | 'the gateway'> = new Map([
  ...OF_CONNECTION.map((name) => [name, 'the connection'] as const),
  ...OF_GATEWAY.map((name) => [name, 'the gateway'] as const),
]);

const DEFAULTED = ['content-type', 'user-agent'];

const RESERVED = new Set(
  [...OWNERS.keys(), ...DEFAULTED, MESSAGE_TYPE_HEADER].filter(
    (name) => name !== PLAIN_SIGNATURE_HEADER,
  ),
);

/** `token` (RFC 9110, section 5.6.2). */
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
/** RFC 9110, section 5.5: visible characters, spaces, tabs and opaque bytes. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Settings must not name reserved headers, and events do not contain any. */
export function isReservedHeader(name: string): boolean {
  return RESERVED.has(name.toLowerCase());
}

/** The owner of a header that messages must not set. Undefined for other headers. */
export function headerOwner(name: string): 'the connection' | 'the gateway' | undefined {
  return OWNERS.get(name.toLowerCase());
}

/**
 * The predicate of a sentence. Undefined if the header can be sent over HTTP. Does not check the
 * owner.
 */
export function customHeaderProblem(name: string, value: string): string | undefined {
  if (!isHeaderName(name)) return 'is not a header name';
  return isHeaderValue(value)
    ? undefined
    : 'has a value that HTTP cannot carry (control characters or letters beyond Latin-1)';
}

/** A `token` as defined in RFC 9110, in upper or lower case. Reserved names are valid. */
export function isHeaderName(name: string): boolean {
  return NAME.test(name);
}

/** Empty, or tabs, printable ASCII and U+0080 to U+00FF. */
export function isHeaderValue(value: string): boolean {
  return VALUE.test(value);
}

const TRACE_HEADERS = ['traceparent', 'tracestate'];

/** They say what the body is, so a codec needs them. */
const DESCRIBING = /^(content-type$|ce[-_]|cloudevents[-_:])/i;

/** The trace context, the named headers, and for a codec those that describe the body. */
export function forwardedHeaders(
  headers: Readonly<Record<string, string>>,
  names: readonly string[],
  hasCodec = false,
): Record<string, string> {
  const wanted = new Set([...TRACE_HEADERS, ...names.map((name) => name.toLowerCase())]);
  return Object.fromEntries(
    Object.entries(headers).filter(
      ([name]) => wanted.has(name.toLowerCase()) || (hasCodec && DESCRIBING.test(name)),
    ),
  );
}

/**
 * With lower-case names: the valid, unreserved headers from the broker, overridden by the message's
 * custom headers.
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

/** A plain assignment to `__proto__`, a valid name, would change the prototype. */
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
