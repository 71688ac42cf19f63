import { PluginError, type CheckContext } from '@gateway/plugin';
import type { Connection } from './connection.js';
import { explain, placeOf } from './explain.js';
import { openClient, openQueue } from './queue.js';

/** The contract gives ten seconds. */
const DEADLINE_MS = 9_000;

/** Looks the queue up with these keys. Throws a `PluginError`. */
export async function check(connection: Connection, context: CheckContext): Promise<void> {
  const client = openClient(connection, { attempts: 2 });
  const looking = new AbortController();
  const abort = () => looking.abort();
  if (context.signal.aborted) abort();
  context.signal.addEventListener('abort', abort, { once: true });
  const timer = setTimeout(abort, DEADLINE_MS);
  try {
    await openQueue(client, connection.queue_name, looking.signal);
  } catch (error) {
    if (context.signal.aborted) throw context.signal.reason as Error;
    if (!looking.signal.aborted) throw explain(error, connection);
    throw new PluginError(`${placeOf(connection)} did not answer within ${DEADLINE_MS / 1000} seconds.`, {
      fix: 'Check endpoint and default_region, and that a firewall lets this machine reach it.',
      cause: error,
    });
  } finally {
    clearTimeout(timer);
    context.signal.removeEventListener('abort', abort);
    client.destroy();
  }
}
