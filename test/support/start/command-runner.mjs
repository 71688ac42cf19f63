// @ts-check
// Runs commands of the built command line one after the other: starting a process takes longer than
// most commands.
import { fileURLToPath } from 'node:url';
import { run } from '@gateway/cli';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const streams = /** @type {const} */ (['stdout', 'stderr']);

/** @type {Record<'stdout' | 'stderr', string>} */
let printed = { stdout: '', stderr: '' };
for (const name of streams) {
  /** @param {[chunk: string | Uint8Array, ...rest: unknown[]]} args */
  process[name].write = (...args) => {
    printed[name] += Buffer.from(/** @type {string} */ (args[0])).toString();
    const done = args.at(-1);
    if (typeof done === 'function') done();
    return true;
  };
}

process.on(
  'message',
  async (
    /** @type {{ argv: string[], env: Record<string, string>, folder: string }} */ {
      argv,
      env,
      folder,
    },
  ) => {
    for (const name of Object.keys(process.env)) delete process.env[name];
    Object.assign(process.env, env);
    process.chdir(folder);
    const code = await run({ argv, root });
    for (const name of streams) process[name].removeAllListeners('error');
    process.chdir(root);
    process.send?.({ code, ...printed });
    printed = { stdout: '', stderr: '' };
  },
);
process.on('disconnect', () => process.exit());
