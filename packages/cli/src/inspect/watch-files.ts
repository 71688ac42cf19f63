import { watch, type FSWatcher } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { fileReason } from '@gateway/core/errors';
import { wrongUse } from '../app/flag-values.js';

/** Editors write a file in several steps: changes this close together are one. */
const SETTLE_MS = 100;

/**
 * Calls back when one of the files changes. Watches their folders, since editors replace a file by another one.
 *
 * @returns what ends it
 * @throws GatewayError `wrong_use` when a folder cannot be watched
 */
export function watchFiles(files: readonly string[], onChange: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const watchers = files.map((file) => {
    const path = resolve(file);
    return watched(dirname(path), (name) => {
      // Some systems do not tell the name.
      if (name !== null && name !== basename(path)) return;
      clearTimeout(timer);
      timer = setTimeout(onChange, SETTLE_MS);
    });
  });
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}

function watched(folder: string, onEntry: (name: string | null) => void): FSWatcher {
  try {
    return watch(folder, (_, name) => onEntry(name));
  } catch (error) {
    const fix = 'name files in existing folders, or omit --watch';
    throw wrongUse(`the folder ${folder} cannot be watched: ${fileReason(error)}`, fix);
  }
}
