import { createHmac } from 'node:crypto';
import { formatDuration } from '../app/duration.js';

/** A delivery as its receiver got it. */
export interface Received {
  readonly id: string;
  /** As in `webhook-timestamp`. */
  readonly timestamp: string;
  /** As in `webhook-signature`: one or more, separated by spaces. Empty: only the plain one is verified. */
  readonly signature: string;
  /** The plain HMAC of the project's own header; empty: there is none. */
  readonly plainSignature: string;
  readonly body: Buffer;
}

/** Whether one signature of a delivery matches. */
export interface Verdict {
  readonly scheme: 'Standard Webhooks' | 'plain HMAC';
  readonly signature: string;
  readonly matches: boolean;
  /** Why not, or what it matches. */
  readonly sentence: string;
}

/** What a receiver would do with a delivery. */
export interface Verification {
  /** A receiver accepts it. */
  readonly valid: boolean;
  readonly verdicts: readonly Verdict[];
  /** What is wrong beside the signatures. */
  readonly problems: readonly string[];
}

/** A secret as a receiver was given it, and the key that its base64 stands for. */
interface GivenSecret {
  readonly text: string;
  readonly key: Buffer;
}

/**
 * Verifies a delivery as its receiver does, by the standard and without the code that signs.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#verifying-webhook-authenticity
 *
 * @param toleranceMs how far the timestamp may be from now
 */
export function verifyDelivery(
  received: Received,
  given: string,
  { toleranceMs, now = Date.now() }: { toleranceMs: number; now?: number },
): Verification {
  const text = given.trim().replace(/^(["'])(.*)\1$/s, '$2');
  const base64 = text.replace(/^whsec_/, '');
  const secret = { text, key: Buffer.from(base64, 'base64') };
  const standard = received.signature.split(/\s+/).filter(Boolean);
  const verdicts = [
    ...standard.map((signature) => standardVerdict(signature, received, secret)),
    ...(received.plainSignature === '' ? [] : [plainVerdict(received.plainSignature.trim(), received, secret)]),
  ];
  const late = standard.length === 0 ? undefined : timestampProblem(received.timestamp, toleranceMs, now);
  // One matching signature is enough: the others belong to secrets that this receiver does not have. During a rotation the plain one is made with the
  // newest secret alone, so it decides only where nothing else was given.
  const scheme = standard.length === 0 ? 'plain HMAC' : 'Standard Webhooks';
  const valid = late === undefined && verdicts.some((it) => it.scheme === scheme && it.matches);
  return { valid, verdicts, problems: [secretProblem(text, base64), late].filter((it) => it !== undefined) };
}

function secretProblem(text: string, base64: string): string | undefined {
  if (text === '') return 'the secret is empty';
  if (text.includes('****')) return 'the secret is masked; the API shows one only when it is made, so rotate it to have a new one';
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return 'the secret is not whsec_ and base64, as the gateway makes secrets';
  const { length } = Buffer.from(base64, 'base64');
  if (length < 24 || length > 64) return `the secret holds ${length} bytes; one of the gateway has 24 to 64, so it may be cut off`;
  return text.startsWith('whsec_') ? undefined : 'the secret lacks whsec_ at its beginning';
}

function standardVerdict(signature: string, received: Received, secret: GivenSecret): Verdict {
  const verdict = (matches: boolean, sentence: string): Verdict => ({ scheme: 'Standard Webhooks', signature, matches, sentence });
  const [version = '', base64, ...rest] = signature.split(',');
  if (base64 === undefined || rest.length > 0)
    return verdict(false, 'it is not of the form v1,<base64>; separate several signatures with a space');
  if (version === 'v1a') return verdict(false, 'it is an asymmetric signature (v1a), which the gateway does not make');
  if (version !== 'v1') return verdict(false, `its version ${version} is not v1`);
  const { id, timestamp, body } = received;
  const hmac = (key: Buffer | string, signed: string, bytes: Buffer) => createHmac('sha256', key).update(signed).update(bytes).digest();
  const expected = hmac(secret.key, `${id}.${timestamp}.`, body);
  if (base64 === expected.toString('base64')) return verdict(true, 'it was made with this secret of these bytes');
  // Receivers compare the texts.
  if (expected.equals(Buffer.from(base64, 'base64')) || expected.toString('hex') === base64)
    return verdict(false, 'it is right but written otherwise: v1 signatures are base64 with + and /, and = at the end');
  const mistake = mistakes(received, secret).find(
    ({ bytes = body, key = secret.key, signed = `${id}.${timestamp}.` }) => hmac(key, signed, bytes).toString('base64') === base64,
  );
  return verdict(false, mistake?.sentence ?? 'it was made with another secret, or of another id, timestamp or body');
}

/** A mistake that receivers make, and the bytes or the key that they verify with. */
interface Mistake {
  readonly sentence: string;
  readonly bytes?: Buffer;
  readonly key?: string;
  readonly signed?: string;
}

function mistakes({ body }: Received, { text }: GivenSecret): Mistake[] {
  const plain = body.toString('utf8');
  const bodies: [string, string | undefined][] = [
    ['without the line break at its end, which an editor or echo added', plain.replace(/(\r?\n)+$/, '')],
    ['with a line break at its end, which was cut off', `${plain}\n`],
    ['without the byte order mark at its beginning', plain.replace(/^\ufeff/, '')],
    ['when its JSON is written anew. Verify the bytes as they came, before anything parses them', minified(plain)],
  ];
  return [
    ...bodies.flatMap(([how, variant]) =>
      variant === undefined ? [] : [{ sentence: `the body differs from what was signed: it matches ${how}`, bytes: Buffer.from(variant) }],
    ),
    { sentence: 'it was made with the text of the secret instead of the bytes that the base64 after whsec_ stands for', key: text },
    { sentence: 'it is an HMAC of the body alone; Standard Webhooks sign `<id>.<timestamp>.<body>`', signed: '' },
    { sentence: 'it is an HMAC of the body alone with the whole text of the secret: give it as --plain-signature', signed: '', key: text },
  ];
}

function minified(json: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return undefined;
  }
}

function plainVerdict(signature: string, { body }: Received, { text, key }: GivenSecret): Verdict {
  const verdict = (matches: boolean, sentence: string): Verdict => ({ scheme: 'plain HMAC', signature, matches, sentence });
  const forms = ['sha256', 'sha512'].flatMap((hash) => (['hex', 'base64'] as const).map((encoding) => ({ hash, encoding })));
  const made = (by: string | Buffer) =>
    forms.find(({ hash, encoding }) => {
      const given = encoding === 'hex' ? signature.toLowerCase() : signature;
      return given === createHmac(hash, by).update(body).digest(encoding);
    });
  const form = made(text);
  if (form)
    return verdict(true, `it is the ${form.encoding} of HMAC-${form.hash.toUpperCase()} of these bytes with the whole text of this secret`);
  if (made(key)) return verdict(false, 'it was made with the decoded secret; the plain form takes the whole text, whsec_ included');
  return verdict(false, 'it was made with another secret, or of another body; while secrets rotate it is made with the newest one alone');
}

function timestampProblem(timestamp: string, toleranceMs: number, now: number): string | undefined {
  if (!/^\d+$/.test(timestamp)) return `the timestamp ${JSON.stringify(timestamp)} is not a number of seconds since 1970`;
  if (timestamp.length >= 13) return `the timestamp ${timestamp} looks like milliseconds; webhook-timestamp is in seconds`;
  const offMs = Number(timestamp) * 1000 - now;
  if (Math.abs(offMs) <= toleranceMs) return undefined;
  const side = offMs < 0 ? 'old' : 'ahead of this clock';
  const allowed = `a receiver allows ${formatDuration(toleranceMs)}`;
  return `the timestamp is ${formatDuration(Math.abs(offMs))} ${side}, and ${allowed}; give a larger --tolerance for an earlier delivery`;
}
