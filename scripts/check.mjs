// @ts-check
// `npm run check`: builds, then runs type checks, lint and unit tests concurrently; under a minute
// on a warm checkout. Tests that need services or start the gateway are left to `npm test`. Lint is
// cached by content: `npm run lint` checks everything.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { command } from './prepare/command.mjs';
import { prepareOrExit } from './prepare.mjs';

const root = path.resolve(fileURLToPath(new URL('..', import.meta.url)));
const began = Date.now();

await prepareOrExit();
const tool = (/** @type {string} */ name) => path.join(root, 'node_modules', name);
const cached = (/** @type {string} */ name) => [
  '--cache',
  '--cache-strategy',
  'content',
  '--cache-location',
  path.join(root, '.cache', name),
];
const checks = {
  // These share one core; the tests use the other. `npm test` checks the types of the tests.
  lint: async () => {
    const results = [
      await command(process.execPath, [tool('eslint/bin/eslint.js'), ...cached('eslint'), '.'], {
        cwd: root,
      }),
      await command(
        process.execPath,
        [
          tool('prettier/bin/prettier.cjs'),
          ...cached('prettier'),
          '--check',
          '--log-level',
          'warn',
          '.',
        ],
        {
          cwd: root,
        },
      ),
      await command(
        process.execPath,
        [
          tool('textlint/bin/textlint.js'),
          '--cache',
          '--cache-location',
          path.join(root, '.cache', 'textlint'),
          '*.md',
          'docs/**/*.md',
        ],
        {
          cwd: root,
        },
      ),
    ];
    return {
      ok: results.every(({ ok }) => ok),
      output: results.map(({ output }) => output).join(''),
    };
  },
  'types and unit tests': () =>
    command(process.execPath, ['scripts/test.mjs', '--unit'], { cwd: root }),
};

const results = await Promise.all(
  Object.entries(checks).map(async ([name, run]) => {
    const { ok, output } = await run();
    const last = output.trimEnd().split('\n').at(-1) ?? '';
    console.log(ok ? `• ${name}  ${last}` : `✘ ${name}\n${output.trimEnd()}`);
    return ok;
  }),
);
console.log(`${Math.round((Date.now() - began) / 1000)} s`);
process.exit(results.every(Boolean) ? 0 : 1);
