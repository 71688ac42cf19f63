import { watch, type FSWatcher } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { fileReason, GatewayError } from '@gateway/core/errors';

/** Editors write a file in several steps, and replace it by another one: what comes this close is one change. */
const SETTLE_MS = 100;

/**
 * Calls back when one of the files was changed, replaced, or is there again. Their folders are watched, since a file that is replaced is another one.
 *
 * @returns what ends it
 * @throws GatewayError `wrong_use` when a folder cannot be watched
 */
export function watchFiles(files: readonly string[], onChange: () => void): () => void {
  const folders = new Map<string, Set<string>>();
  for (const file of files) {
    const path = resolve(file);
    const names = folders.get(dirname(path));
    if (names) names.add(basename(path));
    else folders.set(dirname(path), new Set([basename(path)]));
  }
  let timer: NodeJS.Timeout | undefined;
  const watchers = [...folders].map(([folder, names]) =>
    watched(folder, (name) => {
      // Some systems do not tell the name.
      if (name !== null && !names.has(name)) return;
      clearTimeout(timer);
      timer = setTimeout(onChange, SETTLE_MS);
    }),
  );
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}

function watched(folder: string, onEntry: (name: string | null) => void): FSWatcher {
  try {
    return watch(folder, (_, name) => onEntry(name));
  } catch (error) {
    throw new GatewayError('wrong_use', {
      sentence: `the folder ${folder} cannot be watched: ${fileReason(error)}`,
      fix: 'name files in folders that are there, or leave --watch away',
    });
  }
}
