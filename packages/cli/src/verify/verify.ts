import { createHmac } from 'node:crypto';
import { formatDuration } from '../duration.js';
import { nearMiss } from './near-misses.js';
import type { Received } from './received.js';
import { givenSecret, type GivenSecret } from './secret.js';

/** One signature of a delivery, looked at. */
export interface Verdict {
  readonly scheme: 'Standard Webhooks' | 'plain HMAC';
  readonly signature: string;
  readonly matches: boolean;
  /** Why not, or what it matches. */
  readonly sentence: string;
}

/** What a receiver would say to a delivery. */
export interface Verification {
  /** A receiver takes it. */
  readonly valid: boolean;
  readonly verdicts: readonly Verdict[];
  /** What is wrong beside the signatures. */
  readonly problems: readonly string[];
}

/**
 * Verifies a delivery as its receiver does, after the standard and without the code that signs.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#verifying-webhook-authenticity
 *
 * @param toleranceMs how far the timestamp may be from now
 */
export function verifyDelivery(
  received: Received,
  secret: string,
  { toleranceMs, now = Date.now() }: { toleranceMs: number; now?: number },
): Verification {
  const key = givenSecret(secret);
  const standard = received.signature.split(/\s+/).filter(Boolean);
  const verdicts = [
    ...standard.map((signature) => standardVerdict(signature, received, key)),
    ...(received.plainSignature === '' ? [] : [plainVerdict(received.plainSignature.trim(), received, key)]),
  ];
  const matches = (scheme: Verdict['scheme']) => verdicts.some((it) => it.scheme === scheme && it.matches);
  const late = standard.length === 0 ? undefined : timestampProblem(received.timestamp, toleranceMs, now);
  const problems = [key.problem, late].filter((it) => it !== undefined);
  // One good signature is enough: the others belong to secrets that this receiver does not have. While secrets rotate the plain one is made with the
  // newest alone, so it decides only where nothing else was given.
  const valid = standard.length === 0 ? matches('plain HMAC') : matches('Standard Webhooks');
  return { valid: valid && late === undefined, verdicts, problems };
}

function standardVerdict(signature: string, received: Received, secret: GivenSecret): Verdict {
  const verdict = (matches: boolean, sentence: string): Verdict => ({ scheme: 'Standard Webhooks', signature, matches, sentence });
  const [version = '', base64, ...rest] = signature.split(',');
  if (base64 === undefined || rest.length > 0) {
    return verdict(false, 'it is not of the form v1,<base64>; several signatures stand with a space between them');
  }
  if (version === 'v1a') return verdict(false, 'it is an asymmetric signature (v1a), which the gateway does not make');
  if (version !== 'v1') return verdict(false, `its version ${version} is not v1`);
  const signed = Buffer.concat([Buffer.from(`${received.id}.${received.timestamp}.`), received.body]);
  const expected = createHmac('sha256', secret.key).update(signed).digest();
  if (base64 === expected.toString('base64')) return verdict(true, 'it was made with this secret of these bytes');
  // Receivers compare the texts.
  if (expected.equals(Buffer.from(base64, 'base64')))
    return verdict(false, 'it is right but written otherwise: v1 signatures are base64 with + and /, and = at the end');
  return verdict(false, nearMiss(base64, received, secret) ?? 'it was made with another secret, or of another id, timestamp or body');
}

function plainVerdict(signature: string, { body }: Received, secret: GivenSecret): Verdict {
  const verdict = (matches: boolean, sentence: string): Verdict => ({ scheme: 'plain HMAC', signature, matches, sentence });
  for (const hash of ['sha256', 'sha512'] as const) {
    for (const encoding of ['hex', 'base64'] as const) {
      const expected = createHmac(hash, secret.text).update(body).digest(encoding);
      const given = encoding === 'hex' ? signature.toLowerCase() : signature;
      if (given === expected)
        return verdict(true, `it is the ${encoding} of HMAC-${hash.toUpperCase()} of these bytes with the whole text of this secret`);
    }
  }
  const decoded = (['sha256', 'sha512'] as const).some((hash) =>
    (['hex', 'base64'] as const).some((encoding) => createHmac(hash, secret.key).update(body).digest(encoding) === signature),
  );
  if (decoded) return verdict(false, 'it was made with the decoded secret; the plain form takes the whole text, whsec_ included');
  return verdict(false, 'it was made with another secret, or of another body; while secrets rotate it is made with the newest one alone');
}

function timestampProblem(timestamp: string, toleranceMs: number, now: number): string | undefined {
  if (!/^\d+$/.test(timestamp)) return `the timestamp ${JSON.stringify(timestamp)} is not a number of seconds since 1970`;
  if (timestamp.length >= 13) return `the timestamp ${timestamp} looks like milliseconds; webhook-timestamp is in seconds`;
  const offMs = Number(timestamp) * 1000 - now;
  if (Math.abs(offMs) <= toleranceMs) return undefined;
  const side = offMs < 0 ? 'old' : 'ahead of this clock';
  return (
    `the timestamp is ${formatDuration(Math.abs(offMs))} ${side}, and a receiver allows ${formatDuration(toleranceMs)}; ` +
    'to look at a delivery of earlier, give a larger --tolerance'
  );
}
