import { createHmac, hash, type KeyObject, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import { networkOf } from '@gateway/core/http';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { TokenBuckets } from '@gateway/core/process';
import { type KvFallback, MemoryKv } from '@gateway/store/kv';
import { plain, type AddressReader } from './client-address.js';

export interface Account {
  /**
   * `key` and `session`: stored keys. `bearer`: a key of the process. `invitation`: the token that
   * accepts an invitation or sets a password. `oidc`: a provider's response. `source` and
   * `signature`: a password, key or signature of an HTTP source.
   */
  readonly kind:
    | 'basic'
    | 'bearer'
    | 'key'
    | 'session'
    | 'password'
    | 'invitation'
    | 'oidc'
    | 'source'
    | 'signature';
  /**
   * Failures count under this name: a username, an email address, the mask of a stored key, the id
   * of a source or, for `oidc`, the client's address. Empty for process keys and invitations.
   */
  readonly name: string;
  /**
   * Includes the account name. A credential that was recently correct is verified without delay.
   */
  readonly credential: string;
}

/**
 * These cannot be guessed, so a known one is not locked out: a key or a webhook provider keeps
 * working while another client guesses from the same address.
 */
const STORED: readonly Account['kind'][] = ['key', 'session', 'source', 'signature'];

/** Usernames are not logged, because one can be a misplaced password. */
function named(kind: Account['kind'], name: string) {
  if (!STORED.includes(kind)) return {};
  return kind === 'source' || kind === 'signature' ? { source: name } : { key: `gw_${name}_…` };
}
/**
 * Failures count only for their HTTP source, so that a provider with a wrong secret does not lock
 * out users with the same address.
 */
const OF_SOURCE: readonly Account['kind'][] = ['source', 'signature'];

export interface LoginGuard {
  /**
   * `verify` returns undefined for wrong credentials. Throws `too_many_logins` if the client could
   * be guessing.
   */
  check<Verified>(
    request: IncomingMessage,
    account: Account,
    verify: () => Promise<Verified | undefined>,
  ): Promise<Verified | undefined>;
  /**
   * Throws `too_many_logins`. Call before reading a body whose credentials can only be verified
   * afterwards.
   */
  refuseLocked(request: IncomingMessage, account: Account): Promise<void>;
}

/** Allowed failures. `factor` multiplies rate and capacity. */
interface Bucket {
  readonly name: string;
  readonly factor: number;
}

/** Allowed failures that an address regains per second. */
const PER_SECOND = 1 / 60;
/**
 * An account is allowed more failures than an address: a client with a wrong password must not slow
 * down the account's other clients.
 */
const ACCOUNT_FACTOR = 10;
const SLOW_MS = 60_000;
const DELAY_MS = 1_000;
/** Further ones are rejected. */
const DELAYED_MAX = 50;
/** Requests per address that wait for its running verifications. Further ones are rejected. */
const WAITING_MAX = 1_000;
const KNOWN_MS = 3_600_000;
const KNOWN_MAX = 10_000;

/**
 * Locks out addresses and slows down accounts after failed logins. Servers count together in KV, or
 * separately while it is unavailable. Accounts are never locked, because anyone could then lock out
 * an owner.
 */
export function loginGuard(
  { auth: { max_failures: maxFailures } }: Pick<Config['server'], 'auth'>,
  {
    key,
    kv,
    meter,
    log,
    addressOf,
  }: {
    key: KeyObject;
    kv: KvFallback | undefined;
    meter: ActivatedPlugins['meter'];
    log: Log;
    addressOf: AddressReader;
  },
): LoginGuard {
  if (maxFailures === 0)
    return { check: (_request, _account, verify) => verify(), refuseLocked: async () => {} };
  const memory = new MemoryKv();
  const failures = new TokenBuckets();
  /** Expiries by hash, on the monotonic clock, in LRU order. */
  const known = new Map<string, number>();
  /** The same on all servers. */
  const digest = (...texts: string[]) =>
    createHmac('sha256', key).update(texts.join(' ')).digest('hex');
  const secret = randomBytes(32).toString('hex');
  /** For use in memory only, where `hash` suffices: it takes a fifth of the time of an HMAC. */
  const nameOf = (address: string, credential: string) =>
    hash('sha256', `${secret} ${address} ${credential}`);
  let delayed = 0;
  const attempts = new Map<
    string,
    { users: number; running: number; readonly waiting: (() => void)[] }
  >();

  const rateOf = (factor: number) => ({
    perSecond: factor * PER_SECOND,
    burst: factor * maxFailures - 1,
  });

  /**
   * Reserves an allowed failure before verification, so that concurrent attempts cannot exceed the
   * limit. Further attempts wait until a reservation ends or their credential becomes known. The
   * returned function ends the reservation.
   */
  async function reserve(
    { name: bucket, factor }: Bucket,
    { kind }: Account,
    isKnown: () => boolean,
  ): Promise<() => void> {
    const its = attempts.get(bucket) ?? { users: 0, running: 0, waiting: [] };
    attempts.set(bucket, its);
    its.users++;
    const leave = () => {
      its.waiting.shift()?.();
      if (--its.users === 0) attempts.delete(bucket);
    };
    try {
      for (;;) {
        if (isKnown()) break;
        await refuseLocked(bucket, kind);
        const { left } = failures.take(digest('address', bucket), 0, rateOf(factor));
        if (its.running <= left) {
          its.running++;
          return () => {
            its.running--;
            leave();
          };
        }
        if (its.waiting.length >= WAITING_MAX) throw refused(kind, `from ${bucket}`, DELAY_MS);
        await new Promise<void>((resolve) => its.waiting.push(resolve));
      }
    } catch (error) {
      leave();
      throw error;
    }
    leave();
    return () => undefined;
  }

  /**
   * Returns the time until another failure is allowed. Counts in memory first, before other
   * requests run.
   */
  async function count(who: string, factor: number): Promise<number> {
    const rate = rateOf(factor);
    const { waitMs } = failures.take(who, 1, rate);
    if (waitMs > 0) return waitMs;
    const shared = await kv?.ask((it) =>
      it.takeTokens(`login:${who}`, rate.perSecond, 1, rate.burst),
    );
    return shared?.answer.waitMs ?? 0;
  }

  async function failed(
    { name: address, factor }: Bucket,
    { kind, name }: Account,
    isProxy: boolean,
  ): Promise<void> {
    meter.add('gateway_api_login_failures_total', { credential: kind, outcome: 'wrong' });
    const lockedMs = await count(digest('address', address), factor);
    if (lockedMs > 0 && !(await memory.get(`locked ${address}`))) {
      await memory.set(`locked ${address}`, String(performance.now() + lockedMs), {
        ttlMs: lockedMs,
      });
      const proxy = isProxy
        ? ' It is a proxy that server.trusted_proxies does not name, so all its clients are locked out.'
        : '';
      log.warn(
        { address, seconds: Math.ceil(lockedMs / 1000) },
        `Address locked out after too many failed logins.${proxy}`,
      );
    }
    const account = digest('account', kind, name);
    if ((await count(account, ACCOUNT_FACTOR)) === 0) return;
    if (!(await memory.get(`slow ${account}`)))
      log.warn(
        { credential: kind, ...named(kind, name) },
        'Too many failed logins for one account: delaying logins from new addresses.',
      );
    await memory.set(`slow ${account}`, '', { ttlMs: SLOW_MS });
  }

  async function refuseLocked(address: string, kind: Account['kind']): Promise<void> {
    const until = await memory.get(`locked ${address}`);
    if (until !== undefined)
      throw refused(kind, `from ${address}`, Number(until) - performance.now());
  }

  function refused(credential: Account['kind'], where: string, waitMs: number): GatewayError {
    meter.add('gateway_api_login_failures_total', { credential, outcome: 'locked_out' });
    return new GatewayError('too_many_logins', {
      where,
      retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
    });
  }

  async function waitIfSlow({ kind, name }: Account): Promise<void> {
    if ((await memory.get(`slow ${digest('account', kind, name)}`)) === undefined) return;
    if (delayed >= DELAYED_MAX) throw refused(kind, 'for this account', DELAY_MS);
    delayed++;
    await delay(DELAY_MS).finally(() => delayed--);
  }

  function remember(credential: string): void {
    known.delete(credential);
    known.set(credential, performance.now() + KNOWN_MS);
    const [oldest] = known.keys();
    if (known.size > KNOWN_MAX) known.delete(oldest!);
  }

  /**
   * A known signer has a separate, larger bucket, so that a client guessing from the same address
   * uses less of the provider's capacity.
   */
  function bucketOf(address: string, account: Account) {
    const credential = nameOf(address, account.credential);
    const isKnown = () => (known.get(credential) ?? 0) > performance.now();
    const name = OF_SOURCE.includes(account.kind)
      ? `${address} at source ${account.name}`
      : address;
    const isSigner = account.kind === 'signature' && isKnown();
    const bucket: Bucket = isSigner
      ? { name: `${name}, known`, factor: ACCOUNT_FACTOR }
      : { name, factor: 1 };
    return { bucket, credential, isKnown: isSigner ? () => false : isKnown };
  }

  return {
    async check(request, account, verify) {
      const { headers, socket } = request;
      const client = addressOf(request);
      const { bucket, credential, isKnown } = bucketOf(networkOf(client), account);
      let release: (() => void) | undefined;
      if (!isKnown()) {
        await refuseLocked(bucket.name, account.kind);
        if (account.kind !== 'signature') await waitIfSlow(account);
        release = await reserve(bucket, account, isKnown);
      }
      // Even a known password is rejected while the address is locked out: otherwise guessing could
      // continue.
      if (!STORED.includes(account.kind)) await refuseLocked(bucket.name, account.kind);
      try {
        const verified = await verify();
        if (verified !== undefined) remember(credential);
        else {
          const isProxy =
            headers['x-forwarded-for'] !== undefined && client === plain(socket.remoteAddress);
          await failed(bucket, account, isProxy);
        }
        return verified;
      } finally {
        release?.();
      }
    },
    async refuseLocked(request, account) {
      const { bucket } = bucketOf(networkOf(addressOf(request)), account);
      await refuseLocked(bucket.name, account.kind);
    },
  };
}
