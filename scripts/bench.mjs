// @ts-check
// `npm run bench`: installs and builds what is missing, then runs test/bench/way.ts with the rest of the arguments.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepareOrExit } from './prepare.mjs';

const root = path.resolve(fileURLToPath(new URL('..', import.meta.url)));
await prepareOrExit();
const { status } = spawnSync(process.execPath, ['--import', 'tsx', path.join(root, 'test', 'bench', 'way.ts'), ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
