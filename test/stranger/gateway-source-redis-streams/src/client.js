import { PluginError } from '@gateway/plugin';
import { Redis } from 'ioredis';

/** A Redis that has not answered by then never will. */
const CONNECT_MS = 5_000;

/** Connects once, until the signal aborts; the gateway is who tries again. */
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
  // Redis may take the connection and say nothing: only letting go of it ends the wait then.
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

/** An error of Redis with what to change. */
export function explained(error, address) {
  if (error instanceof PluginError) return error;
  const { message } = error;
  // ioredis keeps the command that failed in its error: that of a login has the password.
  const cause = new Error(message);
  if (/WRONGPASS|NOAUTH|NOPERM/.test(message)) {
    return new PluginError(`Redis at ${address} refused the user or the password.`, { fix: 'Check username and password.', cause });
  }
  if (/WRONGTYPE/.test(message)) {
    return new PluginError(`The key is not a stream on Redis at ${address}.`, { fix: 'Check stream.', cause });
  }
  return new PluginError(`Redis at ${address} does not answer: ${message}.`, { fix: 'Check address.', cause });
}

/** Makes the consumer group, at the beginning of the stream, when it is not there. */
export async function ensureGroup(client, { stream, group }) {
  await client.xgroup('CREATE', stream, group, '0', 'MKSTREAM').catch((error) => {
    if (!error.message.includes('BUSYGROUP')) throw error;
  });
}
