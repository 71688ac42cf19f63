// @ts-check
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { compiledOf } from './compiled.mjs';
import { killGroup, processesOf } from './process-group.mjs';

const flags = [
  '--enable-source-maps',
  '--import',
  new URL('./still-open.mjs', import.meta.url).href,
];
const root = fileURLToPath(new URL('../..', import.meta.url));
const sharedProcess = fileURLToPath(new URL('./shared-process.mjs', import.meta.url));
/** The limit for a file to close its resources and exit after its last test. */
const endWithinMs = 10_000;
/** The limit for processes that the file started to exit after it. */
const leaveWithinMs = 3_000;
/** Characters kept of the output of each file. */
const keptOutput = 2_000_000;
/** The line that `shared-process.mjs` prints before each file. */
const startOfFile = /^# test file\n/m;
/** The line of a file that skips itself, with the reason. */
const skippedItself = /^SKIPPED: (.*)$/m;

/**
 * @typedef {object} Result
 * @property {number} passed tests
 * @property {number} failed tests; at least 1 if the file has any problem
 * @property {number} skipped tests, or 1 for a file that skipped itself
 * @property {string | undefined} reason why the file or some of its tests were skipped
 * @property {string[]} problems why it failed, in addition to the output
 * @property {string} output
 * @property {number} ms
 */

/**
 * Runs a test file, or several one after the other, in a separate process and process group.
 * @param {readonly import('./files.mjs').TestFile[]} tests at least one
 * @param {{ env: NodeJS.ProcessEnv, signal: AbortSignal, skipsFail: boolean, keeper: typeof
 * import('../../test/support/start/keep.js') }} options `signal` ends it immediately; the keeper
 * does if this process is killed
 * @returns {Promise<Result[]>} a result for each file
 */
export async function runFiles(tests, { env, signal, skipsFail, keeper }) {
  const files = tests.map(({ file }) => compiledOf(file));
  const isShared = tests.length > 1;
  const began = Date.now();
  const child = spawn(
    process.execPath,
    [...flags, ...(isShared ? [sharedProcess] : []), ...files],
    {
      cwd: root,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    },
  );
  const group = child.pid ?? 0;
  if (group > 0) keeper.keep(group, 'SIGKILL');
  /** The output of each file, and first what a shared process prints before them. */
  const parts = [''];
  const current = () => parts.at(-1) ?? '';
  /** @type {string[]} */
  const problems = [];
  /** @type {NodeJS.Timeout | undefined} */
  let lastCall;

  /** @param {string} problem */
  const giveUp = async (problem) => {
    problems.push(problem);
    child.kill('SIGUSR2');
    await sleep(500);
    killGroup(group);
  };
  let running = 0;
  /** @type {NodeJS.Timeout | undefined} */
  let deadline;
  /** @param {number} k */
  const startFile = (k) => {
    running = k;
    clearTimeout(deadline);
    const { deadlineMs } = /** @type {import('./files.mjs').TestFile} */ (tests[k]);
    deadline = setTimeout(() => void giveUp(overrun(deadlineMs, current())), deadlineMs);
  };
  startFile(0);
  /** @param {string} text */
  const take = (text) => {
    const all = parts.pop() + text;
    for (const part of isShared ? all.split(startOfFile) : [all])
      parts.push(part.slice(-keptOutput));
    const started = parts.length - (isShared ? 2 : 1);
    if (started > running) startFile(started);
    const isLastFile = started === tests.length - 1;
    if (lastCall === undefined && isLastFile && summaries(current()).length > 0)
      lastCall = setTimeout(
        () => void giveUp(`did not end within ${endWithinMs / 1000} s after its last test`),
        endWithinMs,
      );
  };
  child.stdout.setEncoding('utf8').on('data', take);
  child.stderr.setEncoding('utf8').on('data', take);
  const abort = () => killGroup(group);
  signal.addEventListener('abort', abort);

  const closed = new Promise((resolve) => child.once('close', resolve));
  const ending = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, by) => resolve(code ?? by));
  });
  clearTimeout(deadline);
  clearTimeout(lastCall);
  signal.removeEventListener('abort', abort);
  if (group > 0) {
    keeper.forget(group);
    problems.push(...(await leftBehind(group)));
  }
  await closed;
  if (isShared) parts.shift();
  return tests.map((test, k) => {
    const isLast = k === parts.length - 1;
    // Files in a process need the same services: one that skips itself ends the process for all.
    const part = parts[k] ?? skippedItself.exec(parts.at(-1) ?? '')?.[0];
    const found = isLast ? problems : [];
    const result = outcomeOf(part ?? '', isLast ? ending : 0, found, skipsFail);
    if (part === undefined)
      result.problems = [`did not run: ${tests[parts.length - 1]?.name ?? test.name} ended early`];
    return { ...result, output: part ?? '', ms: (Date.now() - began) / tests.length };
  });
}

/**
 * Waits for processes that the file started, and kills the remaining ones.
 * @param {number} group
 */
async function leftBehind(group) {
  const deadline = Date.now() + leaveWithinMs;
  while (processesOf(group).length > 0 && Date.now() < deadline) await sleep(50);
  const left = processesOf(group);
  killGroup(group);
  return left.map((command) => `left a process behind: ${command}`);
}

/**
 * @param {string} output
 * @param {number | string} ending exit status or signal
 * @param {string[]} problems
 * @param {boolean} skipsFail
 * @returns {Omit<Result, 'output' | 'ms'>}
 */
function outcomeOf(output, ending, problems, skipsFail) {
  const found = summaries(output);
  const sum = (/** @type {'total' | 'passed' | 'skipped'} */ key) =>
    found.reduce((all, one) => all + one[key], 0);
  const total = sum('total');
  const passed = sum('passed');
  const reason = skippedItself.exec(output)?.[1];
  if (reason !== undefined && total === 0) {
    const all = [...problems, ...(skipsFail ? [`skipped, and CI=true: ${reason}`] : [])];
    return { passed: 0, failed: all.length > 0 ? 1 : 0, skipped: 1, reason, problems: all };
  }
  const skipped = sum('skipped');
  const all = [...problems];
  if (skipped > 0 && skipsFail) all.push(`${skipped} tests skipped, and CI=true`);
  if (total === 0 && all.length === 0)
    all.push(
      ending === 0
        ? 'ran no test: does it end with .run()?'
        : `ended (${ending}) before any test was counted`,
    );
  else if (passed < total && !output.includes(' FAIL '))
    all.push('a hook threw: uvu stops there and does not print the error of a before hook');
  else if (passed === total && ending !== 0 && all.length === 0)
    all.push(`ended with ${ending} although every test passed`);
  const failed = Math.max(total - passed, all.length > 0 ? 1 : 0);
  return { passed, failed, skipped, reason, problems: all };
}

/**
 * Parses the counts that uvu prints at the end.
 * @param {string} output
 */
function summaries(output) {
  // eslint-disable-next-line no-control-regex -- colours, when somebody forces them
  const plain = output.replace(/\u001b\[\d+m/g, '');
  return [
    ...plain.matchAll(
      /^ {2}Total: {5}(\d+)\n {2}Passed: {4}(\d+)\n {2}Skipped: {3}(\d+)\n {2}Duration: /gm,
    ),
  ].map(([, total, passed, skipped]) => ({
    total: Number(total),
    passed: Number(passed),
    skipped: Number(skipped),
  }));
}

/**
 * @param {number} deadlineMs
 * @param {string} output
 */
function overrun(deadlineMs, output) {
  const done = output.match(/[•✘] /g)?.length ?? 0;
  return `did not end within its deadline of ${deadlineMs / 1000} s; ${done} tests were done`;
}
