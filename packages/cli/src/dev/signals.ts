/** Two signals this close are one Ctrl-C: the terminal sends it to us, and npm passes its own on. */
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
