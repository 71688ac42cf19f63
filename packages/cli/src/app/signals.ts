import { constants } from 'node:os';

/** A closed terminal sends SIGHUP. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * The first Ctrl-C, SIGTERM or SIGHUP does not exit, so that a command can end in a consistent
 * state. A second signal ends the process immediately.
 *
 * @returns `status`, the exit status for the shell: 0 until a signal, 130 after Ctrl-C; and `done`,
 *   which restores the default handling
 */
export function noteInterruption(): { readonly status: number; done(): void } {
  const note = (signal: NodeJS.Signals) => {
    interruption.status = 128 + constants.signals[signal];
    interruption.done();
  };
  const interruption = {
    status: 0,
    done: () => {
      for (const signal of SIGNALS) process.off(signal, note);
    },
  };
  for (const signal of SIGNALS) process.on(signal, note);
  return interruption;
}

/**
 * Signals within this time count as one Ctrl-C: the terminal sends one and npm forwards another.
 */
const SAME_MS = 1_000;

/**
 * SIGINT, SIGTERM or SIGHUP. Repeating the same signal more than a second later exits immediately.
 * Another signal is ignored, because a parent process can react to Ctrl-C with a SIGTERM.
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
    for (const signal of SIGNALS) process.on(signal, listen);
  });
}
