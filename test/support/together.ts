import type { Test } from 'uvu';

/**
 * Declares tests that wait more than they work, in place of their suite: `const waiting = together(suite); waiting('a name', async () => …)`. All of them
 * begin with the suite, and each is told of under its own name in its own turn. They may not touch what is another's.
 */
export function together(suite: Test): (name: string, test: () => Promise<unknown>) => void {
  const tests: { readonly run: () => Promise<unknown>; outcome?: Promise<unknown> }[] = [];
  suite.before(() => {
    for (const test of tests) {
      test.outcome = Promise.resolve().then(test.run);
      // It is awaited in its own turn; until then its failure is nobody's surprise.
      test.outcome.catch(() => undefined);
    }
  });
  return (name, run) => {
    const test: (typeof tests)[number] = { run };
    tests.push(test);
    suite(name, () => test.outcome as Promise<void>);
  };
}
