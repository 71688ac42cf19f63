import type { Shard, Shards } from '@gateway/store/shards';
import {
  command,
  onEachShard,
  switchFlag,
  valueFlag,
  withShards,
  wrongUse,
} from '../../app/gateway-command.js';

export default command({
  description:
    'Stop server and agents first: they refuse to start on a database that lacks a migration. Drops what the migration added, ' +
    'with its contents, on every shard. Tables with rows that nothing recreates, such as events, accounts or the audit log, are dropped only with --drop-data.',
  examples: ['gateway migrate down', 'gateway migrate down --max 2'],
  flags: {
    max: valueFlag('<integer>', 'Maximum number of migrations to roll back. [default: 1]'),
    'drop-data': switchFlag(
      'Also roll back migrations that drop tables with rows that nothing recreates. Their data is lost.',
    ),
  },
  async run({ flags, config, log, note }) {
    const { max = '1', 'drop-data': dropData } = flags;
    if (!/^[1-9]\d{0,5}$/.test(max))
      throw wrongUse(
        `--max must be a positive integer, not "${max}"`,
        'omit it to roll back one migration',
      );
    const { migrateDown } = await import('@gateway/store/postgres');
    const rollBack = async ({ all }: Shards) => {
      const applied = await appliedOf(all);
      const newest = [...new Set([...applied.values()].flat())].sort().reverse();
      const undone = newest.slice(0, Number(max));
      await onEachShard(all, async ({ name: place, database }, shard, prefix) => {
        const here = applied.get(place)!.filter((name) => undone.includes(name));
        const onWait = (why: string) => note(`${prefix}waiting: ${why}`);
        const options = { max: here.length, shard, dropData, onWait };
        for (const name of await migrateDown(database, options))
          log(`${prefix}rolled back ${name}`);
      });
      if (undone.length === 0) log('nothing to do: no migration is applied');
    };
    await withShards(config(), rollBack, { migrated: false });
  },
});

/**
 * None for a shard that is unavailable. The newest are counted over all shards, so that a run after
 * a stop rolls back what is left of them, and nothing older.
 */
async function appliedOf(all: readonly Shard[]): Promise<ReadonlyMap<string, string[]>> {
  const [{ migrationStates }, { migratedAs }] = await Promise.all([
    import('@gateway/store/postgres'),
    import('@gateway/store/shards'),
  ]);
  const read = async (shard: Shard) => {
    const as = migratedAs(shard);
    const states = migrationStates(shard.database, undefined, as);
    const rows = await (as === undefined ? states : states.catch(() => []));
    const applied = rows.filter(({ applied_at: at }) => at !== null);
    return [shard.name, applied.map(({ name }) => name)] as const;
  };
  return new Map(await Promise.all(all.map(read)));
}
