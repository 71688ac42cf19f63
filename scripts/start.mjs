// @ts-check
// `npm start`: installs and builds what is missing, then becomes `gateway dev` with the rest of the arguments. It is the same process, so
// terminal, signals and exit status are the gateway's own.
import { fileURLToPath } from 'node:url';
import { endWithNpm } from './npm-parent.mjs';
import { prepareOrExit } from './prepare.mjs';

endWithNpm();
await prepareOrExit();
const gateway = new URL('../bin/gateway.js', import.meta.url);
process.argv = [process.execPath, fileURLToPath(gateway), 'dev', ...process.argv.slice(2)];
await import(gateway.href);
