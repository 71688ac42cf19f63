/**
 * Runs all functions, the last first, despite failures.
 * @param ends empty afterwards
 * @returns the failures
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
