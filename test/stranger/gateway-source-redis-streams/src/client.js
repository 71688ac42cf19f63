import { PluginError } from '@gateway/plugin';
import { Redis } from 'ioredis';

/** The limit for Redis to answer. */
const CONNECT_MS = 5_000;

/** Connects once, until the signal aborts; the gateway retries. */
export async function connect({ address, username, password }, signal) {
  const at = address.lastIndexOf(':');
  const client = new Redis({
    host: address.slice(0, at),
    port: Number(address.slice(at + 1)),
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let last;
  client.on('error', (error) => (last = error));
  // Redis can accept the connection and never answer: only disconnecting ends the wait then.
  const impatient = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)]);
  const leave = () => client.disconnect();
  impatient.addEventListener('abort', leave, { once: true });
  try {
    impatient.throwIfAborted();
    await client.connect();
    return client;
  } catch (error) {
    client.disconnect();
    throw explained(last ?? error, address);
  } finally {
    impatient.removeEventListener('abort', leave);
  }
}

/** Converts an error of Redis to one with a fix. */
export function explained(error, address) {
  if (error instanceof PluginError) return error;
  const { message } = error;
  // ioredis adds the failed command to its error: a login contains the password.
  const cause = new Error(message);
  if (/WRONGPASS|NOAUTH|NOPERM/.test(message)) {
    return new PluginError(`Redis at ${address} refused the user or the password.`, {
      fix: 'Check username and password.',
      cause,
    });
  }
  if (/WRONGTYPE/.test(message)) {
    return new PluginError(`The key is not a stream on Redis at ${address}.`, {
      fix: 'Check stream.',
      cause,
    });
  }
  return new PluginError(`Redis at ${address} does not answer: ${message}.`, {
    fix: 'Check address.',
    cause,
  });
}

/** Creates the consumer group at the beginning of the stream, unless it exists. */
export async function ensureGroup(client, { stream, group }) {
  await client.xgroup('CREATE', stream, group, '0', 'MKSTREAM').catch((error) => {
    if (!error.message.includes('BUSYGROUP')) throw error;
  });
}
