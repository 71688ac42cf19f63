/** Two signals this close are one Ctrl-C: the terminal sends it to us, and npm passes its own on. */
const SAME_MS = 1_000;

/**
 * Resolves with the first SIGINT or SIGTERM. A later one ends the process at once.
 *
 * @param onFirst is called when the first comes
 */
export function untilInterrupted(onFirst: () => void): Promise<void> {
  return new Promise((resolve) => {
    let firstAt: number | undefined;
    const listen = () => {
      if (firstAt !== undefined) {
        if (performance.now() - firstAt > SAME_MS) process.exit(1);
        return;
      }
      firstAt = performance.now();
      onFirst();
      resolve();
    };
    process.on('SIGINT', listen);
    process.on('SIGTERM', listen);
  });
}
