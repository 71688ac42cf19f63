import { createHmac, timingSafeEqual } from 'node:crypto';

const TOLERANCE_SECONDS = 300;

/**
 * Verifies a request as its receiver does, after the standard and without the code that signed it.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#verifying-webhook-authenticity
 *
 * @param secret `whsec_` and base64
 * @returns what is wrong with it; undefined when the signature is right
 */
export function signatureProblem(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: Uint8Array,
  secret: string,
  now = Date.now(),
): string | undefined {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => headers[name]);
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') {
    return 'it lacks webhook-id, webhook-timestamp or webhook-signature';
  }
  if (!/^\d+$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) {
    return `its webhook-timestamp is not within ${TOLERANCE_SECONDS / 60} minutes of now`;
  }
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  const isRight = signatures.split(' ').some((signature) => {
    const [version, base64 = ''] = signature.split(',');
    const given = Buffer.from(base64, 'base64');
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
  });
  return isRight ? undefined : 'its webhook-signature was not made with the secret that the inbox knows';
}
