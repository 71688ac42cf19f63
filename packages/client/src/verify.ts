import {
  ageProblem,
  anyKey,
  bytesOf,
  parsed,
  valueOf,
  VerificationError,
  type GivenHeaders,
  type VerificationKeys,
  type VerifyOptions,
} from './keys.js';

const ALGORITHMS = { v1: 'hmac-sha256', v1a: 'ed25519' } as const;

/**
 * Verifies the signature of a delivery to an endpoint with the signature `hmac` or `ed25519`
 * (Standard Webhooks).
 * @param body the body as received, text or bytes, not parsed JSON
 * @param keys the endpoint's secret or public key, or several during a rotation
 * @returns the parsed JSON of the body
 * @throws VerificationError if no key matches or the request is too old
 */
export async function verify<Payload = unknown>(
  body: string | Uint8Array,
  headers: GivenHeaders,
  keys: VerificationKeys,
  options: VerifyOptions = {},
): Promise<Payload> {
  const { prefix = 'webhook' } = options;
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((part) =>
    required(headers, `${prefix}-${part}`),
  ) as [string, string, string];
  if (!/^\d+$/.test(timestamp))
    throw new VerificationError(`The header ${prefix}-timestamp is not a number of seconds.`);
  const problem = ageProblem(Number(timestamp), options);
  if (problem) throw problem;
  const content = bytesOf(body);
  const start = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(start.length + content.length);
  signed.set(start);
  signed.set(content, start.length);
  await anyKey(keys, async (all) => {
    for (const signature of signatures.split(' ')) {
      const [version, base64 = ''] = signature.split(',');
      const algorithm = ALGORITHMS[version as keyof typeof ALGORITHMS];
      for (const key of all)
        if (key.algorithm === algorithm && (await key.isSigned(base64, signed))) return true;
    }
    return false;
  });
  return parsed(body);
}

function required(headers: GivenHeaders, name: string): string {
  const value = valueOf(headers, name);
  if (!value) throw new VerificationError(`The request has no header ${name}.`);
  return value;
}
