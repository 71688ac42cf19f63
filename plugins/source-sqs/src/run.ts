import { settles, type Handle, type SourceContext } from '@gateway/plugin';
import type { Connection } from './connection.js';
import { explain } from './explain.js';
import { tellLag } from './lag.js';
import { openClient, openQueue, type Queue } from './queue.js';
import { openSettlement } from './settlement.js';
import { Worker } from './worker.js';

const ATTEMPTS = 3;
/** After a failure, for what was handed over; after the last message, for what is still to be told to the queue. */
const GRACE_MS = 2_000;
const SETTLEMENT_MS = 5_000;

/** Reads the queue with `context.workers` pollers until the signal aborts; rejects with a `PluginError` when one of them cannot go on. */
export async function run(connection: Connection, handle: Handle, context: SourceContext): Promise<void> {
  context.report('connecting');
  const client = openClient(connection, { attempts: ATTEMPTS });
  // One poller that fails ends the others.
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
    const queue = await openQueue(client, connection.queue_name, stopping.signal);
    context.report('reading');
    const forgetLag = tellLag(queue, context);
    await read(queue, handle, context, stopping.signal, fail).finally(forgetLag);
  } catch (error) {
    if (context.signal.aborted) return;
    if (stopping.signal.aborted) throw error;
    fail(error);
  } finally {
    context.signal.removeEventListener('abort', stop);
    client.destroy();
  }
}

/** Until the signal aborts; then waits for what was handed over and tells it to the queue. */
async function read(
  queue: Queue,
  handle: Handle,
  context: SourceContext,
  signal: AbortSignal,
  fail: (error: unknown) => void,
): Promise<void> {
  const settlement = openSettlement(queue, context.log);
  const workers = Array.from({ length: context.workers }, () => new Worker(queue, settlement, handle, context.window));
  const extending = setInterval(() => workers.forEach((worker) => worker.extend()), queue.visibilitySeconds * 250);
  const ends = await Promise.allSettled(workers.map((worker) => worker.poll(signal).catch(fail)));
  const failed = ends.find((end) => end.status === 'rejected');
  const idle = Promise.all(workers.map((worker) => worker.idle()));
  await (failed ? settles(idle, GRACE_MS) : idle);
  clearInterval(extending);
  for (const worker of workers) worker.close();
  await settles(settlement.idle(), SETTLEMENT_MS);
  if (failed) throw failed.reason as Error;
}
