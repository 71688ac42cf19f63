import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileReason } from '@gateway/core/errors';
import { unavailable, type ObjectStore } from './object-store.js';

/** Objects are files in a folder that only this user can read. */
export class FolderStore implements ObjectStore {
  constructor(readonly place: string) {}

  async put(key: string, body: Uint8Array): Promise<void> {
    const target = path.join(this.place, key);
    const temporary = `${target}.${process.pid}.tmp`;
    await this.#explained(async () => {
      await mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
      try {
        await write(temporary, body);
        await rename(temporary, target);
        await syncFolder(path.dirname(target));
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      }
    });
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#explained(() => ifPresent(readFile(path.join(this.place, key))));
  }

  async folders(folder: string): Promise<string[]> {
    const entries = await this.#explained(() =>
      ifPresent(readdir(path.join(this.place, folder), { withFileTypes: true })),
    );
    return (entries ?? []).flatMap((it) => (it.isDirectory() ? [it.name] : [])).sort();
  }

  close(): void {}

  async #explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw unavailable(this.place, fileReason(error), error);
    }
  }
}

async function ifPresent<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function write(file: string, body: Uint8Array): Promise<void> {
  const handle = await open(file, 'w', 0o600);
  try {
    await handle.writeFile(body);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Without this, a power failure could undo the rename after the rows were deleted. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
