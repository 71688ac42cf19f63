import type { Knex } from 'knex';
import { isSealed, type Sealer } from '@gateway/core/crypto';
import { insertEndpoint, type EndpointAuthentication, type EndpointFormat } from './endpoints.js';
import { TOLD_BY, type NotificationKind } from './notifications.js';
import { generateSecret, sealSecret } from './secrets.js';
import { insertSubscription } from './subscriptions.js';

interface FormerChannel {
  readonly project_id: string;
  readonly id: string;
  readonly name: string;
  readonly type: EndpointFormat | 'webhook' | 'events';
  readonly settings: Readonly<Record<string, string>>;
  readonly kinds: readonly NotificationKind[] | null;
  readonly enabled: boolean;
}

/**
 * Makes endpoints, with the same ids, of the notification channels of the release before, and returns
 * their names. The rows of the channels stay until the next release drops their table, so that
 * `migrate down` can restore them; `next_attempt_at` tells them from those that people deleted.
 *
 * @throws GatewayError `not_unsealable` if a secret was sealed with another key
 */
export function convertChannels(knex: Knex, sealer: Sealer): Promise<string[]> {
  return knex.transaction(async (trx) => {
    const channels = await trx('notification_channels')
      .whereNull('deleted_at')
      .orderBy('id')
      .forUpdate()
      .skipLocked()
      .select<FormerChannel[]>('*');
    for (const channel of channels) {
      await insertEndpointOf(trx, channel, sealer);
      await trx('notification_channels')
        .where({ id: channel.id })
        .update({ deleted_at: trx.fn.now(), next_attempt_at: 'infinity' });
    }
    return channels.map(({ name }) => name);
  });
}

async function insertEndpointOf(
  trx: Knex.Transaction,
  { project_id, id, name, type, kinds, enabled, ...channel }: FormerChannel,
  sealer: Sealer,
): Promise<void> {
  // Its events go to the endpoints that subscribe to them.
  if (type === 'events') return;
  const settings = Object.fromEntries(
    Object.entries(channel.settings).map(([setting, value]) => [
      setting,
      isSealed(value) ? sealer.open(value, ['notification_channels', id, setting]) : value,
    ]),
  );
  const { routing_key = '', api_key = routing_key, secret = generateSecret() } = settings;
  const { api_url = '', url = api_url } = settings;
  const seal = (text: string) => sealer.seal(text, ['endpoints', id, 'authentication']);
  const isSecretUrl = type === 'slack' || type === 'teams';
  const authentication: EndpointAuthentication = isSecretUrl
    ? { type: 'secret_url', secret_url: { url: seal(url) } }
    : { type: 'bearer', bearer: { token: seal(api_key) } };
  await insertEndpoint(trx, project_id, {
    id,
    name,
    url: isSecretUrl ? new URL(url).origin : url,
    secrets: [sealSecret(secret, id, sealer)],
    ...(type !== 'webhook' && { format: type, authentication }),
  });
  await insertSubscription(trx, project_id, {
    name,
    endpoint_id: id,
    event_types: kinds ? kinds.flatMap((kind) => TOLD_BY[kind]) : ['gateway.*'],
    is_disabled: !enabled,
  });
}
