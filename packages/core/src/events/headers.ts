/** Message header that selects the recipients. */
export const MESSAGE_TYPE_HEADER = 'x-gateway-message-type';

/** A project may set this default name; a message may not. */
const PLAIN_SIGNATURE_HEADER = 'x-gateway-signature';

/** Forbidden headers of messages, with their owners. Connection: RFC 9110 7.6.1, RFC 9112 6. */
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

/** RFC 9110 5.6.2 `token`. */
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
/** RFC 9110 5.5: visible characters, space and tab; other bytes are opaque. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** True for a header that no setting may name and no event carries. */
export function isReservedHeader(name: string): boolean {
  return RESERVED.has(name.toLowerCase());
}

/** Returns the owner of a header that no message may set. */
export function headerOwner(name: string): 'the connection' | 'the gateway' | undefined {
  return OWNERS.get(name.toLowerCase());
}

/**
 * Returns why HTTP cannot carry a custom header: words that follow its name. Does not check the
 * owner.
 */
export function customHeaderProblem(name: string, value: string): string | undefined {
  if (!isHeaderName(name)) return 'is not a header name';
  return isHeaderValue(value)
    ? undefined
    : 'has a value that HTTP cannot carry (control characters or letters beyond Latin-1)';
}

/** True for an RFC 9110 `token`, in any case, reserved or not. */
export function isHeaderName(name: string): boolean {
  return NAME.test(name);
}

/** True for tabs, printable ASCII and U+0080 to U+00FF, or an empty text. */
export function isHeaderValue(value: string): boolean {
  return VALUE.test(value);
}

/**
 * Returns the lower-case headers of an event: valid, unreserved broker headers, overridden by
 * custom headers without an owner.
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

/** `__proto__` is a valid header name. */
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
