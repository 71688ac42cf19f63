// @ts-check
// `npm run reliability`, `npm run hostile`: installs and builds what is missing, then runs the
// given TypeScript file with the options that follow:
// `npm run reliability -- --faults 200 --seed 7`. The top of each file describes its options.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepareOrExit } from './prepare.mjs';

const root = path.resolve(fileURLToPath(new URL('..', import.meta.url)));
const [file = '', ...options] = process.argv.slice(2);

await prepareOrExit();
const child = spawn(process.execPath, ['--import', 'tsx', path.join(root, file), ...options], {
  cwd: root,
  stdio: 'inherit',
});
// Ctrl-C reaches both processes; the child's keeper stops the processes it started.
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
  process.on(signal, () => child.kill(signal));
child.once('exit', (code) => process.exit(code ?? 1));
