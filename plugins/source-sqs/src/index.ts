import {
  PluginError,
  settles,
  type Advice,
  type CheckContext,
  type Handle,
  type SourceContext,
  type SourcePlugin,
} from '@gateway/plugin';
import { explain, placeOf } from './explain.js';
import { reportLag, Poller } from './poller.js';
import {
  named,
  openClient,
  openQueue,
  type Connection,
  type Queue,
  type Settings,
} from './queue.js';
import { openSettlement } from './settlement.js';

export type { Connection } from './queue.js';

const plugin: SourcePlugin<Connection, Settings> = { check, run };

export default plugin;

/** The contract allows ten seconds. */
const CHECK_DEADLINE_MS = 9_000;
const ATTEMPTS = 3;
/** For messages in flight after a failure. */
const GRACE_MS = 2_000;
/** For the requests that delete or release messages, after the last message has settled. */
const SETTLEMENT_MS = 5_000;

/**
 * Resolves with advice if the queue moves messages to its dead-letter queue after a single receipt.
 * @throws PluginError if the queue cannot be read
 */
async function check(given: Connection, context: CheckContext<Settings>): Promise<Advice | void> {
  const connection = named(given);
  const client = openClient(connection, context.settings, { attempts: 2 });
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(CHECK_DEADLINE_MS)]);
  try {
    return (await openQueue(client, connection, signal)).advice;
  } catch (error) {
    context.signal.throwIfAborted();
    if (!signal.aborted) throw explain(error, connection);
    throw new PluginError(
      `${placeOf(connection)} did not answer within ${CHECK_DEADLINE_MS / 1000} seconds.`,
      {
        fix: 'Check endpoint and default_region, and that a firewall lets this machine reach it.',
        cause: error,
      },
    );
  } finally {
    client.destroy();
  }
}

/** With `context.workers` pollers. Rejects with a `PluginError` if a poller fails. */
async function run(
  given: Connection,
  handle: Handle,
  context: SourceContext<Settings>,
): Promise<void> {
  context.report('connecting');
  const connection = named(given);
  const client = openClient(connection, context.settings, { attempts: ATTEMPTS });
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  if (context.signal.aborted) stop();
  context.signal.addEventListener('abort', stop, { once: true });
  const fail = (error: unknown) => {
    stop();
    const explained = explain(error, connection);
    context.report('failing', `${explained.message} ${explained.fix}`);
    throw explained;
  };
  try {
    const queue = await openQueue(client, connection, stopping.signal);
    const { advice } = queue;
    context.report('reading', advice && `${advice.message} ${advice.fix}`);
    const stopLag = reportLag(queue, context);
    await read(queue, handle, context, stopping.signal, fail).finally(stopLag);
  } catch (error) {
    if (context.signal.aborted) return;
    if (stopping.signal.aborted) throw error;
    fail(error);
  } finally {
    context.signal.removeEventListener('abort', stop);
    client.destroy();
  }
}

/**
 * After the abort, waits until every message has settled and was deleted from the queue or
 * released.
 */
async function read(
  queue: Queue,
  handle: Handle,
  context: SourceContext,
  signal: AbortSignal,
  fail: (error: unknown) => void,
): Promise<void> {
  const settlement = openSettlement(queue, context.log);
  const pollers = Array.from(
    { length: context.workers },
    () => new Poller(queue, settlement, handle, context.window),
  );
  const extending = setInterval(
    () => pollers.forEach((poller) => poller.extend()),
    queue.visibilitySeconds * 250,
  );
  const ends = await Promise.allSettled(pollers.map((poller) => poller.poll(signal).catch(fail)));
  const failed = ends.find((end) => end.status === 'rejected');
  const idle = Promise.all(pollers.map((poller) => poller.idle()));
  await (failed ? settles(idle, GRACE_MS) : idle);
  clearInterval(extending);
  for (const poller of pollers) poller.close();
  await settles(settlement.idle(), SETTLEMENT_MS);
  if (failed) throw failed.reason as Error;
}
