// @ts-check
// Runs the unit test files that the runner names, one after the other. Modules that files share are
// loaded once.
import { pathToFileURL } from 'node:url';

// uvu then runs no suite before `exec`.
/** @type {any} */ (globalThis).UVU_DEFER = 1;
const { exec } = await import('uvu');
const root = process.cwd();

process.on('message', (/** @type {string} */ file) => void run(file));

/** @param {string} file */
async function run(file) {
  let output = '';
  const write = process.stdout.write;
  process.stdout.write = (/** @type {string | Uint8Array} */ text) => (
    (output += String(text)),
    true
  );
  /** @type {any} */ (globalThis).UVU_QUEUE = [[null]];
  process.exitCode = 0;
  process.chdir(root);
  try {
    await import(pathToFileURL(file).href);
    await exec();
  } catch (error) {
    output += `${/** @type {Error} */ (error).stack}\n`;
    process.exitCode = 1;
  }
  process.stdout.write = write;
  process.send?.({ output, ending: process.exitCode });
}
