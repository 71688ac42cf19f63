import type { MigrationStatus } from '@gateway/store/postgres';
import type { Shards } from '@gateway/store/shards';
import {
  command,
  jsonFlag,
  onEachShard,
  withShards,
  type Invocation,
} from '../../app/gateway-command.js';

/** Agents and servers do not notice a shorter wait. */
const SHORT_SECONDS = 1;

type State = MigrationStatus & { readonly shard: string };

export default command({
  description:
    'Changes nothing, and works on a database that was never migrated. Lists the tables that pending migrations block, and estimates for ' +
    'how long on this database, from the rows that Postgres counts, shard by shard. An `unknown` migration comes from a newer gateway.',
  examples: ['gateway migrate status', 'gateway migrate status --json --db-host db.internal'],
  flags: jsonFlag,
  async run(it) {
    const { migrationStatus } = await import('@gateway/store/postgres');
    const states: State[] = [];
    let isSharded = false;
    const read = ({ all }: Shards) => {
      isSharded = all.length > 1;
      return onEachShard(all, async ({ name: shard, database }, migrated) => {
        const found = await migrationStatus(database, undefined, migrated);
        states.push(...found.map((state) => ({ shard, ...state })));
      });
    };
    try {
      await withShards(it.config(), read, { migrated: false });
    } finally {
      // Shards that answered are listed also when another one failed.
      if (states.length > 0) show(states, isSharded, it);
    }
  },
});

function show(
  states: readonly State[],
  isSharded: boolean,
  { flags, log, note, table }: Invocation<{ json: boolean }>,
): void {
  const shardColumn = isSharded ? ([['SHARD', 'shard']] as const) : [];
  table(states, [
    ...shardColumn,
    ['NAME', 'name'],
    ['STATE', 'state'],
    ['APPLIED AT', ({ applied_at: at }) => (at ? `${at.toISOString().slice(0, 19)}Z` : '')],
  ]);
  const pending = states.filter(({ state }) => state === 'pending');
  const isNew = pending.length === states.length;
  const locks = pending.flatMap(({ shard, name, locks }) =>
    (locks ?? []).map((lock) => ({ shard, name, ...lock })),
  );
  if (!flags.json && !isNew && locks.length > 0) {
    log('');
    table(locks, [
      ...shardColumn,
      ['PENDING', 'name'],
      ['TABLE', 'table'],
      ['BLOCKS', 'blocks'],
      ['ROWS', 'rows'],
      ['ABOUT', ({ seconds }) => (seconds < SHORT_SECONDS ? 'a moment' : `${seconds} s`)],
    ]);
  }
  if (pending.length > 0)
    note(
      `${pending.length} pending: \`gateway migrate up\` applies ${pending.length === 1 ? 'it' : 'them'}.${isNew ? '' : ` ${meanwhile(pending)}`}`,
    );
  if (states.some(({ state }) => state === 'unknown'))
    note('The database is newer than this gateway: install the version that made it.');
}

/** The run keeps its locks to the end. */
function meanwhile(pending: readonly MigrationStatus[]): string {
  const unknown = pending.filter(({ locks }) => locks === null).map(({ name }) => name);
  const seconds = pending
    .flatMap(({ locks }) => locks ?? [])
    .reduce((sum, lock) => sum + lock.seconds, 0);
  if (unknown.length > 0)
    return `The locks that ${unknown.join(', ')} needs are not declared: stop agents and servers.`;
  if (seconds < SHORT_SECONDS) return 'Agents and servers may keep running.';
  return `Agents and servers may keep running, but work on these tables waits for about ${Math.ceil(seconds)} s: choose a time with little traffic.`;
}
