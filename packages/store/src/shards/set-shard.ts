import { GatewayError } from '@gateway/core/errors';
import { withAdvisoryLock } from '../postgres/advisory-lock.js';
import { openDatabase, type Database } from '../postgres/database.js';
import { requireOneHost, requireTables, type AddOptions } from './add-shard.js';
import { explainShardError, requireReadyShard, sessionOf, shardSettings } from './open-shards.js';
import { listShards, requireShard, setAddress, type ShardAddress } from './shards.js';

/** The fields of an address to change, with the password in plain text. */
export type ChangedAddress = Partial<ShardAddress>;

/**
 * Changes the address or the password of a shard, after it has found the tables of the shard there.
 * Agents and servers follow within seconds: they connect with a new password from then on, and open
 * another address anew.
 *
 * @throws GatewayError `not_found`; `conflict` if the shard has no address of its own, or if its
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
      throw new GatewayError('conflict', {
        sentence: `the shard ${name} is in the database of the settings`,
        fix: 'change the settings `database.*` of every server and agent',
      });
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
    throw new GatewayError('conflict', {
      sentence: 'another shard is being added or changed',
      fix: 'wait until it is, and try again',
    });
}
