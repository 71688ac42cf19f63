import { readdir } from 'node:fs/promises';
import type { SourcePlugin } from '@gateway/plugin';
import { explained, type Connection, type Settings } from './connection.js';
import { run } from './run.js';

const plugin: SourcePlugin<Connection, Settings> = {
  /** Called when a source is created or changed: tests once whether it could be read, and leaves nothing behind. */
  async check(connection, { signal }) {
    signal.throwIfAborted();
    await readdir(connection.folder).catch((error: unknown) => {
      throw explained(error, connection);
    });
  },
  run,
};

export default plugin;
