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

/**
 * The connection of a source, described by `connection.json`. A secret field has `"x-secret": true`
 * there, so that the gateway stores it encrypted.
 */
export interface Connection {
  readonly folder: string;
}

/** The settings in `settings.json`, by the part of their keys after `source.__NAME__.`. */
export interface Settings {
  readonly poll_ms: number;
}

/**
 * An example source that reads each file in a folder as a message, in order of file name.
 * Acknowledging a message deletes its file. To send a message, write a file whose name starts with a
 * dot, then rename it once it is complete.
 */
const plugin: SourcePlugin<Connection, Settings> = {
  /**
   * Called when a source is created or changed. Checks whether the source can be read, and leaves
   * no resources open.
   */
  async check({ folder }, { signal }) {
    signal.throwIfAborted();
    await readdir(folder).catch((error: unknown) => refuse(error, folder));
  },

  async run({ folder }, handle, context) {
    const { signal, settings } = context;
    const aborted = whenAborted(signal);
    // One reader serves all workers, each with a whole window of unsettled messages.
    const window = context.window * context.workers;
    // By name. The run waits for them before it ends.
    const unsettled = new Map<string, Promise<void>>();
    // Not acknowledged, such as those that settled as `later`: the next run reads them again.
    const left = new Set<string>();
    const settle = async (message: Message) => {
      const name = message.coordinates;
      const outcome = await handle(message);
      // `force`: another agent that reads the folder may have deleted it first.
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
        // Back-pressure: if the window is full, wait until a message settles.
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

/** Undefined if the file no longer exists. */
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
