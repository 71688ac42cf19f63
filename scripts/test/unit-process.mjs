// @ts-check
// Runs unit test files one after the other in this process, as the runner names them. Each import starts a file's suites anew, and what files share is loaded once.
import { pathToFileURL } from 'node:url';

// uvu then leaves it to us when suites run.
/** @type {any} */ (globalThis).UVU_DEFER = 1;
const { exec } = await import('uvu');

process.on('message', async (/** @type {string} */ file) => {
  let output = '';
  const write = process.stdout.write;
  process.stdout.write = (/** @type {string | Uint8Array} */ text) => ((output += String(text)), true);
  /** @type {any} */ (globalThis).UVU_QUEUE = [[null]];
  process.exitCode = 0;
  try {
    await import(pathToFileURL(file).href);
    await exec();
  } catch (error) {
    output += `${/** @type {Error} */ (error).stack}\n`;
    process.exitCode = 1;
  }
  process.stdout.write = write;
  process.send?.({ output, ending: process.exitCode });
});
