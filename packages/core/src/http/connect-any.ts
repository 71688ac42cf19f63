import { lookup, type LookupAddress } from 'node:dns';
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

/** Resolves names as the machine does, and connects to any address. */
export function plainConnector(
  connectTimeoutMs: number,
  secureContext?: SecureContext,
): buildConnector.connector {
  const connect = watchedConnector(
    buildConnector({
      timeout: connectTimeoutMs,
      keepAlive: true,
      ...(secureContext ? { secureContext } : {}),
    }),
  );
  return (options, callback) => {
    // Inside of a proxy's tunnel, there is nothing to resolve.
    if (options.httpSocket) return connect(options, callback);
    lookup(options.hostname.replace(/^\[|\]$/g, ''), { all: true }, (error, addresses) => {
      if (error) callback(error, null);
      else connectToAny(connect, options, addresses, callback);
    });
  };
}
