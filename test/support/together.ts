import type { Test } from 'uvu';

/**
 * Declares tests that mostly wait:
 * `const waiting = together(suite); waiting('a name', async () => …)`. All of them start with the
 * suite and run concurrently; each is reported under its name, in order. They must not share state.
 */
export function together(suite: Test): (name: string, test: () => Promise<unknown>) => void {
  const tests: { readonly run: () => Promise<unknown>; outcome?: Promise<unknown> }[] = [];
  suite.before(() => {
    for (const test of tests) {
      test.outcome = Promise.resolve().then(test.run);
      // Awaited later, in order; prevents an unhandled rejection until then.
      test.outcome.catch(() => undefined);
    }
  });
  return (name, run) => {
    const test: (typeof tests)[number] = { run };
    tests.push(test);
    suite(name, () => test.outcome as Promise<void>);
  };
}
