// @ts-check
// Runs the test files in its arguments, one after the other. Modules that files share are loaded
// once.
import { pathToFileURL } from 'node:url';

// uvu then runs no suite before `exec`.
/** @type {any} */ (globalThis).UVU_DEFER = 1;
const { exec } = await import('uvu');
const root = process.cwd();

for (const file of process.argv.slice(2)) {
  process.chdir(root);
  /** @type {any} */ (globalThis).UVU_QUEUE = [[null]];
  // The file before may have ended within a line.
  console.log('\n# test file');
  try {
    await import(pathToFileURL(file).href);
    await exec();
  } catch (error) {
    console.log(error);
    process.exitCode = 1;
  }
}
