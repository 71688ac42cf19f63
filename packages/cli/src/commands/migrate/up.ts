import { command, onEachShard, withShards } from '../../app/gateway-command.js';

export default command({
  description:
    'Run it before the first start and after an upgrade. Migrates the database of the settings, then each shard; on each, either all migrations ' +
    'are applied or none. A concurrent run waits. Agents and servers may keep running: the migration waits for their locks half a second at ' +
    'a time, for up to a minute. After a failure or a stop, run it again: it continues with what is left.',
  examples: [
    'gateway migrate up',
    'gateway migrate up --db-host db.internal --db-database gateway',
  ],
  async run({ config, log, note }) {
    const { migrateUp } = await import('@gateway/store/postgres');
    await withShards(
      config(),
      ({ all }) =>
        onEachShard(all, async ({ database }, shard, prefix) => {
          const onWait = (why: string) => note(`${prefix}waiting: ${why}`);
          const applied = await migrateUp(database, { shard, onWait });
          for (const name of applied) log(`${prefix}applied ${name}`);
          if (applied.length === 0) log(`${prefix}nothing to do: the database is up to date`);
        }),
      { migrated: false },
    );
  },
});
