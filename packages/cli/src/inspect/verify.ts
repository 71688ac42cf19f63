import { createHmac } from 'node:crypto';
import { formatDuration } from '../app/flag-values.js';

/** Header values are empty when they were not given. */
export type Received = Readonly<
  Record<'id' | 'timestamp' | 'signature' | 'plainSignature', string>
> & { readonly body: Buffer };

type Verdict = readonly [matches: boolean, sentence: string];

/**
 * Verifies a delivery by the standard, without the code that signs.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#verifying-webhook-authenticity
 */
export function verifyDelivery(
  received: Received,
  secret: string,
  { toleranceMs }: { toleranceMs: number },
) {
  const text = secret.trim().replace(/^(["'])(.*)\1$/s, '$2');
  const base64 = text.replace(/^whsec_/, '');
  const key = Buffer.from(base64, 'base64');
  const standard = received.signature.split(/\s+/).filter(Boolean);
  const plain = received.plainSignature === '' ? [] : [received.plainSignature.trim()];
  const verdicts = [
    ...standard.map((signature) => ({
      scheme: 'Standard Webhooks',
      signature,
      verdict: standardVerdict(signature, received, text, key),
    })),
    ...plain.map((signature) => ({
      scheme: 'plain HMAC',
      signature,
      verdict: plainVerdict(signature, received, text, key),
    })),
  ].map(({ verdict: [matches, sentence], ...about }) => ({ ...about, matches, sentence }));
  const late =
    standard.length === 0 ? undefined : timestampProblem(received.timestamp, toleranceMs);
  // One matching signature suffices: the others belong to secrets unknown to this receiver. During
  // a rotation the plain signature uses only the newest secret: it decides only if no other was
  // given.
  const valid =
    late === undefined &&
    verdicts.some(({ scheme, matches }) => scheme === verdicts[0]!.scheme && matches);
  return {
    valid,
    verdicts,
    problems: [secretProblem(text, base64), late].filter((it) => it !== undefined),
  };
}

function secretProblem(text: string, base64: string): string | undefined {
  if (text === '') return 'the secret is empty';
  if (text.includes('****'))
    return 'the secret is masked; the API shows one only when it is made, so rotate it to have a new one';
  // Chosen by an operator.
  if (!text.startsWith('whsec_') && text.length >= 12 && !isBase64(base64)) return undefined;
  if (!isBase64(base64)) return 'the secret is not whsec_ and base64, as the gateway makes secrets';
  const { length } = Buffer.from(base64, 'base64');
  if (length < 24 || length > 64)
    return `the secret holds ${length} bytes; one of the gateway has 24 to 64, so it may be cut off`;
  return text.startsWith('whsec_') ? undefined : 'the secret lacks whsec_ at its beginning';
}

function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text);
}

function standardVerdict(
  signature: string,
  { id, timestamp, body }: Received,
  text: string,
  key: Buffer,
): Verdict {
  const [, base64] = /^v1,([^,]*)$/.exec(signature) ?? [];
  if (base64 === undefined)
    return [false, 'it is not of the form v1,<base64>; separate several signatures with a space'];
  const hmac = (by: Buffer | string, bytes: Buffer | string, before = `${id}.${timestamp}.`) =>
    createHmac('sha256', by).update(before).update(bytes).digest();
  const right = hmac(key, body);
  if (base64 === right.toString('base64'))
    return [true, 'it was made with this secret of these bytes'];
  if (!text.startsWith('whsec_') && base64 === hmac(text, body).toString('base64'))
    return [
      true,
      'it was made with the text of this secret, which was given without whsec_, of these bytes',
    ];
  // Receivers compare the texts.
  if (right.equals(Buffer.from(base64, 'base64')) || right.toString('hex') === base64)
    return [
      false,
      'it is right but written otherwise: v1 signatures are base64 with + and /, and = at the end',
    ];
  const received = body.toString('utf8');
  const differs = 'the body differs from what was signed: it matches';
  const mistakes: readonly (readonly [made: Buffer, sentence: string])[] = [
    [
      hmac(key, received.replace(/(\r?\n)+$/, '')),
      `${differs} without the line break at its end, which an editor or echo added`,
    ],
    [hmac(key, `${received}\n`), `${differs} with a line break at its end, which was cut off`],
    [
      hmac(key, received.replace(/^\ufeff/, '')),
      `${differs} without the byte order mark at its beginning`,
    ],
    [
      hmac(key, minified(received)),
      `${differs} when its JSON is serialised again. Verify the bytes as they came, before anything parses them`,
    ],
    [
      hmac(text, body),
      'it was made with the text of the secret instead of the bytes that the base64 after whsec_ stands for',
    ],
    [
      hmac(key, body, ''),
      'it is an HMAC of the body alone; Standard Webhooks sign `<id>.<timestamp>.<body>`',
    ],
    [
      hmac(text, body, ''),
      'it is an HMAC of the body alone with the whole text of the secret: give it as --plain-signature',
    ],
  ];
  const mistake = mistakes.find(([made]) => made.toString('base64') === base64);
  return [
    false,
    mistake?.[1] ?? 'it was made with another secret, or of another id, timestamp or body',
  ];
}

function minified(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return json;
  }
}

function plainVerdict(signature: string, { body }: Received, text: string, key: Buffer): Verdict {
  for (const hash of ['sha256', 'sha512'])
    for (const encoding of ['hex', 'base64'] as const) {
      const made = (by: string | Buffer) => createHmac(hash, by).update(body).digest(encoding);
      const given = encoding === 'hex' ? signature.toLowerCase() : signature;
      if (given === made(text))
        return [
          true,
          `it is the ${encoding} of HMAC-${hash.toUpperCase()} of these bytes with the whole text of this secret`,
        ];
      if (given === made(key))
        return [
          false,
          'it was made with the decoded secret; the plain form takes the whole text, whsec_ included',
        ];
    }
  return [
    false,
    'it was made with another secret, or of another body; while secrets rotate it is made with the newest one alone',
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
  return `the timestamp is ${formatDuration(Math.abs(offMs))} ${side}, and ${allowed}; give a larger --tolerance for an earlier delivery`;
}
