// @ts-check

/** @typedef {import('./files.mjs').TestFile} TestFile */

/**
 * Where the projects of a test are: `second` is another Postgres database, `citus` a schema on a
 * Citus cluster. `all` are the files of `npm run test:shards` and `test:citus`; `share` those that
 * `npm test` also runs there. `not` are tests of the Postgres server of the settings: its replicas,
 * and on Citus those that cut it off or let it crash.
 * @type {Record<'second' | 'citus', { all: string[], share: string[], not: string[] }>}
 */
export const kinds = {
  second: {
    all: ['server/routes/', 'server/ingest/', 'e2e/'],
    share: ['server/routes/events/', 'e2e/agent-http'],
    not: ['e2e/replicas'],
  },
  citus: {
    all: [
      ...['store/events/', 'store/deliveries/', 'store/quarantine/', 'store/counts/'],
      ...['store/retention/archive-first', 'store/retention/cutoffs'],
      ...['store/retention/maintenance', 'store/retention/retention'],
      'docs/shards-guide',
      'e2e/',
    ],
    share: ['e2e/quarantine'],
    not: ['e2e/replicas', 'e2e/failover', 'e2e/logs'],
  },
};

/** Each file has more time on Citus: a database of the cluster takes seconds to create. */
const citusFactor = 4;

/**
 * Returns the files that a shard makes a difference to, to run on it.
 * @param {TestFile[]} files
 * @param {'second' | 'citus'} kind
 * @returns {TestFile[]}
 */
export function onShard(files, kind) {
  const { not } = kinds[kind];
  return files
    .filter(({ name, hasProjects }) => hasProjects || (kind === 'citus' && isOnCluster(name)))
    .filter(({ name }) => !not.includes(name))
    .map((test) => placed(test, kind));
}

/**
 * Whether the databases that the test itself creates are on Citus. Tests of the store have no
 * projects.
 * @param {string} name
 */
function isOnCluster(name) {
  return name.startsWith('store/') || name === 'docs/shards-guide';
}

/**
 * @param {TestFile} test
 * @param {'second' | 'citus'} kind
 * @returns {TestFile}
 */
function placed(test, kind) {
  const name = `${test.name} (${kind})`;
  if (kind === 'second') return { ...test, name, env: { TEST_SHARD: kind } };
  return {
    ...test,
    name,
    env: isOnCluster(test.name) ? { TEST_DATABASE: kind } : { TEST_SHARD: kind },
    services: [...test.services, 'citus'],
    deadlineMs: test.deadlineMs * citusFactor,
    // A test that hangs on Citus would hide the rest of its process.
    sharesProcess: false,
    isUnit: false,
  };
}

/**
 * Returns the files that `npm test` also runs on a shard.
 * @param {TestFile[]} files
 * @returns {TestFile[]}
 */
export function shareOnShards(files) {
  return /** @type {('second' | 'citus')[]} */ (Object.keys(kinds)).flatMap((kind) =>
    onShard(
      files.filter(({ name }) => kinds[kind].share.some((part) => name.startsWith(part))),
      kind,
    ),
  );
}
