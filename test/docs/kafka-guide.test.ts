// deadline: 240 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { kafka, randomName } from '../support/kafka.js';
import { production, subscribed, type Created } from '../support/production.js';
import { installed } from '../support/start/packages.js';
import { until } from '../support/until.js';
import { blocksOf, runBlocks } from './page.js';

const guide = suite('docs/kafka-guide');

const DAY_MS = 86_400_000;

interface Listed {
  readonly content: readonly Created[];
}

guide(
  'a source is created, moved back and moved to an offset as docs/guides/kafka.md says',
  async () => {
    for (const program of ['curl', 'jq']) installed(program, [program], 'for the guides');
    const [topics, receiver] = await Promise.all([kafka(), endpoint()]);
    const gateway = await production({ agents: 2 });
    try {
      await subscribed(gateway, receiver.url);
      const topic = await topics.topic();
      const group = randomName('group');
      const { username, password } = topics.users.scram;
      const nowMs = Date.now();
      const since = new Date(nowMs - 40 * DAY_MS).toISOString();
      const replaced = {
        '["kafka-1.example.com:9092", "kafka-2.example.com:9092"]': JSON.stringify([
          topics.listeners.saslPlaintext,
        ]),
        '"orders", "consumer_group_id": "gateway"': `"${topic}", "consumer_group_id": "${group}"`,
        '"username": "gateway", "password": "…", "tls": true': `"username": "${username}", "password": "${password}"`,
        '2026-11-21T09:00:00Z': since,
      };
      const run = (section: RegExp, more: Readonly<Record<string, string>> = {}) => {
        const blocks = blocksOf('docs/guides/kafka.md').filter((it) =>
          section.test(it.section ?? ''),
        );
        assert.ok(blocks.length > 0);
        return runBlocks(blocks, {
          cwd: gateway.run.folder,
          env: {
            ...gateway.run.env,
            GATEWAY_URL: `http://127.0.0.1:${gateway.serverPort}`,
            GATEWAY_KEY: gateway.apiKey,
            PROJECT_ID: gateway.projectId,
            ...more,
          },
          replaced,
        });
      };
      await run(/Create the source/);
      const { content: sources } = await gateway.api<Listed>('GET', '/sources');
      const SOURCE_ID = sources[0]!.uid;

      const aged = (n: number, days: number) => ({
        value: JSON.stringify({ event_type: 'order', data: { n } }),
        timestamp: String(nowMs - days * DAY_MS),
      });
      await topics.produce(topic, [aged(0, 50), aged(1, 39), aged(2, 20), aged(3, 1)]);
      await receiver.received(4);
      await until('the commit', async () => (await topics.committed(group, topic))[0] === 4);
      const recorded = () =>
        gateway.database.rows<{ position: string }>('select position from source_positions');
      await until('the record', async () => (await recorded())[0]?.position.startsWith('4@'));

      await run(/Move a source/, { SOURCE_ID });
      await until(
        'it to be read again',
        async () => (await topics.committed(group, topic))[0] === 4,
      );
      assert.is((await recorded())[0]?.position.split('@')[0], '4', 'what was read stays known');
      const state = await gateway.api<{ paused_at: string | null }>('GET', `/sources/${SOURCE_ID}`);
      assert.is(state.paused_at, null);
      assert.is(receiver.requests.length, 4, 'nothing is delivered a second time');

      const rewind = (body: object) =>
        gateway.api<{ again: number; expired: number }>(
          'POST',
          `/sources/${SOURCE_ID}/rewind`,
          body,
        );
      // As retention does with the events of these days.
      for (const table of ['events', 'event_deliveries', 'delivery_attempts'])
        await gateway.shard.rows(
          `delete from ${table} where occurred_at < now() - interval '30 days'`,
        );
      await rewind({ to: 'earliest' });
      await until(
        'it to be read again',
        async () => (await topics.committed(group, topic))[0] === 4,
      );
      assert.is(receiver.requests.length, 4, 'events that are gone are not delivered again');
      const again = await rewind({ to: 'earliest', redeliver: true });
      assert.equal([again.again, again.expired], [4, 2]);
      const requests = await receiver.received(6);
      const last = requests
        .slice(4)
        .map(({ body }) => JSON.parse(body.toString()) as { n?: number });
      assert.is(last.length, 2, 'unless they are to be');
    } finally {
      await gateway.close();
      await Promise.all([topics.close(), receiver.close()]);
    }
  },
);

guide.run();
