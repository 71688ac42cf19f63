// @ts-check
// `npm run reliability`: installs and builds what is missing, then proves that nothing is lost (test/reliability/proof). Options are those of
// test/reliability/proof/command.ts: `npm run reliability -- --faults 200 --seed 7 [--messages 50000] [--form long|short] [--json]`.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepareOrExit } from './prepare.mjs';

const root = path.resolve(fileURLToPath(new URL('..', import.meta.url)));
const file = path.join(root, 'test', 'reliability', 'proof', 'command.ts');

await prepareOrExit();
const child = spawn(process.execPath, ['--import', 'tsx', file, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' });
// A Ctrl-C reaches both; what was started is stopped by the keeper of the child.
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, () => child.kill(signal));
child.once('exit', (code) => process.exit(code ?? 1));
