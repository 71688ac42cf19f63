const PAUSE_MS = 50;

/**
 * What is answered at last: KV is connected to in the background and until then fails every command at once.
 *
 * @param isPatient whether to ask once more after so many milliseconds; the last error is thrown when not
 */
export async function answered<T>(ask: () => Promise<T>, isPatient: (waitedMs: number) => boolean): Promise<T> {
  const beganAtMs = performance.now();
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isPatient(performance.now() - beganAtMs)) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
