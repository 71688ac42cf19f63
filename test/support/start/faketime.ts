import fs from 'node:fs';
import path from 'node:path';
import { installed } from './packages.js';
import { Unavailable } from './unavailable.js';

/** The adjustable wall clock of a process. The monotonic clock is unaffected. */
export interface SetClock {
  readonly env: Readonly<Record<string, string>>;
  /** Sets the clock relative to the machine's, in seconds; takes effect within a second. */
  set(seconds: number): void;
}

/**
 * Creates a clock for Debian's `libfaketime`.
 * @param file holds the offset
 * @throws `Unavailable` if it cannot be installed
 */
export function setClock(file: string): SetClock {
  installed('faketime', ['faketime'], 'to set the clock of a process');
  const set = (seconds: number) => {
    fs.writeFileSync(`${file}.next`, `${seconds >= 0 ? '+' : ''}${seconds}\n`);
    fs.renameSync(`${file}.next`, file);
  };
  set(0);
  return {
    env: {
      LD_PRELOAD: library(),
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    },
    set,
  };
}

function library(): string {
  const folders = ['/usr/lib', '/usr/local/lib'].flatMap((root) =>
    fs.existsSync(root) ? [root, ...fs.readdirSync(root).map((name) => path.join(root, name))] : [],
  );
  const found = folders
    .map((folder) => path.join(folder, 'faketime', 'libfaketime.so.1'))
    .find((file) => fs.existsSync(file));
  if (found === undefined)
    throw new Unavailable('libfaketime.so.1 is not below /usr/lib or /usr/local/lib');
  return found;
}
