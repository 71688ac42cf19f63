// @ts-check
// `npm run bench`: installs and builds what is missing, then runs each part, a file of test/bench.
// `npm run bench -- <part> [its options]` runs one part.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepareOrExit } from './prepare.mjs';

const root = path.resolve(fileURLToPath(new URL('..', import.meta.url)));
const known = [
  'pipeline',
  'posts',
  'observing',
  'scrape',
  'metrics',
  'transform',
  'neighbours',
  'growth',
  'dashboard',
  'pages',
  'soak',
];
const usual = ['pipeline', 'posts', 'observing', 'scrape'];

const [first = '', ...rest] = process.argv.slice(2);
/** @type {{ parts: string[], options: string[] }} */
const asked = first === '' ? { parts: usual, options: [] } : { parts: [first], options: rest };
// Options without a part belong to `pipeline`.
if (first.startsWith('--'))
  Object.assign(asked, { parts: ['pipeline'], options: [first, ...rest] });
const unknown = asked.parts.find((part) => !known.includes(part));
if (unknown !== undefined) {
  console.error(
    `error: there is no part ${unknown} of the benchmark\nfix:   use one of ${known.join(', ')}, or none for ${usual.join(', ')}`,
  );
  process.exit(2);
}

await prepareOrExit();
for (const part of asked.parts) {
  const file = path.join(root, 'test', 'bench', `${part}.ts`);
  const { status } = spawnSync(process.execPath, ['--import', 'tsx', file, ...asked.options], {
    cwd: root,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}
