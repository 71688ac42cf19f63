// @ts-check
// `npm run reliability`, `npm run hostile`: installs and builds what is missing, then runs the TypeScript file that is given, with the options that follow it:
// `npm run reliability -- --faults 200 --seed 7`. Those of each are told at the top of its file.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepareOrExit } from './prepare.mjs';

const root = path.resolve(fileURLToPath(new URL('..', import.meta.url)));
const [file = '', ...options] = process.argv.slice(2);

await prepareOrExit();
const child = spawn(process.execPath, ['--import', 'tsx', path.join(root, file), ...options], { cwd: root, stdio: 'inherit' });
// A Ctrl-C reaches both; what was started is stopped by the keeper of the child.
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, () => child.kill(signal));
child.once('exit', (code) => process.exit(code ?? 1));
