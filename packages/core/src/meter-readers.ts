import type { Log } from './log.js';

/** What reads values of the moment before they are shown. */
export interface MeterReaders {
  /** Registers a reader, and returns what removes it. */
  add(read: () => void): () => void;
  /** Runs all readers. Never rejects; a promise because backends that push wait for it (`MetricsHost.collect`). */
  run(): Promise<void>;
}

/** A reader that throws leaves its series as they were. It is logged when that begins, and not again before it has succeeded. */
export function meterReaders(log: Pick<Log, 'warn'>): MeterReaders {
  const readers = new Set<() => void>();
  return {
    add(read) {
      const reader = guarded(read, log);
      readers.add(reader);
      return () => void readers.delete(reader);
    },
    run() {
      for (const read of readers) read();
      return Promise.resolve();
    },
  };
}

function guarded(read: () => void, log: Pick<Log, 'warn'>): () => void {
  let failing = false;
  return () => {
    try {
      read();
      failing = false;
    } catch (error) {
      if (!failing) log.warn({ error }, 'Metrics of the moment could not be read; they are shown as they were.');
      failing = true;
    }
  };
}
