import { withoutExcerpt } from '../json/json-mistake.js';

export const MASK = '********';

const SECRET =
  '(?:pass(?:word|wd|phrase)|secret|token|authorization|cookie|(?:api|encryption|licen[cs]e|private)[_-]?key|credential|header_?value)';
const SECRET_NAME = new RegExp(`${SECRET}|^pass$`, 'i');
/**
 * `password=…` in queries, connection strings and flags, `"password":"…"` in JSON, and
 * `authorization` credentials.
 */
const SECRET_VALUES = [
  new RegExp(`(${SECRET}[\\w-]*=)[^\\s"'&;,]+`, 'gi'),
  new RegExp(`(${SECRET}[\\w-]*"\\s*:\\s*")(?:[^"\\\\]|\\\\.)*`, 'gi'),
  /\b((?:bearer|basic) )[\w.~+/=-]{16,}/gi,
];
/** `user:password@` without a scheme, as in a hand-written address. */
const BARE_CREDENTIALS = /[^\s"'/:@]*:[^\s"'@]+@/g;
/**
 * Up to the last `@` of the authority. Placeholders such as `<key>` do not match. After `name:`,
 * `/`, `?` and `#` match too, because passwords may contain them, unless a port follows the colon.
 */
const URL_CREDENTIALS = /\/\/(?:[^\s/:@[]*:(?!\d+(?:[/?#\s"']|$))[^\s"']*|[^\s/?#"'<]*)@/g;
const DEPTH = 4;

export function maskUrls(text: string): string {
  return text.includes('://') ? text.replace(URL_CREDENTIALS, `//${MASK}@`) : text;
}

/**
 * With or without a scheme. Do not use it for other text, which may have a colon before an `@`
 * without credentials.
 */
export function maskAddress(text: string): string {
  return maskUrls(text).replace(BARE_CREDENTIALS, `${MASK}@`);
}

/** Finds likely secrets only. */
export function withoutSecrets(text: string): string {
  return SECRET_VALUES.reduce(
    (rest, pattern) => rest.replace(pattern, `$1${MASK}`),
    maskUrls(text),
  );
}

/** Masks secrets and turns errors into objects. */
export function loggable(fields: Record<string, unknown>): Record<string, unknown> {
  try {
    return cleaned(fields, DEPTH) as Record<string, unknown>;
  } catch {
    // A plugin's fields or error may have getters that throw.
    return { fields: 'cannot be read' };
  }
}

function cleaned(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return withoutSecrets(value);
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Error) return describe(value, depth);
  if (value === null || typeof value !== 'object' || value instanceof Date) return value;
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (depth === 0) return Array.isArray(value) ? `${value.length} items` : '…';
  if (Array.isArray(value)) return value.map((item) => cleaned(item, depth - 1));
  const result: Record<string, unknown> = {};
  for (const [name, item] of Object.entries(value)) {
    result[name] =
      SECRET_NAME.test(name) && item !== undefined && item !== null && typeof item !== 'boolean'
        ? MASK
        : cleaned(item, depth - 1);
  }
  return result;
}

/**
 * Code, message, fix, cause and inner errors, and the stack of an unexpected error. Omits other
 * properties (`detail`, rows), which may contain data.
 */
function describe(
  error: Error & { code?: unknown; fix?: unknown; errors?: unknown },
  depth: number,
): Record<string, unknown> {
  const message = withoutContent(error);
  return {
    type: error.name,
    ...(error.code === undefined ? {} : { code: cleaned(error.code, 0) }),
    message,
    ...(typeof error.fix === 'string'
      ? { fix: withoutSecrets(error.fix) }
      : { stack: [`${error.name}: ${message}`, ...framesOf(error)].join('\n') }),
    ...(error.cause === undefined || depth === 0 ? {} : { cause: cleaned(error.cause, depth - 1) }),
    ...(Array.isArray(error.errors) && depth > 0
      ? { errors: cleaned(error.errors, depth - 1) }
      : {}),
  };
}

/** Omits data that Postgres or the JSON parser quotes in the message. */
function withoutContent(error: Error & { code?: unknown; severity?: unknown }): string {
  const message = withoutSecrets(error.message);
  // Class 22 messages quote values; class 23 only names constraints
  // (https://www.postgresql.org/docs/current/errcodes-appendix.html). The quotation marks depend on
  // lc_messages.
  if (error.severity !== undefined && String(error.code).startsWith('22'))
    return message.replace(/["«»„“”][^]*["«»„“”]/, '"…"');
  return error instanceof SyntaxError ? withoutSecrets(withoutExcerpt(error)) : message;
}

/** Skips the message, whose lines may look like frames. */
function framesOf({ message, stack = '' }: Error): string[] {
  const at = stack.indexOf(message);
  return stack
    .slice(at === -1 ? 0 : at + message.length)
    .split('\n')
    .filter((line) => /^ {4}at .+/.test(line))
    .map(withoutSecrets);
}
