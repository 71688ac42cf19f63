/** What random tests begin from: `TEST_SEED` runs them again as they were. A test that uses it prints it. */
export const seed = Number(process.env['TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
