// @ts-check
// `npm start`: installs and builds what is missing, then runs `gateway dev` with the remaining
// arguments in this process, so that the gateway owns terminal, signals and exit status.
import { fileURLToPath } from 'node:url';
import { endWithNpm } from './npm-parent.mjs';
import { prepareOrExit } from './prepare.mjs';

endWithNpm();
await prepareOrExit();
const gateway = new URL('../bin/gateway.js', import.meta.url);
process.argv = [process.execPath, fileURLToPath(gateway), 'dev', ...process.argv.slice(2)];
await import(gateway.href);
