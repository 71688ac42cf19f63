/** In a message's custom headers: whom the event goes to. */
export const MESSAGE_TYPE_HEADER = 'x-gateway-message-type';

/** Names that the gateway sets itself, or that belong to the connection (RFC 9110 7.6.1): they never travel from a message to an endpoint. */
const RESERVED = new Set([
  'host',
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'content-length',
  'content-type',
  'content-encoding',
  'accept-encoding',
  'user-agent',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
  MESSAGE_TYPE_HEADER,
]);

/** RFC 9110 5.6.2 `token`. */
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
/** RFC 9110 5.5: visible characters, space and tab; bytes beyond ASCII are opaque. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** True for a name that no message and no setting may claim: the gateway or the connection owns it. */
export function isReservedHeader(name: string): boolean {
  return RESERVED.has(name.toLowerCase());
}

export function isHeaderName(name: string): boolean {
  return NAME.test(name);
}

export function isHeaderValue(value: string): boolean {
  return VALUE.test(value);
}

/**
 * The headers that travel with an event: those of the broker message that HTTP can carry, and the message's custom headers over them.
 * Names in lower case.
 */
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
    if (!RESERVED.has(lower)) put(headers, lower, custom[name] as string);
  }
  return headers;
}

/** `__proto__` is a name like any other in HTTP. */
function put(headers: Record<string, string>, name: string, value: string): void {
  if (name === '__proto__') Object.defineProperty(headers, name, { value, enumerable: true, configurable: true, writable: true });
  else headers[name] = value;
}
