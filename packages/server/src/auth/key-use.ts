import type { Log } from '@gateway/core/logging';
import type { Caller } from './process-credentials.js';

export interface KeyUse {
  record(caller: Caller): void;
  close(): Promise<void>;
}

const INTERVAL_MS = 60_000;
/** Uses of any more keys per write are not recorded. */
const KEYS_MAX = 10_000;

/** One statement per minute. */
export function startKeyUse(
  write: (used: ReadonlyMap<string, Date>) => Promise<void>,
  log: Log,
): KeyUse {
  let used = new Map<string, Date>();
  let writing = Promise.resolve();
  const flush = () => {
    if (used.size === 0) return;
    const written = used;
    used = new Map();
    writing = write(written).catch((error: unknown) =>
      log.debug({ error }, 'Could not record when API keys were last used.'),
    );
  };
  const timer = setInterval(flush, INTERVAL_MS).unref();
  return {
    record(caller) {
      if (caller.type !== 'process' && (used.size < KEYS_MAX || used.has(caller.id)))
        used.set(caller.id, new Date());
    },
    async close() {
      clearInterval(timer);
      flush();
      await writing;
    },
  };
}
