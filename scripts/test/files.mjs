// @ts-check
import fs from 'node:fs';
import path from 'node:path';

const defaultDeadlineSeconds = 240;
/** The first line of a file with a long deadline, or one that only `test:long` and a filter run. */
const header = /^\/\/ (?:deadline: (\d+) s)?(?:, )?(long)?$/;

/**
 * @typedef {object} TestFile
 * @property {string} name path below `test`, without the extension: `agent/route`
 * @property {string} file absolute
 * @property {number} deadlineMs
 * @property {('postgres' | 'citus' | 'redis' | 'kafka' | 'prometheus' | 'chromium')[]} services those it may use, by what it imports
 * @property {Readonly<Record<string, string>>} env variables beside those of the services
 * @property {boolean} isLong `npm run test:long` runs it, and `npm test` does not
 * @property {boolean} sharesProcess it can run after others in their process
 * @property {boolean} hasProjects TEST_SHARD says where its projects are
 * @property {boolean} isUnit it uses no service and starts no gateway
 */

/**
 * Returns all test files, or those with a path that contains one of the filters.
 * @param {string} root
 * @param {string[]} filters
 * @returns {TestFile[]}
 */
export function testFiles(root, filters) {
  const folder = path.join(root, 'test');
  const entries = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const names = entries.filter(
    (name) =>
      name.endsWith('.test.ts') &&
      (filters.length === 0 || filters.some((part) => name.includes(part))),
  );
  return names
    .sort()
    .map((name) => describe(name.slice(0, -'.test.ts'.length), path.join(folder, name)));
}

/**
 * Sorts the files of each process, the longest first, so that the workers finish together: by
 * duration of the last run, else by deadline, else tests with processes, threads, browsers or
 * brokers first.
 * @param {TestFile[][]} processes
 * @param {Record<string, number>} lastMs
 */
export function longestFirst(processes, lastMs) {
  const ms = (/** @type {TestFile[]} */ files) =>
    files.reduce((sum, test) => sum + guess(test, lastMs), 0);
  return [...processes].sort((a, b) => ms(b) - ms(a));
}

/**
 * @param {TestFile} of
 * @param {Record<string, number>} lastMs
 */
function guess({ name, deadlineMs, services, isUnit }, lastMs) {
  const known = lastMs[name];
  if (known !== undefined) return known;
  if (deadlineMs > defaultDeadlineSeconds * 1000) return deadlineMs;
  if (isUnit) return 1_000;
  if (/^(reliability|e2e)\//.test(name)) return 60_000;
  if (name.startsWith('dashboard/')) return 40_000;
  if (/^(cli|conformance|plugins|sandbox)\//.test(name)) return 15_000;
  return 1_000 + 2_000 * services.length;
}

/**
 * @param {string} name
 * @param {string} file
 * @returns {TestFile}
 */
function describe(name, file) {
  const [, declared, long] = header.exec(textOf(file).split('\n', 1)[0] ?? '') ?? [];
  const used = [...withImports(file)];
  // A superfluous service costs a start; a test file starts a missing one itself.
  const asked = used.flatMap((place) =>
    [...textOf(place).matchAll(/\bservices\.(postgres|redis|kafka|prometheus|chromium)\(/g)].map(
      ([, it]) => it,
    ),
  );
  const services = /** @type {TestFile['services']} */ ([...new Set(asked)]);
  const startsProcesses = used.some((place) =>
    /support\/(gateway|start\/server-process)\.ts$/.test(place),
  );
  return {
    name,
    file,
    deadlineMs: 1000 * Number(declared ?? defaultDeadlineSeconds),
    services,
    env: {},
    isLong: long !== undefined,
    sharesProcess:
      declared === undefined &&
      !/^(e2e|reliability|conformance|plugins|hostile)\//.test(name) &&
      // A process has one tracer.
      !used.some((place) => place.endsWith('/e2e/traced.ts')),
    hasProjects: used.some((place) => place.endsWith('/support/shard.ts')),
    isUnit:
      services.length === 0 && !startsProcesses && !/^(e2e|reliability|conformance)\//.test(name),
  };
}

/**
 * Returns a file and its transitive imports in `test`.
 * @param {string} file
 * @returns {Set<string>}
 */
function withImports(file, seen = new Set()) {
  if (seen.has(file) || !fs.existsSync(file)) return seen;
  seen.add(file);
  for (const [, place] of textOf(file).matchAll(/ from '(\.[^']+)\.js'/g))
    withImports(path.resolve(path.dirname(file), `${place}.ts`), seen);
  return seen;
}

/** @type {Map<string, string>} */
const texts = new Map();

/** @param {string} file */
function textOf(file) {
  const text = texts.get(file) ?? fs.readFileSync(file, 'utf8');
  texts.set(file, text);
  return text;
}
