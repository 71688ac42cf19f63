import { withoutExcerpt } from './json-mistake.js';

/** What a secret is replaced by wherever a person may read it. */
export const MASK = '********';

const SECRET_NAME =
  /(?:password|passwd|secret|token|authorization|cookie|api_?key|encryption_?key|licen[cs]e_?key|private_?key|credential)/i;
const URL_CREDENTIALS = /\/\/[^/@\s]+@/g;
const DEPTH = 4;

/** True for a name of a field that is likely to hold a secret. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** Credentials in URLs, masked. */
export function maskUrls(text: string): string {
  return text.includes('://') ? text.replace(URL_CREDENTIALS, `//${MASK}@`) : text;
}

/** The fields of a log line without secrets, with errors spelled out. */
export function loggable(fields: Record<string, unknown>): Record<string, unknown> {
  return cleaned(fields, DEPTH) as Record<string, unknown>;
}

function cleaned(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return maskUrls(value);
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Error) return describe(value, depth);
  if (value === null || typeof value !== 'object' || value instanceof Date) return value;
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  if (depth === 0) return Array.isArray(value) ? `${value.length} items` : '…';
  if (Array.isArray(value)) return value.map((item) => cleaned(item, depth - 1));
  const result: Record<string, unknown> = {};
  for (const [name, item] of Object.entries(value)) {
    result[name] = isSecretName(name) && item !== undefined && item !== null && typeof item !== 'boolean' ? MASK : cleaned(item, depth - 1);
  }
  return result;
}

/** An error as fields: code, sentence, fix, cause; the stack only of an error that nobody foresaw. What else it carries (`detail`, rows) stays out. */
function describe(error: Error & { code?: unknown; fix?: unknown }, depth: number): Record<string, unknown> {
  const foreseen = typeof error.fix === 'string';
  const message = withoutContent(error);
  return {
    type: error.name,
    ...(error.code === undefined ? {} : { code: error.code }),
    message,
    ...(foreseen ? { fix: error.fix } : { stack: [`${error.name}: ${message}`, ...framesOf(error)].join('\n') }),
    ...(error.cause === undefined || depth === 0 ? {} : { cause: cleaned(error.cause, depth - 1) }),
  };
}

/** The sentence of an error without what it quotes of the data that it complains of: Postgres and the JSON parser quote values. */
export function withoutContent(error: Error & { code?: unknown; severity?: unknown }): string {
  const message = maskUrls(error.message);
  // https://www.postgresql.org/docs/current/errcodes-appendix.html: class 22 is about values, 23 names constraints only.
  if (error.severity !== undefined && String(error.code).startsWith('22')) return message.replace(/"[^]*"/g, '"…"');
  return error instanceof SyntaxError ? withoutExcerpt(error) : message;
}

/** The places of a stack: its beginning repeats the message. */
function framesOf({ stack = '' }: Error): string[] {
  return stack
    .split('\n')
    .filter((line) => /^ {4}at .+/.test(line))
    .map(maskUrls);
}
