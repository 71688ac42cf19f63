/** Custom header of a message that selects the recipients of the event. */
export const MESSAGE_TYPE_HEADER = 'x-gateway-message-type';

/** Headers of the connection and of message framing (RFC 9110 7.6.1, RFC 9112 6). */
const OF_CONNECTION = new Set([
  ...['host', 'connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'transfer-encoding', 'te', 'trailer', 'upgrade'],
  ...['expect', 'content-length'],
]);

/** Headers that the gateway sets on every request. */
const OF_GATEWAY = new Set([
  ...['content-type', 'content-encoding', 'accept-encoding', 'user-agent', 'webhook-id', 'webhook-timestamp', 'webhook-signature'],
]);

/** Headers that the gateway sets unless a message does. */
const DEFAULTED = new Set(['content-type', 'user-agent']);

const RESERVED = new Set([...OF_CONNECTION, ...OF_GATEWAY, MESSAGE_TYPE_HEADER]);

/** Default name of the plain signature header: a project may set it, a message may not. */
const PLAIN_SIGNATURE_HEADER = 'x-gateway-signature';

/** RFC 9110 5.6.2 `token`. */
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i;
/** RFC 9110 5.5: visible characters, space and tab; bytes beyond ASCII are opaque. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** True for a header that belongs to the gateway or the connection: no setting may name it, and no event carries it. */
export function isReservedHeader(name: string): boolean {
  return RESERVED.has(name.toLowerCase());
}

/**
 * What is wrong with a custom header of a message, as the rest of a sentence that begins with its name. Headers of the gateway or the connection are refused
 * rather than dropped, because their sender expects an effect. `x-gateway-message-type` is left to the caller.
 */
export function customHeaderProblem(name: string, value: string): string | undefined {
  const lower = name.toLowerCase();
  if (!isHeaderName(name)) return 'is not a header name';
  if (OF_CONNECTION.has(lower)) return 'belongs to the connection, and no message may set it: leave it out, or give it another name';
  if ((OF_GATEWAY.has(lower) && !DEFAULTED.has(lower)) || lower === PLAIN_SIGNATURE_HEADER)
    return 'is set by the gateway itself, and no message may set it: leave it out, or give it another name';
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

/** The headers of an event, in lower case: the valid ones of the broker message that are not reserved, overridden by the custom headers. */
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
    if (!RESERVED.has(lower) || DEFAULTED.has(lower)) put(headers, lower, custom[name] as string);
  }
  return headers;
}

/** `__proto__` is a valid header name. */
function put(headers: Record<string, string>, name: string, value: string): void {
  if (name === '__proto__') Object.defineProperty(headers, name, { value, enumerable: true, configurable: true, writable: true });
  else headers[name] = value;
}
