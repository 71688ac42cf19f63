// @ts-check
// `npm test`: installs and builds what is missing, starts the services, runs the test files, and
// ends with the line `N passed, N failed`. Arguments filter by path: `npm test -- agent/routing`.
// `--unit` runs tests without services and processes, `--changed[=<commit>]` tests that a change
// since that commit (HEAD) can break, `--long` the long ones, which a filter finds too; `--lint`
// also runs `npm run lint`, and `--coverage` measures the tests. `--shard=second` and `--shard=citus`
// run tests with their projects on another shard. A few files that fail in a whole run get a second
// try, alone. See docs/internals/testing.md.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { endWithNpm } from './npm-parent.mjs';
import { prepare } from './prepare.mjs';
import { command } from './prepare/command.mjs';
import { Problem } from './prepare/problem.mjs';
import { affected, changedFiles } from './test/changed.mjs';
import { startCoverage } from './test/coverage.mjs';
import { longestFirst, testFiles } from './test/files.mjs';
import { runFiles } from './test/run-file.mjs';
import { kinds, onShard, shareOnShards } from './test/shards.mjs';
import { typeErrors } from './test/type-errors.mjs';

const root = path.resolve(fileURLToPath(new URL('..', import.meta.url)));
const durations = path.join(root, '.cache', 'test-durations.json');
const options = process.argv.slice(2).filter((argument) => argument.startsWith('--'));
const shard = /** @type {keyof typeof kinds | undefined} */ (
  options.map((option) => /^--shard=(.+)$/.exec(option)?.[1]).find(Boolean)
);
const given = process.argv
  .slice(2)
  .flatMap((argument) => (argument.startsWith('--') ? [] : argument.replace(/^test\//, '')));
const filters = shard && given.length === 0 ? (kinds[shard]?.all ?? []) : given;
const additions = ['--lint', '--coverage'];
const whole = filters.length === 0 && options.every((option) => additions.includes(option));
/** With more failed files than this, the load of the machine is not the cause. */
const mostSecondTries = 4;
/** Few, since a process that ends early fails its remaining files. */
const filesPerProcess = 10;
const skipsFail = process.env['CI'] === 'true';
// Most files are idle most of the time.
const workers = Number(
  process.env['TEST_WORKERS'] ?? Math.min(8, 2 * os.availableParallelism() + 2),
);

const counts = { passed: 0, failed: 0, skipped: 0 };
const stopping = new AbortController();
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']))
  process.on(signal, () => stopping.abort(signal));
endWithNpm();

try {
  await run();
} catch (error) {
  console.error(error instanceof Problem ? error.message : error);
  counts.failed++;
}
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(stopping.signal.aborted ? 130 : counts.failed > 0 ? 1 : 0);

async function run() {
  const began = Date.now();
  await prepare();
  const files = selected(testFiles(root, filters));
  if (files.length === 0 && options.length > 0) return;
  if (files.length === 0)
    throw new Problem(
      whole
        ? 'there is no test file in test/'
        : `no test file has ${filters.join(' or ')} in its path`,
    );

  const types = typeErrors(root, whole ? undefined : files.map(({ file }) => file));
  const lint = options.includes('--lint')
    ? command('npm', ['run', '--silent', 'lint'], { cwd: root })
    : undefined;
  process.env['TMPDIR'] = memoryFolder() ?? os.tmpdir();
  // Imported lazily: the packages are installed first.
  const { compileTests, importTest } = await import('./test/compile.mjs');
  await compileTests();
  const { startShared } = /** @type {typeof import('../test/support/services.js')} */ (
    await importTest('support/services.ts')
  );
  const keeper = /** @type {typeof import('../test/support/start/keep.js')} */ (
    await importTest('support/start/keep.ts')
  );
  const services = await startShared([...new Set(files.flatMap((file) => file.services))]);
  try {
    for (const sentence of services.missing)
      console.log(`cannot be had on this machine: ${sentence}`);
    const hasCitus = !('TEST_CITUS_UNAVAILABLE' in services.env);
    if (shard === 'citus' && !hasCitus) throw new Problem('these tests need Citus');
    const able = files.filter((file) => hasCitus || !file.services.includes('citus'));
    await runAll(able, services.env, keeper);
    reportCheck('the types of the tests', await types);
    const linted = await lint;
    if (linted) reportCheck('lint', linted.ok ? '' : linted.output.trim());
  } finally {
    await services.close();
  }
  if (stopping.signal.aborted) throw new Problem(`stopped by ${stopping.signal.reason}`);
  console.log(
    `\n${files.length} files in ${Math.round((Date.now() - began) / 1000)} s${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''}`,
  );
}

/**
 * Returns a folder in memory with enough space. ext4 checks every recently deleted file before it
 * creates one: with a database per test file, this took a quarter of the run.
 * @returns {string | undefined}
 */
function memoryFolder() {
  const folder = '/dev/shm';
  try {
    const { bavail, bsize } = fs.statfsSync(folder);
    const isExecutable = !/ \/dev\/shm .*noexec/.test(fs.readFileSync('/proc/mounts', 'utf8'));
    return isExecutable && bavail * bsize > 4e9 ? folder : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {string} name
 * @param {string} problems empty if there are none
 */
function reportCheck(name, problems) {
  if (problems === '') return;
  counts.failed++;
  console.log(`\n✘ ${name}\n${problems}`);
}

/**
 * Filters the files by the options.
 * @param {import('./test/files.mjs').TestFile[]} files
 */
function selected(files) {
  const isLongLane = options.includes('--long');
  let left = files.filter(({ isLong }) => isLong === isLongLane || filters.length > 0);
  for (const option of options) {
    const base = /^--changed(?:=(.+))?$/.exec(option);
    if (base) left = affected(left, root, changedFiles(root, base[1] ?? 'HEAD'));
    else if (option === '--unit') left = left.filter(({ isUnit }) => isUnit);
    else if (
      !['--long', ...additions, ...Object.keys(kinds).map((it) => `--shard=${it}`)].includes(option)
    )
      throw new Problem(
        `${option} is not an option of npm test: use --unit, --changed, --changed=<commit>, --long, --shard=second, --shard=citus, --lint or --coverage`,
      );
  }
  if (shard) return onShard(left, shard);
  return whole ? [...left, ...shareOnShards(left)] : left;
}

/**
 * @param {import('./test/files.mjs').TestFile[]} files
 * @param {Readonly<Record<string, string | undefined>>} services
 * @param {typeof import('../test/support/start/keep.js')} keeper
 */
async function runAll(files, services, keeper) {
  const lastMs = readDurations();
  const coverage = options.includes('--coverage') ? startCoverage(root) : undefined;
  const alone = longestFirst(
    files.map((test) => [test]),
    lastMs,
  );
  // Coverage is counted by process.
  const queue = coverage ? alone : longestFirst(inProcesses(alone.flat()), lastMs);
  /**
   * Runs the files of a queue, and returns those that failed, not yet counted.
   * @param {import('./test/files.mjs').TestFile[][]} queue
   * @param {number} count of workers
   */
  const runQueue = async (queue, count) => {
    /** @type {{ test: import('./test/files.mjs').TestFile, result: import('./test/run-file.mjs').Result }[]} */
    const failures = [];
    /** @param {number} worker */
    const work = async (worker) => {
      for (let tests = queue.shift(); tests?.[0]; tests = queue.shift()) {
        if (stopping.signal.aborted) return;
        const [{ name, env: own }] = tests;
        const env = environment(
          { ...services, ...own, TEST_PORTS: portsOf(worker) },
          takesCoverage(name) ? coverage?.folderOf(name) : undefined,
        );
        const results = await runFiles(tests, { env, signal: stopping.signal, skipsFail, keeper });
        for (const [k, result] of results.entries()) {
          const test = /** @type {import('./test/files.mjs').TestFile} */ (tests[k]);
          lastMs[test.name] = result.ms;
          print(test.name, result);
          if (result.failed > 0) failures.push({ test, result });
          else add(result);
        }
        await coverage?.collect(name);
      }
    };
    await Promise.all(Array.from({ length: count }, (_, worker) => work(worker)));
    return failures;
  };
  const first = await runQueue(queue, workers);
  const isTriedAgain = whole && first.length <= mostSecondTries && !stopping.signal.aborted;
  const failures = isTriedAgain
    ? await runQueue(
        first.map(({ test }) => [test]),
        1,
      )
    : first;
  for (const { result } of failures) add(result);
  for (const { test } of first)
    if (!failures.some((it) => it.test === test))
      console.log(`! ${test.name} failed beside other files and passed alone`);
  fs.mkdirSync(path.dirname(durations), { recursive: true });
  fs.writeFileSync(durations, JSON.stringify(lastMs, null, 2));
  if (coverage && !stopping.signal.aborted) console.log(`\n${await coverage.report()}`);
}

/**
 * Returns the files of each process. Those that can share one do, by the services they need:
 * loading the packages and their libraries takes most of a second.
 * @param {import('./test/files.mjs').TestFile[]} files
 */
function inProcesses(files) {
  const alone = files.filter(({ sharesProcess }) => !sharesProcess).map((test) => [test]);
  /** @type {Map<string, typeof files>} */
  const groups = new Map();
  for (const test of files.filter(({ sharesProcess }) => sharesProcess)) {
    const key = [...test.services, ...Object.values(test.env)].join();
    groups.set(key, [...(groups.get(key) ?? []), test]);
  }
  const shared = [...groups].flatMap(([key, group]) =>
    dealt(group, key === '' ? workers : Math.ceil(group.length / filesPerProcess)),
  );
  return [...alone, ...shared];
}

/**
 * Deals files, the longest first, so that each process has long and short ones.
 * @param {import('./test/files.mjs').TestFile[]} files
 * @param {number} count
 */
function dealt(files, count) {
  const hands = Array.from({ length: count }, (_, hand) =>
    files.filter((_, k) => k % count === hand),
  );
  return hands.filter(({ length }) => length > 0);
}

/**
 * Returns a worker's port range, `<first>-<last>`: another worker must not take a free port before
 * a process listens on it. All are below the system's ephemeral ports.
 * @param {number} worker
 */
function portsOf(worker) {
  const [first = 0, last = 0] = (process.env['TEST_PORTS'] || '20000-31999').split('-').map(Number);
  const share = Math.floor((last + 1 - first) / workers);
  return `${first + worker * share}-${first + (worker + 1) * share - 1}`;
}

/**
 * The `reliability` tests run code that others cover, for long and until killed: coverage would
 * slow them down and add nothing.
 * @param {string} name
 */
function takesCoverage(name) {
  return !name.startsWith('reliability/');
}

/**
 * Returns the environment of a test process, without the user's gateway settings and flags.
 * @param {Readonly<Record<string, string | undefined>>} services
 * @param {string | undefined} coverageFolder
 * @returns {NodeJS.ProcessEnv}
 */
function environment(services, coverageFolder) {
  const passed = Object.entries(process.env).filter(
    ([name]) =>
      !name.startsWith('GATEWAY_') && name !== 'NODE_V8_COVERAGE' && name !== 'FORCE_COLOR',
  );
  return {
    ...Object.fromEntries(passed),
    ...services,
    NO_COLOR: '1',
    ...(coverageFolder ? { NODE_V8_COVERAGE: coverageFolder } : {}),
  };
}

/** @param {import('./test/run-file.mjs').Result} result */
function add({ passed, failed, skipped }) {
  counts.passed += passed;
  counts.failed += failed;
  counts.skipped += skipped;
}

/**
 * @param {string} name
 * @param {import('./test/run-file.mjs').Result} result
 */
function print(name, { passed, failed, skipped, reason, problems, output, ms }) {
  const took = `${(ms / 1000).toFixed(1)} s`;
  const skips =
    reason !== undefined ? `, skipped: ${reason}` : skipped > 0 ? `, ${skipped} skipped` : '';
  console.log(
    `${failed > 0 ? '✘' : '•'} ${name}  ${passed} passed${failed > 0 ? `, ${failed} failed` : ''}${skips}  ${took}`,
  );
  if (failed === 0) return;
  console.log(
    [output.trim(), ...problems.map((problem) => `${name} ${problem}`)]
      .filter(Boolean)
      .join('\n')
      .replace(/^/gm, '  | '),
  );
}

/** @returns {Record<string, number>} */
function readDurations() {
  try {
    return JSON.parse(fs.readFileSync(durations, 'utf8'));
  } catch {
    return {};
  }
}
