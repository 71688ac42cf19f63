import type { Log } from '@gateway/core/logging';
import type { Caller } from './process-credentials.js';

export interface KeyUse {
  record(caller: Caller): void;
  close(): Promise<void>;
}

const INTERVAL_MS = 60_000;
/** The maximum number of keys per write. Uses of any more keys are not recorded. */
const KEYS_MAX = 10_000;

/** Records when keys were last used, in one statement per minute. */
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
      log.debug({ error }, 'The last use of API keys could not be recorded.'),
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
