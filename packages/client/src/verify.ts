/** Thrown if a request is not, or no longer, trusted. Respond to it with 400. */
export class VerificationError extends Error {
  override readonly name = 'VerificationError';
}

export interface VerifyOptions {
  /** The accepted clock difference; 300 by default. Older requests may be replays. */
  readonly toleranceSeconds?: number;
  /** The current time in epoch milliseconds; the system clock by default. */
  readonly now?: number;
}

const TOLERANCE_SECONDS = 300;

/**
 * Verifies the signature of a delivery (Standard Webhooks).
 * @param body the body as received, text or bytes, not parsed JSON
 * @param secrets the endpoint's secret, `whsec_…` or plain text, or several during a rotation
 * @returns the parsed JSON of the body
 * @throws VerificationError if no secret matches or the request is too old
 */
export async function verify<Payload = unknown>(
  body: string | Uint8Array,
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>,
  secrets: string | readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS, now = Date.now() }: VerifyOptions = {},
): Promise<Payload> {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
    (name) => valueOf(headers, name),
  ) as [string, string, string];
  if (!/^\d+$/.test(timestamp))
    throw new VerificationError('The header webhook-timestamp is not a number of seconds.');
  const ageSeconds = Math.abs(now / 1000 - Number(timestamp));
  if (ageSeconds > toleranceSeconds)
    throw new VerificationError(
      `The request is ${Math.round(ageSeconds)} seconds off: it may be a repetition, or the clock of this machine is wrong.`,
    );
  const text =
    typeof body === 'string' ? body : new TextDecoder('utf-8', { ignoreBOM: true }).decode(body);
  const prefix = new TextEncoder().encode(`${id}.${timestamp}.`);
  const content = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const signed = new Uint8Array(prefix.length + content.length);
  signed.set(prefix);
  signed.set(content, prefix.length);
  for (const secret of [secrets].flat()) {
    const key = await crypto.subtle.importKey(
      'raw',
      bytesOf(secret),
      { name: 'HMAC', hash: 'SHA-256' },
      false,
      ['verify'],
    );
    for (const signature of signatures.split(' ')) {
      const [version, base64 = ''] = signature.split(',');
      if (version === 'v1' && (await crypto.subtle.verify('HMAC', key, fromBase64(base64), signed)))
        return JSON.parse(text) as Payload;
    }
  }
  throw new VerificationError('No signature of the request is by one of these secrets.');
}

function valueOf(headers: Parameters<typeof verify>[1], name: string): string {
  const all: Record<string, string | readonly string[] | undefined> =
    headers instanceof Headers ? { [name]: headers.get(name) ?? undefined } : headers;
  const [, value] = Object.entries(all).find(([it]) => it.toLowerCase() === name) ?? [];
  const [first] = [value].flat();
  if (!first) throw new VerificationError(`The request has no header ${name}.`);
  return first;
}

function bytesOf(secret: string): Uint8Array<ArrayBuffer> {
  if (secret === '') throw new TypeError('The secret is empty.');
  if (!secret.startsWith('whsec_')) return new TextEncoder().encode(secret);
  const bytes = fromBase64(secret.slice('whsec_'.length));
  if (bytes.length === 0) throw new TypeError('The secret after whsec_ is not base64.');
  return bytes;
}

/** Decodes base64. Returns no bytes if invalid. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
