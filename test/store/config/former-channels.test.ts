import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealer } from '#core/crypto/sealing';
import { newId } from '#core/events/ids';
import type { EndpointRow } from '#store/config/endpoints';
import { convertChannels } from '#store/config/former-channels';
import { migrationsDir } from '#store/postgres/migrate';
import { ENCRYPTION_KEY, makeProject, sealed } from '../../agent/records.js';
import { migratedDatabase } from '../migrated.js';

const channels = suite('store/config/former-channels');
const secrets = sealer(ENCRYPTION_KEY);

const CHANNELS = {
  slack: { url: 'https://hooks.slack.com/services/T1' },
  teams: { url: 'https://prod.example.com/workflows/1?sig=x' },
  pagerduty: { routing_key: 'R1', api_url: 'https://events.eu.pagerduty.com' },
  opsgenie: { api_key: 'K1', api_url: 'https://api.opsgenie.com' },
  webhook: { url: 'https://example.com/hook', secret: 'a secret of a channel' },
  events: {},
};
const PLAIN = ['api_url'];

channels(
  'channels become endpoints with the same ids, and come back with `migrate down`',
  async () => {
    const db = await migratedDatabase();
    try {
      const projectId = await makeProject(db);
      const ids: Record<string, string> = {};
      for (const [type, settings] of Object.entries(CHANNELS)) {
        const id = (ids[type] = newId());
        const stored = Object.entries(settings).map(([name, value]) => [
          name,
          PLAIN.includes(name) || (type === 'webhook' && name === 'url')
            ? value
            : sealed(value, ['notification_channels', id, name]),
        ]);
        await db.knex('notification_channels').insert({
          ...{ project_id: projectId, id, name: type, type },
          settings: JSON.stringify(Object.fromEntries(stored)),
          kinds: type === 'teams' ? ['source_failing', 'endpoint_exhausted'] : null,
          enabled: type !== 'opsgenie',
        });
      }
      const names = await Promise.all([1, 2].map(() => convertChannels(db.knex, secrets)));
      assert.equal(names.flat().sort(), Object.keys(CHANNELS).sort());
      assert.equal(await convertChannels(db.knex, secrets), []);

      const rows = await db.rows<EndpointRow>('select * from endpoints order by name');
      const shown = rows.map(({ id, name, url, status, format, authentication: of }) => {
        assert.is(id, ids[name]);
        const text = of?.type === 'bearer' ? of.bearer.token : '';
        const secret = of?.type === 'secret_url' ? of.secret_url.url : text;
        const open = () => secrets.open(secret, ['endpoints', id, 'authentication']);
        return [format, url, status, secret === '' ? null : open()];
      });
      assert.equal(shown, [
        ['opsgenie', 'https://api.opsgenie.com', 'active', 'K1'],
        ['pagerduty', 'https://events.eu.pagerduty.com', 'active', 'R1'],
        ['slack', 'https://hooks.slack.com', 'active', CHANNELS.slack.url],
        ['teams', 'https://prod.example.com', 'active', CHANNELS.teams.url],
        [null, 'https://example.com/hook', 'active', null],
      ]);
      const webhook = rows.at(-1)!;
      assert.is(
        secrets.open(webhook.secrets[0]!.value, ['endpoints', webhook.id, 'secrets']),
        'a secret of a channel',
      );
      const subscriptions = await db.rows<{ name: string; event_types: string[] }>(
        'select name, event_types from subscriptions order by name',
      );
      assert.equal(Object.fromEntries(subscriptions.map((it) => [it.name, it.event_types])), {
        ...{ opsgenie: ['gateway.*'], pagerduty: ['gateway.*'], slack: ['gateway.*'] },
        teams: [
          'gateway.source.failing',
          'gateway.source.recovered',
          'gateway.source.paused',
          'gateway.delivery.exhausted',
        ],
        webhook: ['gateway.*'],
      });

      await db.rows('update endpoints set deleted_at = now() where id = $1', [ids['slack']]);
      const file = join(migrationsDir(), '0062_endpoint_formats.down.sql');
      await db.pool.query(readFileSync(file, 'utf8'));
      const back = await db.rows<{ name: string }>(
        'select name from notification_channels where deleted_at is null order by name',
      );
      assert.equal(
        back.map(({ name }) => name),
        ['events', 'opsgenie', 'pagerduty', 'teams', 'webhook'],
      );
      assert.equal(await db.rows('select from endpoints where deleted_at is null'), []);
    } finally {
      await db.close();
    }
  },
);

channels.run();
