import {
  ageProblem,
  anyKey,
  bytesOf,
  fromBase64,
  parsed,
  valueOf,
  VerificationError,
  type GivenHeaders,
  type VerificationKeys,
  type VerifyOptions,
} from './keys.js';

/** A request as the receiver got it. Behind a proxy, `url` is the URL that the gateway knows. */
export interface ReceivedRequest {
  /** `POST` by default. */
  readonly method?: string;
  /** The whole URL of the request. */
  readonly url: string;
  readonly headers: GivenHeaders;
  /** As received, text or bytes, not parsed JSON. */
  readonly body: string | Uint8Array;
}

export interface VerifyMessageOptions extends Omit<VerifyOptions, 'prefix'> {
  /** The components that a signature must cover; by default method, authority, path, query and digest. */
  readonly components?: readonly string[];
}

const COVERED = ['@method', '@authority', '@path', '@query', 'content-digest'];
const DIGESTS = { 'sha-256': 'SHA-256', 'sha-512': 'SHA-512' } as const;

/** A member of `signature-input` without parameters of components (RFC 9421, section 4.1). */
const INPUT =
  /(?:^|,)\s*([a-z*][\w.*-]*)=(\(((?:"[^"]*" ?)*)\)((?:;[a-z*][\w.*-]*=(?:"[^"]*"|[^;,"]+))*))/g;

/**
 * Verifies a delivery to an endpoint with a signature `rfc9421-…`: HTTP Message Signatures
 * (RFC 9421) with the digest of the body (RFC 9530).
 * @param keys the endpoint's secret, its public key or keys, or several during a rotation
 * @returns the parsed JSON of the body
 * @throws VerificationError if no key matches, or the request is too old or was changed
 */
export async function verifyMessage<Payload = unknown>(
  request: ReceivedRequest,
  keys: VerificationKeys,
  options: VerifyMessageOptions = {},
): Promise<Payload> {
  const { headers, body } = request;
  const [inputs, signatures] = ['signature-input', 'signature'].map((name) => {
    const value = valueOf(headers, name);
    if (value === undefined) throw new VerificationError(`The request has no header ${name}.`);
    return value;
  }) as [string, string];
  const { components = COVERED } = options;
  const signed = [...inputs.matchAll(INPUT)].map(([, label, input, names = '', rest = '']) => ({
    input,
    names: [...names.matchAll(/"([^"]*)"/g)].map(([, name]) => name!),
    created: Number(/;created=(\d+)/.exec(rest)?.[1]),
    keyId: /;keyid="([^"]*)"/.exec(rest)?.[1],
    algorithm: /;alg="([^"]*)"/.exec(rest)?.[1],
    signature: valueIn(signatures, label!) ?? '',
  }));
  const covering = signed.filter(({ names }) => components.every((name) => names.includes(name)));
  if (covering.length === 0)
    throw new VerificationError(`No signature covers ${components.join(', ')}.`);
  const problems = covering.map(({ created }) =>
    created > 0
      ? ageProblem(created, options)
      : new VerificationError('The signature does not say when it was created.'),
  );
  const recent = covering.filter((_, index) => problems[index] === undefined);
  if (recent.length === 0) throw problems[0]!;
  await requireDigest(valueOf(headers, 'content-digest') ?? '', bytesOf(body));
  await anyKey(keys, async (all) => {
    for (const { input, names, keyId, algorithm, signature } of recent) {
      const base = baseOf(request, names, input!);
      if (base === undefined) continue;
      for (const key of all) {
        if (algorithm !== undefined && algorithm !== key.algorithm) continue;
        if (key.id !== undefined && keyId !== undefined && key.id !== keyId) continue;
        if (await key.isSigned(signature, base)) return true;
      }
    }
    return false;
  });
  return parsed(body);
}

/** A byte sequence of a dictionary (RFC 9651), as in `signature` and `content-digest`. */
function valueIn(dictionary: string, name: string): string | undefined {
  const member = dictionary
    .split(',')
    .map((it) => it.trim())
    .find((it) => it.startsWith(`${name}=:`) && it.endsWith(':'));
  return member?.slice(name.length + 2, -1);
}

async function requireDigest(header: string, body: Uint8Array<ArrayBuffer>): Promise<void> {
  const given = Object.entries(DIGESTS).flatMap(([name, algorithm]) => {
    const value = valueIn(header, name);
    return value === undefined ? [] : [{ algorithm, value: fromBase64(value) }];
  });
  if (given.length === 0)
    throw new VerificationError('The header content-digest has no sha-256 and no sha-512.');
  for (const { algorithm, value } of given) {
    const digest = new Uint8Array(await crypto.subtle.digest(algorithm, body));
    if (digest.length !== value.length || digest.some((byte, index) => byte !== value[index]))
      throw new VerificationError('The body is not the one of the header content-digest.');
  }
}

/** The signature base (RFC 9421, section 2.5). Undefined if the request lacks a component. */
function baseOf(
  { method = 'POST', url: text, headers }: ReceivedRequest,
  names: readonly string[],
  input: string,
): Uint8Array<ArrayBuffer> | undefined {
  const url = new URL(text);
  const derived: Readonly<Record<string, string>> = {
    '@method': method.toUpperCase(),
    '@authority': url.host,
    '@scheme': url.protocol.slice(0, -1),
    '@target-uri': url.href,
    '@request-target': url.pathname + url.search,
    '@path': url.pathname,
    '@query': url.search || '?',
  };
  let base = '';
  for (const name of names) {
    const value = name.startsWith('@') ? derived[name] : valueOf(headers, name);
    if (value === undefined) return undefined;
    base += `"${name}": ${value.trim()}\n`;
  }
  return new TextEncoder().encode(`${base}"@signature-params": ${input}`);
}
