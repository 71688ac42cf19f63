// @ts-check
// `npm run mutants [-- <part of a name or file> …]`: applies the deliberate faults of
// test/mutants/*.json one at a time to a copy of the built packages, and runs the tests declared to
// catch each. Prints `N caught, N survived`; exits with status 1 if a mutant survived.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { prepareOrExit } from './prepare.mjs';
import { workspaces } from './prepare/build.mjs';

const root = path.resolve(fileURLToPath(new URL('..', import.meta.url)));
/** Many faults make a test wait for its deadline. */
const workers = 5;

/**
 * A line of a source and its faulty version.
 * @typedef {object} Mutant
 * @property {string} name the fault: `acknowledges before the commit`
 * @property {string} file from the root
 * @property {string} from text that occurs once in the file
 * @property {string} to
 * @property {string[]} tests filters of `npm test` that select the catching tests
 */

/** @returns {Mutant[]} sorted by package */
export function mutants() {
  const folder = path.join(root, 'test', 'mutants');
  const files = fs.readdirSync(folder).filter((name) => name.endsWith('.json'));
  return files
    .sort()
    .flatMap((name) => JSON.parse(fs.readFileSync(path.join(folder, name), 'utf8')));
}

/**
 * Returns the source with the fault.
 * @param {Mutant} mutant
 * @throws if its text does not occur exactly once
 */
export function mutated({ name, file, from, to }) {
  const parts = fs.readFileSync(path.join(root, file), 'utf8').split(from);
  if (parts.length !== 2)
    throw new Error(
      `mutant "${name}": its text occurs ${parts.length - 1} times in ${file}; it has to follow the source`,
    );
  return parts.join(to);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));

/** @param {string[]} filters */
async function main(filters) {
  await prepareOrExit();
  const { compileTests, importTest } = await import('./test/compile.mjs');
  await compileTests();
  const { startShared } = /** @type {typeof import('../test/support/services.js')} */ (
    await importTest('support/services.ts')
  );
  const keeper = /** @type {typeof import('../test/support/start/keep.js')} */ (
    await importTest('support/start/keep.ts')
  );
  const queue = mutants().filter(
    ({ name, file }) =>
      filters.length === 0 || filters.some((part) => name.includes(part) || file.includes(part)),
  );
  const total = queue.length;
  const services = await startShared(['postgres', 'redis', 'kafka']);
  /** @type {string[]} */
  const survived = [];
  const work = async (/** @type {number} */ worker) => {
    const copy = copyOfBuild();
    try {
      const run = await runner(copy, {
        env: {
          ...process.env,
          ...services.env,
          NO_COLOR: '1',
          TEST_PORTS: `${20_000 + worker * 2_400}-${22_399 + worker * 2_400}`,
        },
        signal: new AbortController().signal,
        skipsFail: false,
        keeper,
      });
      for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
        const isCaught = await catches(mutant, copy, run);
        console.log(`${isCaught ? '•' : '✘ survived:'} ${mutant.name}  (${mutant.file})`);
        if (!isCaught) survived.push(mutant.name);
      }
    } finally {
      fs.rmSync(copy, { recursive: true, force: true });
    }
  };
  try {
    await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
  } finally {
    await services.close();
  }
  console.log(`${total - survived.length} caught, ${survived.length} survived`);
  process.exit(survived.length > 0 ? 1 : 0);
}

/**
 * Returns a function that runs the test files of a copy that a filter selects, until one fails. It
 * returns whether all passed, and throws if none ran.
 * @param {string} copy
 * @param {Parameters<typeof import('./test/run-file.mjs').runFiles>[1]} options
 */
async function runner(copy, options) {
  /** @param {string} name */
  const load = (name) => import(pathToFileURL(path.join(copy, 'scripts/test', name)).href);
  /** @type {typeof import('./test/compile.mjs')} */
  const { compileTests } = await load('compile.mjs');
  /** @type {typeof import('./test/files.mjs')} */
  const { testFiles } = await load('files.mjs');
  /** @type {typeof import('./test/run-file.mjs')} */
  const { runFiles } = await load('run-file.mjs');
  await compileTests();
  return async (/** @type {string} */ filter) => {
    const files = testFiles(copy, [filter]);
    if (files.length === 0) throw new Error(`no test file has ${filter} in its path`);
    for (const file of files) {
      const [result] = await runFiles([file], options);
      if (result && result.failed > 0) return false;
      if (!result?.passed) throw new Error(`no test ran in ${file.name}:\n${result?.output}`);
    }
    return true;
  };
}

/**
 * Runs a mutant's tests on the faulty copy, then repairs the copy.
 * @param {Mutant} mutant
 * @param {string} copy
 * @param {(filter: string) => Promise<boolean>} run
 */
async function catches(mutant, copy, run) {
  const { transform } = await import('esbuild');
  const built = path.join(copy, mutant.file.replace('/src/', '/dist/').replace(/\.ts$/, '.js'));
  const whole = fs.readFileSync(built);
  const { code } = await transform(mutated(mutant), {
    loader: 'ts',
    tsconfigRaw: { compilerOptions: { target: 'ES2023', verbatimModuleSyntax: true } },
  });
  fs.writeFileSync(built, code);
  try {
    for (const test of mutant.tests) if (!(await run(test))) return true;
    return false;
  } finally {
    fs.writeFileSync(built, whole);
  }
}

/** Copies the built packages, tests and scripts; links the libraries of the repository. */
function copyOfBuild() {
  const copy = fs.mkdtempSync(path.join(os.tmpdir(), 'gateway-mutants-'));
  const left = new Set(['node_modules', '.git', 'coverage', '.gateway', '.cache']);
  const filter = (/** @type {string} */ entry) => entry === root || !left.has(path.basename(entry));
  fs.cpSync(root, copy, { recursive: true, preserveTimestamps: true, filter });
  const modules = path.join(copy, 'node_modules');
  fs.mkdirSync(path.join(modules, '@gateway'), { recursive: true });
  for (const name of fs.readdirSync(path.join(root, 'node_modules'))) {
    const place = path.join(root, 'node_modules', name);
    // The copied stamps mark everything as installed and built.
    if (name === '@gateway') continue;
    if (fs.lstatSync(place).isDirectory()) fs.symlinkSync(place, path.join(modules, name));
    else fs.copyFileSync(place, path.join(modules, name));
  }
  for (const folder of workspaces(copy)) {
    fs.symlinkSync(folder, path.join(modules, '@gateway', path.basename(folder)));
    const own = path.join(root, path.relative(copy, folder), 'node_modules');
    if (fs.existsSync(own)) fs.symlinkSync(own, path.join(folder, 'node_modules'));
  }
  return copy;
}
