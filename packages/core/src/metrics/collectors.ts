import type { Log } from '../logging/log.js';

/** Sets gauges before they are shown. Whoever wants them waits for its promise, if it returns one. */
export type Collector = () => void | Promise<void>;

/** What reads values of the moment before they are shown. */
export interface Collectors {
  /** Registers a reader, and returns what removes it. */
  add(read: Collector): () => void;
  /** Runs all collectors. Never rejects. */
  run(): Promise<void>;
}

/** A reader that throws leaves its series as they were. It is logged when that begins, and not again before it has succeeded. */
export function createCollectors(log: Pick<Log, 'warn'>): Collectors {
  const collectors = new Set<() => Promise<void>>();
  return {
    add(read) {
      const reader = guarded(read, log);
      collectors.add(reader);
      return () => void collectors.delete(reader);
    },
    async run() {
      await Promise.all([...collectors].map((read) => read()));
    },
  };
}

function guarded(read: Collector, log: Pick<Log, 'warn'>): () => Promise<void> {
  let failing = false;
  return async () => {
    try {
      await read();
      failing = false;
    } catch (error) {
      if (!failing) log.warn({ error }, 'Metrics of the moment could not be read; they are shown as they were.');
      failing = true;
    }
  };
}
