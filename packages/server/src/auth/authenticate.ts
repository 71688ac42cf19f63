import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '@gateway/core/config';
import { maskOfApiKey, matchesApiKey } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';
import type { Log } from '@gateway/core/logging';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { listOrganisations, type ApiKeyRow, type OrganisationRow, type ProjectRow } from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';
import { MemoryKv, type Kv } from '@gateway/store/kv';
import type { KvFallback } from '../health/kv-fallback.js';
import type { ProcessCaller, ProcessCredentials } from './process-credentials.js';
import type { RecordCache } from './record-cache.js';

/** The sender of a request: a stored API key, or a credential of the process. */
export type Caller = ApiKeyRow | ProcessCaller;

interface Context {
  readonly credentials: ProcessCredentials;
  readonly logins: LoginGuard;
  readonly records: RecordCache;
  readonly database: Pick<Database, 'knex'>;
}

/** The sender of a request. Throws `unauthorized`, or `too_many_logins` for one that may be guessing. */
export async function authenticate(request: IncomingMessage, { credentials, logins, records }: Context): Promise<Caller> {
  const header = request.headers.authorization ?? '';
  const unauthorized = (reason: string) => new GatewayError('unauthorized', { reason, fix: credentials.how });
  if (header === '') throw unauthorized(credentials.basic ? 'the request has no credentials' : 'the request has no API key');
  const [, pair] = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header) ?? [];
  if (pair !== undefined && credentials.basic) {
    const text = Buffer.from(pair, 'base64').toString();
    const account: Account = { kind: 'basic', name: text.split(':', 1)[0]! };
    const caller = await logins(request, account, async () => credentials.ofBasic(text));
    if (!caller) throw unauthorized('the username or the password is wrong');
    return caller;
  }
  const [, key] = /^Bearer +(\S+)$/i.exec(header) ?? [];
  if (key === undefined) throw unauthorized(`the Authorization header is not of the form Bearer${credentials.basic ? ' or Basic' : ''}`);
  const mask = maskOfApiKey(key);
  const stored = async (known: string) => {
    const found = await records.apiKey(known);
    if (!found || !matchesApiKey(key, found.hash)) return undefined;
    if (found.revoked_at) throw unauthorized(`the API key gw_${known}_… was revoked`);
    if (found.row.expires_at && found.row.expires_at <= new Date()) throw unauthorized(`the API key gw_${known}_… has expired`);
    return found.row;
  };
  const account: Account = mask === undefined ? { kind: 'bearer', name: '' } : { kind: 'key', name: mask };
  const caller = await logins(
    request,
    account,
    async () => credentials.ofBearer(key) ?? (credentials.native && mask !== undefined ? stored(mask) : undefined),
  );
  if (caller) return caller;
  if (!credentials.native && mask !== undefined)
    throw unauthorized('this process does not accept the API keys of the database: server.auth.native is off');
  throw unauthorized(
    credentials.native && mask === undefined
      ? 'the Authorization header carries something that is not an API key of this gateway: those begin with gw_'
      : 'the API key is not known',
  );
}

/** The organisations that a caller may act for; throws `forbidden` for the key of a project. */
export async function organisationsOf(caller: Caller, { database, records }: Context): Promise<OrganisationRow[]> {
  switch (caller.type) {
    case 'personal':
      return records.organisations(caller.user_id);
    case 'process':
      return listOrganisations(database.knex);
    case 'project':
      throw new GatewayError('forbidden', { reason: 'this API key belongs to a project; only a personal key may do this' });
  }
}

/** The project of a path. Throws `forbidden`, or `not_found` also for projects in organisations of others. */
export async function reachProject(caller: Caller, projectId: string, context: Context): Promise<ProjectRow> {
  if (caller.type === 'project' && caller.project_id !== projectId) {
    throw new GatewayError('forbidden', { reason: `this API key belongs to the project ${caller.project_id} and reaches no other` });
  }
  const project = isId(projectId) ? await context.records.project(projectId) : undefined;
  if (!project || !(await isVisible(project, caller, context))) throw new GatewayError('not_found', { thing: 'project', id: projectId });
  return project;
}

async function isVisible(project: ProjectRow, caller: Caller, context: Context): Promise<boolean> {
  if (caller.type !== 'personal') return true;
  return (await organisationsOf(caller, context)).some(({ id }) => id === project.organisation_id);
}

/** Throws when there were too many; before that `tell` gets the state of the limit, if there is one. */
export type RequestLimit = (of: { readonly id: string }, tell?: (state: LimitState) => void) => Promise<void>;

export interface LimitState {
  /** Requests at once, after a while without any. */
  readonly limit: number;
  readonly remaining: number;
  /** Whole seconds until there are `limit` again. */
  readonly resetSeconds: number;
}

interface RequestLimitOptions {
  /** 0: unlimited. */
  readonly ratePerSecond: number;
  /** At once, after a while without any. */
  readonly burst?: number;
  readonly kv: KvFallback | undefined;
  readonly code?: 'too_many_requests' | 'too_many_tests' | 'too_many_function_tests';
}

/** Refusals are answered after this time, but only so many of them wait. */
const REFUSED_MS = 200;
const REFUSED_MAX = 100;

/** Limits the requests of each credential, or what else has an id. Servers count together in KV, or each on its own while it is unavailable. */
export function requestLimit({ ratePerSecond, burst, kv, code = 'too_many_requests' }: RequestLimitOptions): RequestLimit {
  if (ratePerSecond === 0) return () => Promise.resolve();
  const memory = new MemoryKv();
  let refused = 0;
  const limit = burst ?? ratePerSecond;
  return async ({ id }, tell) => {
    const bucket = `api:${id}`;
    const shared = await kv?.ask((it) => it.takeTokens(bucket, ratePerSecond, 1, burst));
    const { granted, left, waitMs } = shared?.answer ?? (await memory.takeTokens(bucket, ratePerSecond, 1, burst));
    tell?.({ limit, remaining: left, resetSeconds: Math.ceil((limit - left) / ratePerSecond) });
    if (granted > 0) return;
    // A client that repeats at once what was refused would occupy the server.
    if (refused < REFUSED_MAX) {
      refused++;
      await new Promise((resolve) => setTimeout(resolve, REFUSED_MS));
      refused--;
    }
    throw new GatewayError(code, { limit: ratePerSecond, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) });
  };
}

/** Whose credentials a request carries: a username, no name for a key of the process, or the mask of a stored key. */
export interface Account {
  readonly kind: 'basic' | 'bearer' | 'key';
  readonly name: string;
}

/** Runs `verify`, which returns undefined for wrong credentials, unless the client may be guessing: then throws `too_many_logins`. */
export type LoginGuard = <Found>(
  request: IncomingMessage,
  account: Account,
  verify: () => Promise<Found | undefined>,
) => Promise<Found | undefined>;

/** Failures that an address regains. */
const PER_SECOND = 1 / 60;
/** An account has so many more than one address: a client with a wrong password must not slow the others. */
const ACCOUNT_FACTOR = 10;
/** How long an account stays slow after a failure. */
const SLOW_MS = 60_000;
const DELAY_MS = 1_000;
/** Requests that wait at a time. */
const DELAYED_MAX = 50;
/** Credentials that were right are known to be in use for so long. */
const KNOWN_MS = 3_600_000;

/**
 * Locks out addresses, and slows down accounts, whose logins fail. Servers count failures together in KV, or each on its own while it is unavailable. An
 * account is never locked, since anyone could then lock out its owner.
 */
export function loginGuard(
  { auth: { max_failures: maxFailures }, trusted_proxies: proxies }: Config['server'],
  { key, kv, meter, log }: { key: Buffer; kv: KvFallback | undefined; meter: ActivatedPlugins['meter']; log: Log },
): LoginGuard {
  if (maxFailures === 0) return (_request, _account, verify) => verify();
  const isProxy = within(proxies);
  const memory = new MemoryKv();
  const digest = (...texts: string[]) => createHmac('sha256', key).update(texts.join(' ')).digest('hex');
  let delayed = 0;

  /** Counts a failure; returns the milliseconds until there is another, 0 if there is one now. Counted here first, before other requests run. */
  async function count(who: string, factor: number): Promise<number> {
    const take = (it: Kv) => it.takeTokens(`login:${who}`, factor * PER_SECOND, 1, factor * maxFailures - 1);
    const { waitMs } = await take(memory);
    return waitMs > 0 ? waitMs : ((await kv?.ask(take))?.answer.waitMs ?? 0);
  }

  async function failed(address: string, { kind, name }: Account, isForwarded: boolean): Promise<void> {
    meter.add('gateway_api_login_failures_total', { credential: kind, outcome: 'wrong' });
    const lockedMs = await count(digest('address', address), 1);
    if (lockedMs > 0 && !(await memory.get(`locked ${address}`))) {
      await memory.set(`locked ${address}`, String(Date.now() + lockedMs), { ttlMs: lockedMs });
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
        { credential: kind, ...(kind === 'key' ? { key: `gw_${name}_…` } : {}) },
        'Too many logins of one account have failed: logins from new addresses are delayed.',
      );
    await memory.set(`slow ${account}`, '', { ttlMs: SLOW_MS });
  }

  async function refuseLocked(address: string, { kind }: Account): Promise<void> {
    const until = await memory.get(`locked ${address}`);
    if (until !== undefined) throw refused(kind, `from ${address}`, Number(until) - Date.now());
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

  return async (request, account, verify) => {
    const { headers, socket } = request;
    const client = clientAddress(request, isProxy);
    const address = networkOf(client);
    const credential = `known ${digest('credential', address, headers.authorization ?? '')}`;
    const isKnown = (await memory.get(credential)) !== undefined;
    if (!isKnown) {
      await refuseLocked(address, account);
      await waitIfSlow(account);
    }
    // Stored keys cannot be guessed: one in use works on while another client of its address guesses. A password must not, or guessing it would go on.
    if (!isKnown || account.kind !== 'key') await refuseLocked(address, account);
    const caller = await verify();
    if (caller === undefined)
      await failed(address, account, headers['x-forwarded-for'] !== undefined && client === plain(socket.remoteAddress));
    else await memory.set(credential, '', { ttlMs: KNOWN_MS });
    return caller;
  };
}

/** The client of a request: read from the right, the first address of `X-Forwarded-For` that is no trusted proxy. What is left of it may be made up. */
function clientAddress({ headers, socket }: IncomingMessage, isProxy: (address: string) => boolean): string {
  let client = plain(socket.remoteAddress);
  for (const hop of String(headers['x-forwarded-for'] ?? '')
    .split(',')
    .reverse()) {
    const address = plain(hop);
    if (!isProxy(client) || isIP(address) === 0) break;
    client = address;
  }
  return client;
}

/** An address without port, brackets and zone, and an IPv4 address not in the form of IPv6. */
function plain(hop = ''): string {
  return hop
    .trim()
    .replace(/^\[(.*)\](:\d+)?$|^([\d.]+):\d+$/, '$1$3')
    .replace(/%.*$/, '')
    .replace(/^::ffff:(?=[\d.]+$)/i, '');
}

/** What counts as one address: of IPv6 the /64, of which a client has all. */
function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = '', tail = ''] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const [left, right] = [head, tail].map((it) => (it === '' ? [] : it.split(':'))) as [string[], string[]];
  const zeros = Array<string>(8 - left.length - right.length).fill('0');
  return `${[...left, ...zeros, ...right].slice(0, 4).join(':')}::/64`;
}

/** Whether an address is in one of these networks. */
function within(networks: readonly string[]): (address: string) => boolean {
  const family = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', length] = network.split('/');
    list.addSubnet(address, Number(length), family(address));
  }
  return (address) => isIP(address) !== 0 && list.check(address, family(address));
}
