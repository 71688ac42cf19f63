import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { settings, type SettingsTable } from '#core/config/settings';
import { attacks } from '../../scripts/docs/attacks.mjs';
import { limits } from '../../scripts/docs/limits.mjs';
import { files } from './house.js';

const meta = suite('meta/limits');

const rows = Object.values(limits).flat();

/** Numbers that do not limit tenants: the operation of the instance, and parts of other limits. */
const OF_THE_OPERATOR = [
  /^(agent|database|kv|smtp|notifications|retention|archive|billing)\./,
  /^server\.http\.((agent_)?port|drain_delay_seconds)$/,
  /^query_timeout$/,
  /^ingest\.idempotency_window_seconds$/,
  /^transform\.pause_(window_)?seconds$/,
  /^circuit_breaker\.(?!failure_threshold)/,
];

meta('each setting that is a number is a limit with a row, or bounds nothing of a tenant', () => {
  const numbers = Object.entries<SettingsTable[string]>(settings).flatMap(([key, { type }]) =>
    ['integer', 'number'].includes(type) && !OF_THE_OPERATOR.some((of) => of.test(key)) ? key : [],
  );
  // A setting can bound several stages.
  const bounding = new Set(rows.flatMap((row) => ('setting' in row ? row.setting : [])));
  assert.equal([...bounding].sort(), numbers.sort());
});

meta(
  'each limit names a stage that exists, and each attack is met by a limit and proved by a test',
  () => {
    const present = files();
    const exists = (name: string) =>
      present.some((file) => file === name || file.endsWith(`/${name}`));
    const stages = rows
      .map(({ stage }) => stage.replace('/', '/src/'))
      .filter((stage) => !exists(`${stage}.ts`));
    assert.equal(stages, []);
    const met = new Set<string>(rows.flatMap(({ against = [] }) => against));
    assert.equal(
      Object.keys(attacks).filter((name) => !met.has(name)),
      [],
    );
    const tests = Object.values(attacks).flatMap(({ tests }): readonly string[] => tests);
    assert.equal(
      tests.filter((test) => !present.includes(`test/${test}.test.ts`)),
      [],
    );
  },
);

meta.run();
