import { constants } from 'node:os';

/**
 * Records the first Ctrl-C or SIGTERM, so that a command can end in a consistent state; a second one ends it at once.
 *
 * @returns the exit status as shells have it, 130 after Ctrl-C and 0 until then; `done` restores the default handling of signals
 */
export function noteInterruption(): { readonly status: number; done(): void } {
  const note = (signal: NodeJS.Signals) => {
    interruption.status = 128 + constants.signals[signal];
    interruption.done();
  };
  const interruption = { status: 0, done: () => void process.off('SIGINT', note).off('SIGTERM', note) };
  process.on('SIGINT', note).on('SIGTERM', note);
  return interruption;
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
