import type { Shards } from '@gateway/store/shards';
import { GatewayCommand, onEachShard, withShards } from '../../app/gateway-command.js';

export default class MigrateUp extends GatewayCommand {
  static override description =
    'Run it before the first start and after an upgrade. Migrates the database of the settings, then each shard; on each, either all migrations ' +
    'are applied or none. A concurrent run waits. Agents and servers may keep running: the migration waits for their locks half a second at ' +
    'a time, for up to a minute. After a failure or a stop, run it again: it continues with what is left.';
  static override examples = [
    'gateway migrate up',
    'gateway migrate up --db-host db.internal --db-database gateway',
  ];

  async run(): Promise<void> {
    const { flags } = await this.parse(MigrateUp);
    const { migrateUp } = await import('@gateway/store/postgres');
    const migrate = ({ all }: Shards) =>
      onEachShard(all, async ({ database }, shard, prefix) => {
        const onWait = (why: string) => this.logToStderr(`${prefix}waiting: ${why}`);
        const applied = await migrateUp(database, { shard, onWait });
        for (const name of applied) this.log(`${prefix}applied ${name}`);
        if (applied.length === 0) this.log(`${prefix}nothing to do: the database is up to date`);
      });
    await withShards(this.resolve(flags).config, migrate, { migrated: false });
  }
}
