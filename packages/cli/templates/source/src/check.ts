import { readdir } from 'node:fs/promises';
import type { CheckContext } from '@gateway/plugin';
import { explained, type Connection, type Settings } from './connection.js';

/** Called when a source is created or changed: looks once whether it could be read, and leaves nothing behind. */
export async function check(connection: Connection, { signal }: CheckContext<Settings>): Promise<void> {
  signal.throwIfAborted();
  try {
    await readdir(connection.folder);
  } catch (error) {
    throw explained(error, connection);
  }
}
