import { PluginError, type CheckContext } from '@gateway/plugin';
import { explain, placeOf } from './explain.js';
import { openClient, openQueue, type Connection } from './queue.js';

/** The contract allows ten seconds. */
const DEADLINE_MS = 9_000;

/** Looks up the queue with these keys. Throws a `PluginError`. */
export async function check(connection: Connection, context: CheckContext): Promise<void> {
  const client = openClient(connection, { attempts: 2 });
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(DEADLINE_MS)]);
  try {
    await openQueue(client, connection.queue_name, signal);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!signal.aborted) throw explain(error, connection);
    throw new PluginError(`${placeOf(connection)} did not answer within ${DEADLINE_MS / 1000} seconds.`, {
      fix: 'Check endpoint and default_region, and that a firewall lets this machine reach it.',
      cause: error,
    });
  } finally {
    client.destroy();
  }
}
