import type { Log } from '../logging/log.js';

/** Sets gauges before an exposition, which awaits its promise. */
export type Collector = () => void | Promise<void>;

export interface Collectors {
  /** Registers a collector; returns a function that removes it. */
  add(read: Collector): () => void;
  /** Runs all collectors. Never rejects. */
  run(): Promise<void>;
}

/** A collector that throws leaves its series as they were. Its first failure is logged, the next ones after a success. */
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
