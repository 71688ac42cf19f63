import type { LookupAddress, LookupOptions } from 'node:dns';
import { subscribe } from 'node:diagnostics_channel';
import http, { type IncomingMessage } from 'node:http';
import net, { isIP, Socket, type LookupFunction } from 'node:net';
import { guardedWork } from '@gateway/plugin';
import {
  getGlobalDispatcher,
  setGlobalDispatcher,
  type buildConnector,
  type Dispatcher,
} from 'undici';
import {
  findReachable,
  guardedConnector,
  RefusedAddressError,
  type FindAddresses,
  type NetworksSetting,
} from './connect-any.js';
import { LookupsBusyError, Names } from './names.js';
import { withinNetworks } from './network.js';
import { openAgent } from './proxy.js';

/**
 * From the registries https://www.iana.org/assignments/iana-ipv4-special-registry and
 * iana-ipv6-special-registry.
 */
const REFUSED_NETWORKS = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // An address of the Azure host, which serves virtual machine metadata.
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // The unspecified and loopback addresses, and the deprecated IPv4-compatible addresses.
  '::/96',
  '::ffff:0:0:0/96',
  '64:ff9b::/104',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
];

/**
 * `allowedNetworks` take precedence over `REFUSED_NETWORKS`.
 * @throws Error for an invalid CIDR block
 */
export function addressGuard(allowedNetworks: readonly string[]): (address: string) => boolean {
  const isRefused = withinNetworks(REFUSED_NETWORKS);
  const isAllowed = withinNetworks(allowedNetworks);
  return (address) => {
    const plain = embeddedIpv4(address) ?? address;
    return isIP(plain) !== 0 && (isAllowed(plain) || !isRefused(plain));
  };
}

/**
 * IPv4-mapped (::ffff:0:0/96) or NAT64 (64:ff9b::/96). Packets sent to the IPv6 address go to that
 * IPv4 address.
 */
function embeddedIpv4(address: string): string | undefined {
  if (isIP(address) !== 6) return undefined;
  const canonical = new URL(`http://[${address.replace(/%.*$/, '')}]`).hostname.slice(1, -1);
  const match = /^(?:::ffff:|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (!match) return undefined;
  const value = (parseInt(match[1] as string, 16) << 16) | parseInt(match[2] as string, 16);
  return [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.');
}

type Looked = Parameters<LookupFunction>[2];

function give(
  addresses: readonly LookupAddress[],
  { all, family }: LookupOptions,
  looked: Looked,
): void {
  const wanted = Number(String(family ?? 0).replace('IPv', ''));
  const fitting = addresses.filter((it) => wanted === 0 || it.family === wanted);
  const [first] = fitting;
  if (!first)
    looked(
      Object.assign(new Error(`There is no address of IPv${wanted}.`), { code: 'ENOTFOUND' }),
      '',
    );
  else if (all) looked(null, fitting);
  else looked(null, first.address, first.family);
}

/**
 * Checks all addresses of a host, because a proxy may choose any. Names that this machine cannot
 * resolve are left to the proxy's rules.
 */
export async function checkHost(
  host: string,
  mayReach: (address: string) => boolean,
  find: FindAddresses,
  setting?: NetworksSetting,
): Promise<void> {
  const unknown = (error: unknown) => {
    if (error instanceof LookupsBusyError) throw error;
    return [];
  };
  const addresses =
    isIP(host) === 0 ? (await find(host).catch(unknown)).map(({ address }) => address) : [host];
  if (!addresses.every(mayReach)) throw new RefusedAddressError(host, addresses, setting);
}

/** Concurrent, per source or connection test. */
const LOOKUPS_PER_SOURCE = 16;

interface Guard {
  readonly mayReach: (address: string) => boolean;
  readonly find: FindAddresses;
  readonly lookup: LookupFunction;
  readonly maxAnswerBytes: number;
  /** For `fetch` in guarded work. */
  readonly pools: Dispatcher;
}

const presentGuard = () => guardedWork.getStore() as Guard | undefined;

/**
 * Rejects if the current work may not reach the host. Call it before connecting to a proxy, which
 * chooses the address.
 */
export async function checkGuarded(host: string): Promise<void> {
  const guard = presentGuard();
  if (guard)
    await checkHost(
      host.replace(/^\[|\]$/g, ''),
      guard.mayReach,
      guard.find,
      'source.allowed_networks',
    );
}

/**
 * Connections opened by a source's work, or by anything it starts, are checked whichever library
 * opens them, including those to addresses that a broker returns. HTTP responses above
 * `maxAnswerBytes` are aborted. `asProcess` runs work without the guard.
 * @param allowedNetworks `source.allowed_networks`
 */
export function sourceGuard(
  allowedNetworks: readonly string[],
): <T>(maxAnswerBytes: number, work: () => T) => T {
  patchConnections();
  guardFetch();
  const mayReach = addressGuard(allowedNetworks);
  const names = new Names(LOOKUPS_PER_SOURCE);
  const lookups = (owner?: object) => {
    const find: FindAddresses = (name) => names.addresses(name, owner);
    const lookup: LookupFunction = (name, options, looked) =>
      void findReachable(name, mayReach, find, 'source.allowed_networks').then(
        (addresses) => give(addresses, options, looked),
        (error: NodeJS.ErrnoException) => looked(error, ''),
      );
    return { find, lookup };
  };
  const guards = new Map<number, Guard>();
  const guardOf = (maxAnswerBytes: number) => {
    const own = lookups();
    const connect = guardedConnector(mayReach, own.find, { setting: 'source.allowed_networks' });
    // Guard the connection even if other work opens it.
    const guarded: buildConnector.connector = (...given) =>
      guardedWork.run(presentGuard() ?? guard, () => connect(...given));
    const pools = openAgent({ connect: guarded, maxResponseSize: maxAnswerBytes });
    const guard: Guard = { mayReach, ...own, maxAnswerBytes, pools };
    guards.set(maxAnswerBytes, guard);
    return guard;
  };
  return (maxAnswerBytes, work) =>
    guardedWork.run(
      {
        ...(guards.get(maxAnswerBytes) ?? guardOf(maxAnswerBytes)),
        ...lookups({}),
      } satisfies Guard,
      work,
    );
}

type ConnectTarget = Partial<net.TcpNetConnectOpts & net.IpcNetConnectOpts>;
type GuardedRequest = http.ClientRequestArgs & { readonly isGuarded?: boolean };
/** The types of Node.js omit these internals. */
interface GuardedAgent extends http.Agent {
  addRequest(request: http.ClientRequest, options: GuardedRequest): void;
  getName(options?: GuardedRequest): string;
}
interface GuardedSocket extends Socket {
  connect(...args: unknown[]): this;
}
const { _normalizeArgs: normalizeArgs } = net as typeof net & {
  _normalizeArgs(args: unknown[]): [ConnectTarget, unknown];
};
const guardedSockets = new WeakMap<Socket, Guard>();
let isPatched = false;

/** `Socket.connect` opens every TCP and TLS connection in Node.js. */
function patchConnections(): void {
  if (isPatched) return;
  isPatched = true;
  const sockets: GuardedSocket = Socket.prototype;
  const { connect } = sockets;
  sockets.connect = function (...args) {
    const guard = presentGuard();
    if (!guard) return connect.apply(this, args);
    const [target, connected] = Array.isArray(args[0])
      ? (args[0] as [ConnectTarget, unknown])
      : normalizeArgs(args);
    const { host = 'localhost', path, port = 0 } = target;
    let given: object = { ...target, lookup: guard.lookup };
    if (path || (isIP(host) !== 0 && !guard.mayReach(host))) {
      const error = new RefusedAddressError(
        path || host,
        [path || host],
        'source.allowed_networks',
      );
      // Fail the lookup, so that the error is emitted after listeners are attached and in the state
      // that libraries expect.
      const lookup: LookupFunction = (_host, _options, found) => found(error, '');
      given = { ...target, host: 'refused', port, path: undefined, lookup };
    }
    guardedSockets.set(this, guard);
    return connect.call(this, given, ...(connected ? [connected] : []));
  };
  // Guarded work must not reuse the kept-alive connections of other work.
  const agents = http.Agent.prototype as GuardedAgent;
  const { addRequest, getName } = agents;
  agents.addRequest = function (request, options) {
    addRequest.call(this, request, presentGuard() ? { ...options, isGuarded: true } : options);
  };
  agents.getName = function (options) {
    return `${getName.call(this, options)}${options?.isGuarded ? ':guarded' : ''}`;
  };
  subscribe('http.client.response.finish', (message) =>
    limitAnswer((message as { response: IncomingMessage }).response),
  );
}

function limitAnswer(response: IncomingMessage): void {
  const guard = presentGuard() ?? guardedSockets.get(response.socket);
  if (!guard) return;
  const push = response.push.bind(response);
  let bytes = 0;
  response.push = (chunk: Buffer | null, encoding) => {
    bytes += chunk?.length ?? 0;
    if (bytes <= guard.maxAnswerBytes) return push(chunk, encoding);
    response.destroy(new Error(`The answer has more than ${guard.maxAnswerBytes} bytes.`));
    return false;
  };
}

let isFetchGuarded = false;

/**
 * Guarded work has its own pools for `fetch`, because shared pools open connections for any work. A
 * process-wide proxy takes precedence.
 */
export function guardFetch(): void {
  if (isFetchGuarded) return;
  isFetchGuarded = true;
  const shared = getGlobalDispatcher();
  const dispatch: Dispatcher['dispatch'] = (request, handler) =>
    (presentGuard()?.pools ?? shared).dispatch(request, handler);
  setGlobalDispatcher({ dispatch } as Dispatcher);
}
