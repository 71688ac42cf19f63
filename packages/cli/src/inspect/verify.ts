import { createHmac } from 'node:crypto';
import { formatDuration } from '../app/flag-values.js';

/** A missing header is an empty string. */
export type Received = Readonly<
  Record<'id' | 'timestamp' | 'signature' | 'plainSignature', string>
> & { readonly body: Buffer };

type SignatureVerdict = readonly [matches: boolean, sentence: string];

/**
 * Follows Standard Webhooks, independently of the code that signs deliveries:
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#verifying-webhook-authenticity
 */
export function verifyDelivery(
  received: Received,
  secret: string,
  { toleranceMs }: { toleranceMs: number },
) {
  const text = secret.trim().replace(/^(["'])(.*)\1$/s, '$2');
  const key = Buffer.from(text.replace(/^whsec_/, ''), 'base64');
  const standard = received.signature.split(/\s+/).filter(Boolean);
  const plain = received.plainSignature === '' ? [] : [received.plainSignature.trim()];
  const verdictOf = (scheme: string, signature: string, verdict: SignatureVerdict) => {
    const [matches, sentence] = verdict;
    return { scheme, signature, matches, sentence };
  };
  const verdicts = [
    ...standard.map((it) =>
      verdictOf('Standard Webhooks', it, standardVerdict(it, received, text, key)),
    ),
    ...plain.map((it) => verdictOf('plain HMAC', it, plainVerdict(it, received, text))),
  ];
  const late =
    standard.length === 0 ? undefined : timestampProblem(received.timestamp, toleranceMs);
  // One matching signature suffices: the others were made with secrets that this receiver does not
  // know. The plain signature decides only if no other was given, because during a rotation it uses
  // only the newest secret.
  const valid =
    late === undefined &&
    verdicts.some(({ scheme, matches }) => scheme === verdicts[0]!.scheme && matches);
  return {
    valid,
    verdicts,
    problems: [secretProblem(text), late].filter((it) => it !== undefined),
  };
}

function secretProblem(text: string): string | undefined {
  if (text.includes('****'))
    return 'the secret is masked; the API shows a secret only when it is created, so rotate it to get a new one';
  const [, prefix, base64 = ''] = /^(whsec_)?([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  const { length } = Buffer.from(base64, 'base64');
  // An operator can choose any string of at least 12 characters as a secret, without the prefix.
  if ((length >= 24 && length <= 64) || (prefix === undefined && text.length >= 12))
    return undefined;
  return 'the secret is not whsec_ and 24 to 64 bytes in base64, as the gateway generates secrets; it may be truncated';
}

function standardVerdict(
  signature: string,
  { id, timestamp, body }: Received,
  text: string,
  key: Buffer,
): SignatureVerdict {
  const [, base64] = /^v1,([^,]*)$/.exec(signature) ?? [];
  if (base64 === undefined)
    return [false, 'it is not of the form v1,<base64>; separate several signatures with a space'];
  const hmac = (by: Buffer | string, bytes: Buffer | string) =>
    createHmac('sha256', by).update(`${id}.${timestamp}.`).update(bytes).digest();
  const right = hmac(key, body);
  if (base64 === right.toString('base64'))
    return [true, 'it was made with this secret for this body'];
  const isByText = base64 === hmac(text, body).toString('base64');
  if (isByText && !text.startsWith('whsec_'))
    return [
      true,
      'it was made for this body with the text of this secret, which was given without whsec_',
    ];
  // Receivers compare signatures as text, so the right bytes in another encoding do not match.
  if (right.equals(Buffer.from(base64, 'base64')) || right.toString('hex') === base64)
    return [
      false,
      'it is correct but encoded differently: v1 signatures are base64 with + and /, and = at the end',
    ];
  if (isByText)
    return [
      false,
      'it was made with the text of the secret instead of the bytes that are base64-encoded after whsec_',
    ];
  const json = reserialised(body.toString('utf8'));
  return [
    false,
    base64 === hmac(key, json).toString('base64')
      ? 'the body differs from what was signed: the signature matches after the JSON is serialised again. Verify the raw bytes, before anything parses them or adds a line break'
      : 'it was made with another secret, or for another id, timestamp or body',
  ];
}

function reserialised(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return json;
  }
}

function plainVerdict(signature: string, { body }: Received, text: string): SignatureVerdict {
  for (const hash of ['sha256', 'sha512'])
    for (const encoding of ['hex', 'base64'] as const) {
      const made = createHmac(hash, text).update(body).digest(encoding);
      if (made !== (encoding === 'hex' ? signature.toLowerCase() : signature)) continue;
      return [
        true,
        `it is the ${encoding} of HMAC-${hash.toUpperCase()} of this body with the whole text of this secret`,
      ];
    }
  return [
    false,
    'it was made with another secret, or for another body; while secrets rotate, only the newest one is used',
  ];
}

function timestampProblem(timestamp: string, toleranceMs: number): string | undefined {
  if (!/^\d+$/.test(timestamp))
    return `the timestamp ${JSON.stringify(timestamp)} is not a number of seconds since 1970`;
  if (timestamp.length >= 13)
    return `the timestamp ${timestamp} looks like milliseconds; webhook-timestamp is in seconds`;
  const offMs = Number(timestamp) * 1000 - Date.now();
  if (Math.abs(offMs) <= toleranceMs) return undefined;
  const side = offMs < 0 ? 'old' : 'ahead of this clock';
  const allowed = `a receiver allows ${formatDuration(toleranceMs)}`;
  return `the timestamp is ${formatDuration(Math.abs(offMs))} ${side}, and ${allowed}; set a larger --tolerance for an older delivery`;
}
