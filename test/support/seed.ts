/** The seed of random tests: `TEST_SEED` repeats a run. Tests that use it print it. */
export const seed = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
