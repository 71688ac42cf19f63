import type { Log } from '../logging/log.js';

/** Sets gauges before an exposition, which awaits its promise. */
export type Collector = () => void | Promise<void>;

export type Collectors = ReturnType<typeof createCollectors>;

/** A collector that throws leaves its series as they were. Its first failure is logged, the next ones after a success. */
export function createCollectors(log: Pick<Log, 'warn'>) {
  const collectors = new Set<() => Promise<void>>();
  return {
    /** Registers a collector; returns a function that removes it. */
    add(read: Collector): () => void {
      let failing = false;
      const guarded = async () => {
        try {
          await read();
          failing = false;
        } catch (error) {
          if (!failing) log.warn({ error }, 'Metrics of the moment could not be read; they are shown as they were.');
          failing = true;
        }
      };
      collectors.add(guarded);
      return () => void collectors.delete(guarded);
    },
    /** Runs all collectors. Never rejects. */
    run: async () => void (await Promise.all([...collectors].map((read) => read()))),
  };
}
