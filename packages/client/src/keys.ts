/** Thrown if a request is not, or no longer, trusted. Respond to it with 400. */
export class VerificationError extends Error {
  override readonly name = 'VerificationError';
}

/** The public keys of an endpoint (RFC 7517), as at `…/endpoints/{id}/jwks.json`. */
export interface JsonWebKeySet {
  readonly keys: readonly {
    readonly kty?: string;
    readonly crv?: string;
    readonly x?: string;
    readonly kid?: string;
  }[];
}

/**
 * A secret (`whsec_…` or plain text) or public key (`whpk_…`) of the endpoint, several during a
 * rotation, a set of public keys, or what `remoteKeys` returns.
 */
export type VerificationKeys = string | readonly string[] | JsonWebKeySet | RemoteKeys;

/** Returns the keys; with `isMissing`, again if those it has may be old. */
export type RemoteKeys = (isMissing?: boolean) => Promise<JsonWebKeySet>;

export interface VerifyOptions {
  /** The accepted clock difference; 300 by default. Older requests may be replays. */
  readonly toleranceSeconds?: number;
  /** The current time in epoch milliseconds; the system clock by default. */
  readonly now?: number;
  /** The `signature_prefix` of the endpoint; `webhook` by default. */
  readonly prefix?: string;
}

/** How long fetched keys are used, and how long at least if a key is missing among them. */
const KEPT_MS = 300_000;
const KEPT_AT_LEAST_MS = 10_000;
const FETCH_MS = 10_000;

/**
 * Fetches the public keys of an endpoint when they are needed, and keeps them for five minutes.
 * Create it once, not for each request.
 * @param url such as `https://gateway.example.com/api/v1/projects/…/endpoints/…/jwks.json`
 */
export function remoteKeys(
  url: string,
  { fetch: get = fetch }: { readonly fetch?: typeof fetch } = {},
): RemoteKeys {
  let kept: { readonly keys: Promise<JsonWebKeySet>; readonly atMs: number } | undefined;
  return (isMissing = false) => {
    if (kept && Date.now() - kept.atMs < (isMissing ? KEPT_AT_LEAST_MS : KEPT_MS)) return kept.keys;
    const keys = read(url, get);
    const fresh = { keys, atMs: Date.now() };
    kept = fresh;
    keys.catch(() => kept === fresh && (kept = undefined));
    return keys;
  };
}

async function read(url: string, get: typeof fetch): Promise<JsonWebKeySet> {
  const response = await get(url, { signal: AbortSignal.timeout(FETCH_MS) });
  if (!response.ok) throw new Error(`No keys from ${url}: it answered ${response.status}.`);
  return (await response.json()) as JsonWebKeySet;
}

export interface VerificationKey {
  readonly id: string | undefined;
  readonly algorithm: 'hmac-sha256' | 'ed25519';
  readonly isSigned: (signature: string, content: Uint8Array<ArrayBuffer>) => Promise<boolean>;
}

/** Calls `check` with the keys, and again with fetched ones if it returned false. */
export async function anyKey(
  keys: VerificationKeys,
  check: (keys: readonly VerificationKey[]) => Promise<boolean>,
): Promise<void> {
  if (typeof keys === 'function') {
    const first = await keys();
    if (await check(await keysOf(first))) return;
    const second = await keys(true);
    if (second !== first && (await check(await keysOf(second)))) return;
  } else if (await check(await keysOf(keys))) return;
  throw new VerificationError('No signature of the request is by one of these keys.');
}

async function keysOf(given: Exclude<VerificationKeys, RemoteKeys>): Promise<VerificationKey[]> {
  if (typeof given === 'string' || isList(given))
    return Promise.all([given].flat().map((text) => keyOf(text)));
  const usable = given.keys.filter(({ kty, crv }) => kty === 'OKP' && crv === 'Ed25519');
  return Promise.all(
    usable.map(({ x = '', kid }) => {
      const base64 = x.replaceAll('-', '+').replaceAll('_', '/');
      return publicKey(fromBase64(base64), kid);
    }),
  );
}

function isList(given: readonly string[] | JsonWebKeySet): given is readonly string[] {
  return Array.isArray(given);
}

function keyOf(text: string): Promise<VerificationKey> {
  if (text === '') throw new TypeError('The secret is empty.');
  const [, kind, base64 = ''] = /^(whsec|whpk)_(.*)$/s.exec(text) ?? [];
  if (kind === undefined) return secretKey(new TextEncoder().encode(text));
  const bytes = fromBase64(base64);
  if (bytes.length === 0)
    throw new TypeError(`The ${kind === 'whsec' ? 'secret' : 'key'} after ${kind}_ is not base64.`);
  return kind === 'whsec' ? secretKey(bytes) : publicKey(bytes, undefined);
}

async function secretKey(bytes: Uint8Array<ArrayBuffer>): Promise<VerificationKey> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', bytes, algorithm, false, ['verify']);
  return {
    id: undefined,
    algorithm: 'hmac-sha256',
    isSigned: (signature, content) =>
      crypto.subtle.verify('HMAC', key, fromBase64(signature), content),
  };
}

async function publicKey(
  bytes: Uint8Array<ArrayBuffer>,
  id: string | undefined,
): Promise<VerificationKey> {
  if (bytes.length !== 32)
    throw new TypeError(`A public key has 32 bytes, and this one has ${bytes.length}.`);
  const key = await crypto.subtle.importKey('raw', bytes, 'Ed25519', false, ['verify']);
  return {
    id,
    algorithm: 'ed25519',
    isSigned: (signature, content) =>
      crypto.subtle.verify('Ed25519', key, fromBase64(signature), content),
  };
}

/** Decodes base64. Returns no bytes if invalid. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

export type GivenHeaders =
  Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** Several values are joined, as in RFC 9110, section 5.3. Undefined without the header. */
export function valueOf(headers: GivenHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const [, value] = Object.entries(headers).find(([it]) => it.toLowerCase() === name) ?? [];
  return value === undefined ? undefined : [value].flat().join(', ');
}

/** Undefined if the time is within the tolerance. */
export function ageProblem(
  seconds: number,
  { toleranceSeconds = 300, now = Date.now() }: VerifyOptions,
): VerificationError | undefined {
  const ageSeconds = Math.abs(now / 1000 - seconds);
  if (ageSeconds <= toleranceSeconds) return undefined;
  return new VerificationError(
    `The request is ${Math.round(ageSeconds)} seconds off: it may be a repetition, or the clock of this machine is wrong.`,
  );
}

export function bytesOf(body: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return typeof body === 'string' ? new TextEncoder().encode(body) : Uint8Array.from(body);
}

export function parsed<Payload>(body: string | Uint8Array): Payload {
  const text =
    typeof body === 'string' ? body : new TextDecoder('utf-8', { ignoreBOM: true }).decode(body);
  return JSON.parse(text) as Payload;
}
