import { withAdvisoryLock } from '../postgres/advisory-lock.js';
import { openDatabase, type Database } from '../postgres/database.js';
import { requireOneHost, requireTables, type AddOptions } from './add-shard.js';
import { explainShardError, requireReadyShard, sessionOf, shardSettings } from './open-shards.js';
import { conflict, listShards, requireShard, setAddress, type ShardAddress } from './shards.js';

/** With the password in plain text. */
export type ChangedAddress = Partial<ShardAddress>;

/**
 * Requires that the tables of the shard are at the new address. Agents and servers follow within
 * seconds: they connect with a new password from then on, and open another address anew.
 *
 * @throws GatewayError `not_found`; `conflict` if the shard has no address of its own, or its
 *   tables are not there; `migration_pending`; `shard_unusable`
 */
export async function setShard(
  control: Database,
  name: string,
  changed: ChangedAddress,
  options: AddOptions,
): Promise<void> {
  const done = await withAdvisoryLock(control.sessions, 'gateway.shards', async (client) => {
    const { address: former, ...place } = await requireShard(client, name);
    if (!former)
      throw conflict(
        `the shard ${name} is in the database of the settings`,
        'change the settings `database.*` of every server and agent',
      );
    const address = { ...former, ...changed };
    if (typeof changed.password === 'string')
      address.password = options.seal(changed.password, ['shards', name, 'password']);
    requireOneHost(address.host);
    const settings = shardSettings({ name, address }, options);
    let database: Database | undefined;
    try {
      database = openDatabase(settings, { poolSize: 2, name: 'gateway', ...sessionOf(place) });
      await requireTables(database, await listShards(client), { name, settings });
      await requireReadyShard({ name, database, settings });
    } catch (error) {
      throw explainShardError(error, { name, settings });
    } finally {
      await database?.close();
    }
    await setAddress(client, name, address);
    return true;
  });
  if (!done)
    throw conflict('another shard is being added or changed', 'wait until it is, and try again');
}
