import { readdir, readFile, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { acknowledges, type Handle, type Message, type SourceContext } from '@gateway/plugin';
import { explained, type Connection, type Settings } from './connection.js';

/**
 * The example: the files of a folder are the messages, in the order of their names. A message is acknowledged by deleting its file. Write a file under a name
 * that begins with a dot and rename it when it is whole.
 */
export async function run(connection: Connection, handle: Handle, context: SourceContext<Settings>): Promise<void> {
  const { signal, settings } = context;
  // One reader of a folder does for all workers, each of which may have a window unsettled.
  const window = context.window * context.workers;
  const { folder } = connection;
  // By name: what was handed over and has not settled. Waiting for it is all that the end has to do.
  const unsettled = new Map<string, Promise<void>>();
  // What the gateway did not take (`later`) comes again with the next run.
  const left = new Set<string>();
  try {
    let names = await readdir(folder);
    context.report('reading');
    while (!signal.aborted) {
      const waiting = names.filter((name) => !name.startsWith('.') && !unsettled.has(name) && !left.has(name)).sort();
      for (const name of waiting.slice(0, window - unsettled.size)) {
        const message = await messageOf(folder, name);
        if (signal.aborted) break;
        if (!message) continue;
        const settled = handle(message)
          .then((outcome) => (acknowledges(outcome) ? unlink(join(folder, name)) : void left.add(name)))
          // Another agent reads the folder too, and was first.
          .catch((error: NodeJS.ErrnoException) => {
            if (error.code !== 'ENOENT') left.add(name);
          })
          .finally(() => unsettled.delete(name));
        unsettled.set(name, settled);
      }
      // A full window waits for the first to settle: that is the back-pressure.
      if (unsettled.size >= window) await Promise.race([...unsettled.values(), aborted(signal)]);
      else await sleep(settings.poll_ms, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) names = await readdir(folder);
    }
  } catch (error) {
    throw explained(error, connection);
  } finally {
    await Promise.all(unsettled.values());
  }
}

/** A file as a message; undefined when it is gone. */
async function messageOf(folder: string, name: string): Promise<Message | undefined> {
  try {
    const path = join(folder, name);
    const [body, { mtimeMs }] = await Promise.all([readFile(path), stat(path)]);
    return { coordinates: name, timestamp: Math.floor(mtimeMs), body, headers: {} };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
