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

/** An error as fields: code, sentence, fix, cause; the stack only of an error that nobody foresaw. */
function describe(error: Error & { code?: unknown; fix?: unknown }, depth: number): Record<string, unknown> {
  const foreseen = typeof error.fix === 'string';
  return {
    type: error.name,
    ...(error.code === undefined ? {} : { code: error.code }),
    message: maskUrls(error.message),
    ...(foreseen ? { fix: error.fix } : { stack: maskUrls(error.stack ?? '') }),
    ...(error.cause === undefined || depth === 0 ? {} : { cause: cleaned(error.cause, depth - 1) }),
  };
}
