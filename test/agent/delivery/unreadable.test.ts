import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { reportProcessHealth } from '#agent/liveness/health';
import { sealer } from '#core/crypto/sealing';
import { newId } from '#core/events/ids';
import { Health } from '#core/process/health';
import { until } from '../../support/until.js';
import { migratedDatabase } from '../../store/migrated.js';
import { delivered, states } from '../hold.js';
import { Messages } from '../ready.js';
import { makeEndpoint, makeSubscription } from '../records.js';
import { agentConfig } from '../running.js';
import { withAgent, type Scene } from '../scene.js';

const unreadable = suite('agent/delivery/unreadable');

const db = await migratedDatabase();
unreadable.after(() => db.close());

const other = sealer(randomBytes(32).toString('base64'));
const secret = (value: string) => [
  { id: newId(), value, created_at: new Date().toISOString(), expires_at: null },
];

/**
 * Values that a newer release can save, by column of an endpoint, and this release's reason why it
 * cannot read them.
 */
const newer: Readonly<
  Record<string, readonly [column: string, value: (endpointId: string) => unknown, reason: RegExp]>
> = {
  'a secret in another format': [
    'secrets',
    () => secret('sealed:v9:abc'),
    /a secret is sealed in a way that this version does not know/,
  ],
  'a secret of another key': [
    'secrets',
    (id) => secret(other.seal('whsec_x', ['endpoints', id, 'secrets'])),
    /cannot be decrypted/,
  ],
  'another authentication': [
    'authentication',
    () => ({ type: 'spiffe', spiffe: {} }),
    /its authentication "spiffe" is not known/,
  ],
  'an authentication of other fields': [
    'authentication',
    () => ({ type: 'bearer', tokens: [] }),
    /its secrets have a form that this version does not know/,
  ],
  'another retry strategy': [
    'strategy',
    () => ({ type: 'fibonacci', duration: 1, retry_count: 1 }),
    /its strategy "fibonacci" is not known/,
  ],
  'a certificate whose key is sealed in another format': [
    'mtls_client_cert',
    () => ({ client_cert: 'x', client_key: 'sealed:v9:abc', expires_at: new Date().toISOString() }),
    /a secret is sealed in a way/,
  ],
};

const scene = (
  test: (scene: Scene & { messages: Messages; reason: () => string }) => Promise<void>,
) =>
  withAgent(db, async (given) => {
    const { wiring, configCache, kv, log, projectId } = given.running;
    const health = new Health();
    const { destination, successStreak } = wiring;
    const config = agentConfig(db.url);
    const stop = reportProcessHealth({
      config,
      configCache,
      kv,
      log,
      health,
      destination,
      successStreak,
    });
    try {
      await test({
        ...given,
        messages: new Messages(projectId),
        reason: () => health.of('unreadable')?.reason ?? '',
      });
    } finally {
      stop();
    }
  });

for (const [what, [column, value, reason]] of Object.entries(newer))
  unreadable(
    `${what}: no attempt is made, whoever can read the endpoint delivers, and health says so`,
    () =>
      scene(async ({ running, messages, at, endpointId, reason: told }) => {
        const { configCache, wiring } = running;
        const [before] = await db.rows<{ value: string | null }>(
          `select ${column}::text as value from endpoints where id = $1`,
          [endpointId],
        );
        const set = async (text: string | null) => {
          await db.rows(`update endpoints set ${column} = $2::jsonb where id = $1`, [
            endpointId,
            text,
          ]);
          await configCache.refresh();
        };
        await set(JSON.stringify(value(endpointId)));
        const { id: readable } = await makeEndpoint(db, running.projectId, { url: at.url });
        await makeSubscription(db, running.projectId, { endpointId: readable });
        await configCache.refresh();
        for (const message of messages.many(3)) wiring.eventWriter.push(message);
        await delivered(running, readable, 3, 'the neighbour to be sent to');
        await until('health to tell', () => reason.test(told()));
        assert.match(told(), endpointId);
        await until(
          'the deliveries to be left',
          async () => (await states(running, endpointId))['scheduled due'] === 3,
        );
        // Neither scan for due deliveries takes them.
        wiring.claimer.checkAll();
        wiring.claimer.overdue(running.projectId);
        await until('the claim', async () => (await states(running, readable))['success'] === 3);
        assert.equal(await states(running, endpointId), { 'scheduled due': 3 });
        await set(before!.value);
        wiring.claimer.checkAll();
        await delivered(running, endpointId, 3);
        assert.equal(await db.rows('select distinct attempts from event_deliveries'), [
          { attempts: 1 },
        ]);
        assert.is(at.requests.length, 6);
        await until('health to be well', () => told() === '');
      }),
  );

unreadable('a signature of another hash: nothing is signed with a wrong one', () =>
  scene(async ({ running, messages, at, endpointId, reason }) => {
    const { configCache, wiring, projectId } = running;
    const set = async (config: object) => {
      await db.rows('update projects set config = $2 where id = $1', [projectId, config]);
      await configCache.refresh();
    };
    await set({ signature: { header: 'x-signature', hash: 'SHA3', encoding: 'hex' } });
    wiring.eventWriter.push(messages.ready({}));
    await until(
      'the delivery to be left',
      async () => (await states(running, endpointId))['scheduled due'] === 1,
    );
    await until('health to tell', () =>
      /its signature hash "SHA3" is not known to this version/.test(reason()),
    );
    await set({});
    wiring.claimer.checkAll();
    await delivered(running, endpointId, 1);
    assert.is(at.requests.length, 1);
  }),
);

unreadable(
  'a filter with an operator of a newer release: events that subscriptions decide on wait, and others go',
  () =>
    scene(async ({ running, messages, at, endpointId, reason }) => {
      const { configCache, wiring, projectId } = running;
      const subscription = await makeSubscription(db, projectId, { endpointId });
      const set = async (filter: object) => {
        await db.rows('update subscriptions set filter = $2 where id = $1', [subscription, filter]);
        await configCache.refresh();
      };
      await set({ body: { a: { $resembles: 1 } } });
      wiring.eventWriter.push(messages.ready({}));
      wiring.eventWriter.push(messages.ready({ endpointId }));
      await at.received(1);
      const statuses = () =>
        db.rows('select status, endpoint_id is null as by_subscription from events order by 2');
      assert.equal(await statuses(), [
        { status: 'processed', by_subscription: false },
        { status: 'pending', by_subscription: true },
      ]);
      assert.equal(configCache.unroutable, [projectId]);
      await until('health to tell', () =>
        reason().includes(`the filter of subscription ${subscription}`),
      );
      await set({});
      wiring.start();
      await delivered(running, endpointId, 3, 'a delivery of each subscription');
    }),
);

unreadable.run();
