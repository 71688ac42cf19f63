import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  acknowledges,
  PluginError,
  whenAborted,
  type Message,
  type SourcePlugin,
} from '@gateway/plugin';

/** The connection of a source record, as `connection.json` describes it. A secret field has `"x-secret": true` there: it is sealed at rest. */
export interface Connection {
  readonly folder: string;
}

/** The settings of `settings.json`, by the part of their keys after `source.__NAME__.` */
export interface Settings {
  readonly poll_ms: number;
}

/**
 * The example: the files of a folder are the messages, in the order of their names. A message is acknowledged by deleting its file. Write a file under a name
 * that begins with a dot and rename it when it is whole.
 */
const plugin: SourcePlugin<Connection, Settings> = {
  /** Called when a source is created or changed: tests once whether it could be read, and leaves nothing behind. */
  async check({ folder }, { signal }) {
    signal.throwIfAborted();
    await readdir(folder).catch((error: unknown) => refuse(error, folder));
  },

  async run({ folder }, handle, context) {
    const { signal, settings } = context;
    const aborted = whenAborted(signal);
    // One reader of a folder does for all workers, each of which may have a window unsettled.
    const window = context.window * context.workers;
    // By name: what was handed over and has not settled. Waiting for it is all that the end has to do.
    const unsettled = new Map<string, Promise<void>>();
    // Messages that the gateway did not take (`later`) come again with the next run.
    const left = new Set<string>();
    const settle = async (message: Message) => {
      const name = message.coordinates;
      const outcome = await handle(message);
      // `force`: another agent reads the folder too, and may be first.
      if (acknowledges(outcome))
        await rm(join(folder, name), { force: true }).catch(() => left.add(name));
      else left.add(name);
      unsettled.delete(name);
    };
    try {
      await readdir(folder);
      context.report('reading');
      while (!signal.aborted) {
        const names = (await readdir(folder)).filter(
          (name) => !name.startsWith('.') && !unsettled.has(name) && !left.has(name),
        );
        for (const name of names.sort().slice(0, window - unsettled.size)) {
          const message = await messageOf(folder, name);
          if (signal.aborted) break;
          if (message) unsettled.set(name, settle(message));
        }
        // A full window waits for the first to settle: that is the back-pressure.
        if (unsettled.size >= window) await Promise.race([...unsettled.values(), aborted]);
        else await sleep(settings.poll_ms, undefined, { signal }).catch(() => undefined);
      }
    } catch (error) {
      refuse(error, folder);
    } finally {
      await Promise.all(unsettled.values());
    }
  },
};

export default plugin;

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

/** Throws an error of the file system as a sentence with what to change. */
function refuse(error: unknown, folder: string): never {
  const { code = '', message } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'it does not exist',
    ENOTDIR: 'it is no folder',
  };
  throw new PluginError(`The folder ${folder} cannot be read: ${reasons[code] ?? message}.`, {
    fix: 'Check folder.',
    cause: error,
  });
}
