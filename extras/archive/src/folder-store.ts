import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { fileReason } from '@gateway/core/errors';
import { unavailable, type ObjectStore } from './object-store.js';

const FIXES: Readonly<Record<string, string>> = {
  EROFS:
    'mount it writable, or name a folder that the service may write to with archive.url: with `ProtectSystem=strict`, systemd allows those of `StateDirectory=`, such as /var/lib/gateway, and of `ReadWritePaths=`',
  EACCES: 'allow the user of the gateway to write to the folder, or name another with archive.url',
  EPERM: 'allow the user of the gateway to write to the folder, or name another with archive.url',
  ENOSPC: 'free space on that disk, or name a folder on another with archive.url',
};

/** Objects are files in a folder that only this user can read. */
export class FolderStore implements ObjectStore {
  constructor(readonly place: string) {}

  async put(key: string, body: Uint8Array): Promise<void> {
    const target = path.join(this.place, key);
    // Readers of the folder leave out names that begin with a dot.
    const temporary = path.join(
      path.dirname(target),
      `.${path.basename(target)}.${process.pid}.tmp`,
    );
    await this.#explained(async () => {
      await makeFolder(path.dirname(target));
      // A folder of a day has one writer, so what else is there was left by a killed one.
      if (key.includes('/')) await removeTemporary(path.dirname(target));
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
      const fix = FIXES[(error as NodeJS.ErrnoException).code ?? ''];
      throw unavailable(this.place, fileReason(error), { fix, cause: error });
    }
  }
}

/**
 * Makes a folder and those above it. The `recursive` option of Node.js reports a read-only file
 * system as ENOENT.
 */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && path.dirname(folder) !== folder) {
      await makeFolder(path.dirname(folder));
      await makeFolder(folder);
    } else if (!(await stat(folder).catch(() => undefined))?.isDirectory()) throw error;
  }
}

async function removeTemporary(folder: string): Promise<void> {
  for (const name of await readdir(folder))
    if (name.endsWith('.tmp')) await rm(path.join(folder, name), { force: true });
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
