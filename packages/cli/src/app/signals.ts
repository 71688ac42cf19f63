import { constants } from 'node:os';

export interface Interruption {
  /** The exit status of an interrupted command, as shells have it: 130 after Ctrl-C; 0 until then. */
  readonly status: number;
  /** Restores the default handling of signals. */
  done(): void;
}

/** Records the first Ctrl-C or SIGTERM, so that a command can end in a consistent state; a second one ends it at once. */
export function noteInterruption(): Interruption {
  let status = 0;
  const note = (signal: NodeJS.Signals) => {
    status = 128 + constants.signals[signal];
    done();
  };
  const done = () => {
    process.off('SIGINT', note);
    process.off('SIGTERM', note);
  };
  process.on('SIGINT', note);
  process.on('SIGTERM', note);
  return {
    get status() {
      return status;
    },
    done,
  };
}

/** Two signals this close are one Ctrl-C: the terminal sends one, and npm passes its own on. */
const SAME_MS = 1_000;

/**
 * Resolves with the first SIGINT or SIGTERM. The same one again ends the process at once; the other one changes nothing, because who starts us may answer
 * Ctrl-C with a SIGTERM.
 *
 * @param onFirst is called when the first comes
 */
export function untilInterrupted(onFirst: () => void): Promise<void> {
  return new Promise((resolve) => {
    let first: { signal: NodeJS.Signals; at: number } | undefined;
    const listen = (signal: NodeJS.Signals) => {
      const at = performance.now();
      if (first?.signal === signal && at - first.at > SAME_MS) process.exit(1);
      if (first) return;
      first = { signal, at };
      onFirst();
      resolve();
    };
    process.on('SIGINT', listen);
    process.on('SIGTERM', listen);
  });
}
