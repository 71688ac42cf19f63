import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { SecureContext } from 'node:tls';
import { buildConnector } from 'undici';
import { watchedConnector } from './connection-use.js';
import { shortageOf } from './shortage.js';

/** https://www.rfc-editor.org/rfc/rfc8305#section-5 */
const NEXT_MS = 250;
/** Per connection. Each address has a socket of its own. */
const ADDRESSES_MAX = 6;
/** These describe this machine rather than the host, if another address failed differently. */
const UNROUTED = /^(ENETUNREACH|EHOSTUNREACH|EADDRNOTAVAIL|EAFNOSUPPORT)$/;

/**
 * Tries the addresses 250 ms apart or after a failure, and keeps the connection that opens first.
 * Each attempt lasts as long as `connect` allows, whereas Node.js ends all but the last after
 * `autoSelectFamilyAttemptTimeout`, so that hosts with a slow handshake are unreachable.
 */
export function connectToAny(
  connect: buildConnector.connector,
  options: buildConnector.Options,
  addresses: readonly LookupAddress[],
  callback: buildConnector.Callback,
): void {
  const rest = interleaved(addresses).slice(0, ADDRESSES_MAX);
  const errors: NodeJS.ErrnoException[] = [];
  let open = 0;
  let isSettled = false;
  let timer: NodeJS.Timeout | undefined;
  const settle = (...result: Parameters<buildConnector.Callback>) => {
    isSettled = true;
    clearTimeout(timer);
    callback(...result);
  };
  const next = () => {
    clearTimeout(timer);
    const address = rest.shift();
    if (address === undefined) return;
    open++;
    if (rest.length > 0) timer = setTimeout(next, NEXT_MS);
    const host = options.host ?? options.hostname;
    try {
      connect({ ...options, host, hostname: address }, ended);
    } catch (error) {
      ended(error as Error, null);
    }
  };
  const ended: buildConnector.Callback = (error, socket) => {
    open--;
    if (isSettled) return void socket?.destroy();
    if (socket) return settle(null, socket);
    errors.push(error);
    // The first attempt to reach the timeout ends the others, which began later.
    if (errors.at(-1)!.code === 'UND_ERR_CONNECT_TIMEOUT') return settle(error, null);
    if (rest.length > 0) next();
    else if (open === 0)
      settle(
        // An address that was not tried, for want of a port or descriptor, might have answered.
        errors.find((it) => shortageOf(it) !== undefined) ??
          errors.find(({ code = '' }) => !UNROUTED.test(code)) ??
          errors[0]!,
        null,
      );
  };
  next();
}

/** Alternates address families, because one may be unreachable. */
function interleaved(addresses: readonly LookupAddress[]): string[] {
  const first = addresses.filter(({ family }) => family === addresses[0]!.family);
  const other = addresses.filter((it) => !first.includes(it));
  return Array.from({ length: addresses.length }, (_, k) => [first[k], other[k]])
    .flat()
    .flatMap((it) => it?.address ?? []);
}

export type NetworksSetting =
  'delivery.allowed_networks' | 'source.allowed_networks' | 'oidc.allowed_networks';

export class RefusedAddressError extends Error {
  constructor(
    host: string,
    addresses: readonly string[],
    setting: NetworksSetting = 'delivery.allowed_networks',
  ) {
    super(
      `${host}${addresses.includes(host) ? '' : ` resolves to ${addresses.join(', ')}, which`} is in a private or reserved network. An operator can allow the network with ${setting}.`,
    );
    this.name = 'RefusedAddressError';
  }
}

/** At least one address, as `Names` returns. */
export type FindAddresses = (name: string) => Promise<LookupAddress[]>;

interface ConnectorOptions {
  /** Default: that of undici. */
  readonly connectTimeoutMs?: number;
  readonly secureContext?: SecureContext | undefined;
  readonly setting?: NetworksSetting;
  readonly ageMaxMs?: number | undefined;
}

/** Connects to exactly the checked address, to prevent DNS rebinding. */
export function guardedConnector(
  mayReach: (address: string) => boolean,
  find: FindAddresses,
  { connectTimeoutMs, secureContext, setting, ageMaxMs }: ConnectorOptions,
): buildConnector.connector {
  const connect = watchedConnector(
    buildConnector({
      ...(connectTimeoutMs !== undefined && { timeout: connectTimeoutMs }),
      ...(secureContext && { secureContext }),
    }),
    ageMaxMs,
  );
  return (options, callback) => {
    // Inside of a proxy's tunnel, there is nothing to resolve.
    if (options.httpSocket) return connect(options, callback);
    const host = options.hostname.replace(/^\[|\]$/g, '');
    if (isIP(host) !== 0) {
      if (mayReach(host)) connect(options, callback);
      else callback(new RefusedAddressError(host, [host], setting), null);
      return;
    }
    findReachable(host, mayReach, find, setting).then(
      (addresses) => connectToAny(connect, options, addresses, callback),
      (error: Error) => callback(error, null),
    );
  };
}

/** @throws RefusedAddressError if no address may be reached */
export async function findReachable(
  name: string,
  mayReach: (address: string) => boolean,
  find: FindAddresses,
  setting?: NetworksSetting,
): Promise<LookupAddress[]> {
  const addresses = await find(name);
  const reachable = addresses.filter(({ address }) => mayReach(address));
  if (reachable.length > 0) return reachable;
  throw new RefusedAddressError(
    name,
    addresses.map(({ address }) => address),
    setting,
  );
}

/** Resolves names as the machine does, and connects to any address. */
export function plainConnector(
  connectTimeoutMs: number,
  secureContext?: SecureContext,
): buildConnector.connector {
  const find: FindAddresses = (name) => lookup(name, { all: true });
  return guardedConnector(() => true, find, { connectTimeoutMs, secureContext });
}
