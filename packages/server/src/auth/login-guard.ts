import { createHmac, hash, type KeyObject, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import { networkOf } from '@gateway/core/http';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { MemoryKv, type Kv } from '@gateway/store/kv';
import type { KvFallback } from '../health/kv-fallback.js';
import { plain, type AddressReader } from './client-address.js';

/** Whose credentials a request carries. */
export interface Account {
  /**
   * `key` and `session` are stored keys; `bearer` is a key of the process; `password` a login, `invitation` the acceptance of one, `oidc` what a provider has answered;
   * `source` is a password or key of an HTTP source, `signature` its signatures.
   */
  readonly kind: 'basic' | 'bearer' | 'key' | 'session' | 'password' | 'invitation' | 'oidc' | 'source' | 'signature';
  /** The username or email address, the mask of a stored key, the id of a source, or nothing for a key of the process. */
  readonly name: string;
  /** The credential itself, with its account: a known one is let through at once. */
  readonly credential: string;
}

/** Stored keys and signatures cannot be guessed: one in use works on while another client of its address guesses. So does a provider, which does not know of the guesses. */
const STORED: readonly Account['kind'][] = ['key', 'session', 'source', 'signature'];
/** Failures at a source count there alone: a provider with a wrong secret locks no person of its address out. */
const OF_SOURCE: readonly Account['kind'][] = ['source', 'signature'];

export interface LoginGuard {
  /** Runs `verify`, which returns undefined for wrong credentials, unless the client may be guessing: then throws `too_many_logins`. */
  <Found>(request: IncomingMessage, account: Account, verify: () => Promise<Found | undefined>): Promise<Found | undefined>;
  /** Throws `too_many_logins` if the address is locked out, for what is verified only after the body was read. */
  refuseLocked(request: IncomingMessage, account: Account): Promise<void>;
}

type Refusal = Pick<LoginGuard, 'refuseLocked'>;
type Guard = <Found>(request: IncomingMessage, account: Account, verify: () => Promise<Found | undefined>) => Promise<Found | undefined>;

/** Where failures count, and how many times more than usual it has. */
interface Place {
  readonly name: string;
  readonly factor: number;
}

/** Failures that an address regains. */
const PER_SECOND = 1 / 60;
/** An account has so many more than one address: a client with a wrong password must not slow the others. */
const ACCOUNT_FACTOR = 10;
/** How long an account stays slow after a failure. */
const SLOW_MS = 60_000;
const DELAY_MS = 1_000;
/** Requests that wait at a time. */
const DELAYED_MAX = 50;
/** Requests of one address that wait for others of it to be verified. */
const WAITING_MAX = 1_000;
/** Credentials that were right are known to be in use for so long. */
const KNOWN_MS = 3_600_000;
const KNOWN_MAX = 10_000;

/**
 * Locks out addresses, and slows down accounts, whose logins fail. Servers count failures together in KV, or each on its own while it is unavailable. An
 * account is never locked, since anyone could then lock out its owner.
 */
export function loginGuard(
  { auth: { max_failures: maxFailures } }: Pick<Config['server'], 'auth'>,
  {
    key,
    kv,
    meter,
    log,
    addressOf,
  }: { key: KeyObject; kv: KvFallback | undefined; meter: ActivatedPlugins['meter']; log: Log; addressOf: AddressReader },
): LoginGuard {
  if (maxFailures === 0) return Object.assign<Guard, Refusal>((_request, _account, verify) => verify(), { refuseLocked: async () => {} });
  const memory = new MemoryKv();
  /** Until when credentials that were right are known, by their names; the least recently used first. */
  const known = new Map<string, number>();
  /** Names in KV, the same in every server. */
  const digest = (...texts: string[]) => createHmac('sha256', key).update(texts.join(' ')).digest('hex');
  const secret = randomBytes(32).toString('hex');
  /** Names in the memory of this process. Asked for by every request, so it is one call, which takes a fifth of the time of an HMAC. */
  const nameOf = (address: string, credential: string) => hash('sha256', `${secret} ${address} ${credential}`);
  let delayed = 0;
  /** By place: attempts that are being verified, and those that wait for them. */
  const attempts = new Map<string, { users: number; running: number; readonly waiting: (() => void)[] }>();

  const takeFailures = (it: Kv, who: string, factor: number, wanted: number) =>
    it.takeTokens(`login:${who}`, factor * PER_SECOND, wanted, factor * maxFailures - 1);

  /**
   * Reserves one of the failures that a place has left, before anything is verified: of many attempts at once no more are verified than may fail. The others wait, and are
   * not attempts any more when their credential has become known. Returns what gives the place back.
   */
  async function reserve({ name: place, factor }: Place, { kind }: Account, isKnown: () => boolean): Promise<() => void> {
    const its = attempts.get(place) ?? { users: 0, running: 0, waiting: [] };
    attempts.set(place, its);
    its.users++;
    const leave = () => {
      its.waiting.shift()?.();
      if (--its.users === 0) attempts.delete(place);
    };
    try {
      for (;;) {
        if (isKnown()) break;
        await refuseLocked(place, kind);
        const { left } = await takeFailures(memory, digest('address', place), factor, 0);
        if (its.running <= left) {
          its.running++;
          return () => {
            its.running--;
            leave();
          };
        }
        if (its.waiting.length >= WAITING_MAX) throw refused(kind, `from ${place}`, DELAY_MS);
        await new Promise<void>((resolve) => its.waiting.push(resolve));
      }
    } catch (error) {
      leave();
      throw error;
    }
    leave();
    return () => undefined;
  }

  /** Counts a failure; returns the milliseconds until there is another, 0 if there is one now. Counted here first, before other requests run. */
  async function count(who: string, factor: number): Promise<number> {
    const take = (it: Kv) => takeFailures(it, who, factor, 1);
    const { waitMs } = await take(memory);
    return waitMs > 0 ? waitMs : ((await kv?.ask(take))?.answer.waitMs ?? 0);
  }

  async function failed({ name: address, factor }: Place, { kind, name }: Account, isForwarded: boolean): Promise<void> {
    meter.add('gateway_api_login_failures_total', { credential: kind, outcome: 'wrong' });
    const lockedMs = await count(digest('address', address), factor);
    if (lockedMs > 0 && !(await memory.get(`locked ${address}`))) {
      await memory.set(`locked ${address}`, String(performance.now() + lockedMs), { ttlMs: lockedMs });
      const proxy = isForwarded ? ' It is a proxy that server.trusted_proxies does not name, so all its clients are locked out.' : '';
      log.warn(
        { address, seconds: Math.ceil(lockedMs / 1000) },
        `Too many logins from this address have failed: it is locked out.${proxy}`,
      );
    }
    const account = digest('account', kind, name);
    if ((await count(account, ACCOUNT_FACTOR)) === 0) return;
    // A username may be a password in the wrong place.
    if (!(await memory.get(`slow ${account}`)))
      log.warn(
        { credential: kind, ...(STORED.includes(kind) ? { key: `gw_${name}_…` } : {}) },
        'Too many logins of one account have failed: logins from new addresses are delayed.',
      );
    await memory.set(`slow ${account}`, '', { ttlMs: SLOW_MS });
  }

  async function refuseLocked(address: string, kind: Account['kind']): Promise<void> {
    const until = await memory.get(`locked ${address}`);
    if (until !== undefined) throw refused(kind, `from ${address}`, Number(until) - performance.now());
  }

  function refused(credential: Account['kind'], where: string, waitMs: number): GatewayError {
    meter.add('gateway_api_login_failures_total', { credential, outcome: 'locked_out' });
    return new GatewayError('too_many_logins', { where, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) });
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

  /** Where a request counts. An address whose signatures were right has a place of its own: a guesser behind it uses up less of what the provider needs. */
  function placeOf(address: string, account: Account) {
    const credential = nameOf(address, account.credential);
    const isKnown = () => (known.get(credential) ?? 0) > performance.now();
    const name = OF_SOURCE.includes(account.kind) ? `${address} at source ${account.name}` : address;
    const isSigner = account.kind === 'signature' && isKnown();
    const place: Place = isSigner ? { name: `${name}, known`, factor: ACCOUNT_FACTOR } : { name, factor: 1 };
    return { place, credential, isKnown: isSigner ? () => false : isKnown };
  }

  const guard: Guard = async (request, account, verify) => {
    const { headers, socket } = request;
    const client = addressOf(request);
    const { place, credential, isKnown } = placeOf(networkOf(client), account);
    let release: (() => void) | undefined;
    if (!isKnown()) {
      await refuseLocked(place.name, account.kind);
      if (account.kind !== 'signature') await waitIfSlow(account);
      release = await reserve(place, account, isKnown);
    }
    // A known password is refused too, or guessing it would go on.
    if (!STORED.includes(account.kind)) await refuseLocked(place.name, account.kind);
    try {
      const caller = await verify();
      if (caller === undefined)
        await failed(place, account, headers['x-forwarded-for'] !== undefined && client === plain(socket.remoteAddress));
      else remember(credential);
      return caller;
    } finally {
      release?.();
    }
  };
  return Object.assign<Guard, Refusal>(guard, {
    async refuseLocked(request, account) {
      const { place } = placeOf(networkOf(addressOf(request)), account);
      await refuseLocked(place.name, account.kind);
    },
  });
}
