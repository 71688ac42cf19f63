/**
 * Ends what was started: the last first, and all of it, whatever fails.
 * @param ends is empty afterwards
 * @returns what went wrong
 */
export async function endAll(ends: (() => unknown)[]): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (const end of ends.splice(0).reverse()) {
    try {
      await end();
    } catch (error) {
      failures.push(error);
    }
  }
  return failures;
}
