import { createHmac } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { verify } from '#client/verify';
import { newId } from '#core/events/ids';
import { setEndpointStatus } from '#store/config/endpoints';
import {
  insertChannel,
  testChannel,
  type ChannelRow,
  type ChannelType,
} from '#store/config/notification-channels';
import { endNotifications, raiseNotifications } from '#store/config/notifications';
import { startAgent } from '@gateway/agent';
import { migratedDatabase } from '../../store/migrated.js';
import { endpoint as receiver, type Endpoint } from '../../support/endpoint.js';
import { until, within } from '../../support/until.js';
import { makeEndpoint, makeProject, makeSubscription, sealed } from '../records.js';
import { agentConfig, keptLog, pluginsOf, type Migrated } from '../running.js';

const channels = suite('agent/notifications/channel-outbox');

interface Scene {
  readonly db: Migrated;
  readonly at: Endpoint;
  readonly projectId: string;
  readonly endpointId: string;
  channel(
    type: ChannelType,
    settings: Readonly<Record<string, string>>,
    fields?: Partial<ChannelRow>,
  ): Promise<ChannelRow>;
  raise(kind: 'endpoint_failing' | 'source_lost', subject?: string): Promise<void>;
  row(id: string): Promise<ChannelRow>;
}

const SECRETS = ['secret', 'routing_key', 'api_key'];

/** Runs a test with an agent without SMTP, and a receiver that the channels use. */
async function scene(
  test: (scene: Scene) => Promise<void>,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const [db, at] = await Promise.all([migratedDatabase(), receiver()]);
  let agent: { close(): Promise<void> } | undefined;
  try {
    const projectId = await makeProject(db);
    const { id: endpointId } = await makeEndpoint(db, projectId, {
      url: at.url,
      name: 'ware & <b>',
    });
    agent = await within(
      startAgent({
        config: agentConfig(db.url, settings),
        plugins: pluginsOf(),
        log: keptLog().log,
      }),
      30_000,
      'the agent to start',
    );
    const channel: Scene['channel'] = (type, given, fields = {}) => {
      const id = newId();
      const isSecret = (name: string) =>
        SECRETS.includes(name) || (name === 'url' && type !== 'webhook');
      const stored = Object.fromEntries(
        Object.entries(given).map(([name, value]) => [
          name,
          isSecret(name) ? sealed(value, ['notification_channels', id, name]) : value,
        ]),
      );
      return insertChannel(db.knex, projectId, {
        id,
        name: type,
        type,
        settings: stored,
        ...fields,
      });
    };
    const raise: Scene['raise'] = async (kind, subject = endpointId) => {
      const facts = { failures: 3, error: 'It answered 500.' };
      await raiseNotifications(db.pool, [{ kind, projectId, subject, facts }], {
        agentIdOf: () => 0,
        quietSeconds: 0,
        isMailed: false,
      });
    };
    const row = async (id: string) =>
      (await db.rows<ChannelRow>('select * from notification_channels where id = $1', [id]))[0]!;
    await within(test({ db, at, projectId, endpointId, channel, raise, row }), 75_000, 'the test');
  } finally {
    if (agent) await within(agent.close(), 40_000, 'the agent to close');
    await at.close();
    await db.close();
  }
}

const json = ({ body }: { body: Buffer }) =>
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  JSON.parse(body.toString()) as Record<string, any>;

channels('each type receives a failure and its end in its own form', () =>
  scene(async ({ db, at, endpointId, channel, raise }) => {
    const base = at.url;
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    await channel('slack', { url: `${base}/slack` });
    await channel('teams', { url: `${base}/teams` });
    await channel('pagerduty', { routing_key: 'R1', api_url: base });
    await channel('opsgenie', { api_key: 'K1', api_url: `${base}/` });
    await channel('webhook', { url: `${base}/hook`, secret });
    await channel('webhook', { url: `${base}/other` }, { kinds: ['source_lost'] });
    await channel('webhook', { url: `${base}/off` }, { enabled: false });
    await raise('endpoint_failing');
    await at.received(5);
    await endNotifications(db.pool, 'endpoint_failing', [endpointId]);
    const requests = await at.received(10, { withinMs: 40_000 });
    const of = (path: string) => requests.filter(({ url }) => url === path);

    const [failing, over] = of('/slack').map(json);
    assert.match(failing!['text'], /^Endpoint ware &amp; &lt;b&gt; of project shop is failing\n/);
    assert.match(failing!['text'], 'Last error: It answered 500.');
    assert.match(over!['text'], /^Resolved: Endpoint/);

    const card = json(of('/teams')[0]!)['attachments'][0];
    assert.is(card.contentType, 'application/vnd.microsoft.card.adaptive');
    const [title, , { items }] = card.content.body;
    assert.is(title.inlines[0].text, 'Endpoint ware & <b> of project shop is failing');
    assert.ok(
      items.some(
        (it: { inlines: { text: string }[] }) => it.inlines[1]!.text === 'It answered 500.',
      ),
    );

    const [trigger, resolve] = of('/v2/enqueue').map(json);
    assert.equal(
      [trigger!['routing_key'], trigger!['event_action'], trigger!['payload'].severity],
      ['R1', 'trigger', 'error'],
    );
    assert.equal(
      [resolve!['event_action'], resolve!['dedup_key']],
      ['resolve', trigger!['dedup_key']],
    );

    const [alert] = of('/v2/alerts');
    assert.is(alert!.headers['authorization'], 'GenieKey K1');
    const { alias } = json(alert!);
    assert.is(of(`/v2/alerts/${alias}/close?identifierType=alias`).length, 1);

    const [hook, ended] = of('/hook');
    assert.equal(
      [json(hook!)['type'], json(hook!)['action'], json(ended!)['action'], json(hook!)['about']],
      ['endpoint_failing', 'trigger', 'resolve', endpointId],
    );
    const signedText = `${hook!.headers['webhook-id']}.${hook!.headers['webhook-timestamp']}.${hook!.body}`;
    const mac = createHmac('sha256', Buffer.alloc(32, 7)).update(signedText).digest('base64');
    assert.is(hook!.headers['webhook-signature'], `v1,${mac}`);
    assert.equal([of('/other').length, of('/off').length], [0, 0]);
  }),
);

channels('a failed request is tried again and is visible, a refused notification is given up', () =>
  scene(async ({ db, at, channel, raise, row }) => {
    at.answer([{ status: 503, body: 'later' }, {}]);
    const { id } = await channel('webhook', { url: at.url });
    await raise('endpoint_failing');
    await until('the error', async () => (await row(id)).last_error === 'It answered 503: later');
    await at.received(2, { withinMs: 40_000 });
    await until('the success', async () => (await row(id)).last_sent_at !== null);
    assert.equal([(await row(id)).last_error, (await row(id)).failures], [null, 0]);
    at.answer({ status: 400, body: 'no such field' });
    await raise('source_lost', `${newId()} 3`);
    await until(
      'the refusal',
      async () => (await row(id)).last_error === 'It answered 400: no such field',
    );
    assert.equal(await db.rows('select from channel_notifications'), []);
  }),
);

channels('several failures share a message, a test reaches only its channel', () =>
  scene(async ({ db, at, projectId, channel }) => {
    const slack = await channel('slack', { url: `${at.url}/slack` }, { enabled: false });
    await channel('webhook', { url: `${at.url}/hook` });
    await testChannel(db.knex, slack);
    const [test] = await at.received(1);
    assert.is(test!.url, '/slack');
    assert.match(json(test!)['text'], /^Test of the channel slack of project shop\n/);
    await db.rows(`update notification_channels set enabled = type = 'slack'`);
    const names = ['one', 'two', 'three'];
    const failing = await Promise.all(
      names.map((name) => makeEndpoint(db, projectId, { url: at.url, name })),
    );
    await raiseNotifications(
      db.pool,
      failing.map(({ id: subject }) => ({
        kind: 'endpoint_failing' as const,
        projectId,
        subject,
        facts: { failures: 3 },
      })),
      { agentIdOf: () => 0, quietSeconds: 0 },
    );
    const [, several] = await at.received(2, { withinMs: 40_000 });
    assert.match(json(several!)['text'], /^3 endpoints are failing, organisation Acme\n/);
    assert.is(at.requests.length, 2);
  }),
);

channels('a refused group is sent in parts, and only what is refused alone is given up', () =>
  scene(async ({ db, at, projectId, channel, row }) => {
    at.answer(({ body }) => ({
      status: body.length > 4_500 ? 413 : body.includes('poisoned') ? 400 : 200,
    }));
    const { id } = await channel('teams', { url: at.url });
    const names = Array.from({ length: 12 }, (_, n) => (n === 7 ? 'poisoned' : `endpoint ${n}`));
    const failing = await Promise.all(
      names.map((name) => makeEndpoint(db, projectId, { url: at.url, name })),
    );
    await raiseNotifications(
      db.pool,
      failing.map(({ id: subject }) => ({
        kind: 'endpoint_failing' as const,
        projectId,
        subject,
        facts: { failures: 3 },
      })),
      { agentIdOf: () => 0, quietSeconds: 0 },
    );
    await until(
      'all to be sent or given up',
      async () => (await db.rows('select from channel_notifications')).length === 0,
      { withinMs: 60_000 },
    );
    const taken = at.requests.filter(
      ({ body }) => body.length <= 4_500 && !body.includes('poisoned'),
    );
    const sent = taken.map(({ body }) => body.toString()).join();
    for (const { name, id: subject } of failing)
      assert.is(sent.split(`(${subject})`).length, name === 'poisoned' ? 1 : 2, name);
    const alone = at.requests.filter(({ body }) => body.includes('poisoned')).at(-1);
    assert.is(alone!.body.toString().includes('endpoint '), false);
    assert.ok((await row(id)).last_sent_at);
  }),
);

channels('an address that endpoints may not use is refused to channels too', () =>
  scene(
    async ({ at, channel, raise, row }) => {
      const { id } = await channel('webhook', { url: at.url });
      await raise('endpoint_failing');
      await until('the error', async () => (await row(id)).last_error !== null);
      assert.match((await row(id)).last_error!, '127.0.0.1');
      assert.is(at.requests.length, 0);
    },
    { delivery: { allowed_networks: [] } },
  ),
);

channels('a disabled endpoint is resolved when it is activated', () =>
  scene(async ({ db, at, projectId, endpointId, channel }) => {
    await channel('pagerduty', { routing_key: 'R1', api_url: at.url });
    const { deactivateEndpoint } = await import('#store/config/endpoints');
    await deactivateEndpoint(db.pool, projectId, endpointId, 'gone', { error: 'gone' }, false);
    await at.received(1);
    await setEndpointStatus(db.knex, projectId, endpointId, { status: 'active', reason: null });
    const [trigger, resolve] = (await at.received(2, { withinMs: 40_000 })).map(json);
    assert.equal(
      [trigger!['event_action'], resolve!['event_action'], resolve!['dedup_key']],
      ['trigger', 'resolve', trigger!['dedup_key']],
    );
  }),
);

channels('a channel of events makes signed events, once for all channels of a project', () =>
  scene(async ({ db, at, projectId, endpointId, channel, raise, row }) => {
    const receiving = async (
      path: string,
      eventTypes: string[],
      owner_id: string | null = null,
    ) => {
      const made = await makeEndpoint(db, projectId, { url: `${at.url}${path}`, owner_id });
      await makeSubscription(db, projectId, { endpointId: made.id, eventTypes });
      return made;
    };
    const { secret } = await receiving('/ops', ['gateway.endpoint.*']);
    await receiving('/all', ['*']);
    await receiving('/owned', ['gateway.endpoint.*'], 'acme');
    const { id } = await channel('events', {});
    await channel('events', {});
    await raise('endpoint_failing');
    await at.received(1);
    await endNotifications(db.pool, 'endpoint_failing', [endpointId]);
    const requests = await at.received(2, { withinMs: 40_000 });
    const events = await Promise.all(
      requests.map(({ body, headers }) => verify<Record<string, unknown>>(body, headers, secret)),
    );
    const { id: notificationId, raised_at, ...failing } = events[0]!;
    assert.ok(Date.parse(raised_at as string));
    assert.equal(failing, {
      type: 'gateway.endpoint.failing',
      project: { uid: projectId, name: 'shop' },
      endpoint: { uid: endpointId, name: 'ware & <b>', url: at.url },
      failures: 3,
      error: 'It answered 500.',
    });
    assert.equal(
      [events[1]!['type'], events[1]!['id']],
      ['gateway.endpoint.recovered', notificationId],
    );
    const queued = () => db.rows('select from channel_notifications');
    await until('both channels', async () => (await queued()).length === 0);

    // An agent dies after it has committed the event.
    await db.rows(
      `insert into channel_notifications (channel_id, notification_id, is_recovery, created_at)
       select $1, id, false, created_at from notifications where id = $2`,
      [id, notificationId],
    );
    await until('it to be sent again', async () => (await queued()).length === 0);
    assert.equal([(await row(id)).last_error, (await row(id)).failures], [null, 0]);
    assert.is((await db.rows('select from events')).length, 2);
    assert.is(at.requests.length, 2);
  }),
);

channels('trouble with deliveries of operational events makes no more of them', () =>
  scene(
    async ({ db, at, projectId, channel, raise }) => {
      at.answer(({ url }) => ({ status: url === '/hook' ? 200 : url === '/gone' ? 410 : 500 }));
      const strategy = { type: 'linear', duration: 1, retry_count: 0 } as const;
      for (const path of ['/failing', '/gone']) {
        const { id } = await makeEndpoint(db, projectId, { url: `${at.url}${path}`, strategy });
        await makeSubscription(db, projectId, { endpointId: id, eventTypes: ['gateway.*'] });
      }
      await channel('events', {});
      await channel('webhook', { url: `${at.url}/hook` });
      for (const partition of [1, 2, 3]) await raise('source_lost', `${newId()} ${partition}`);
      const kinds = await until(
        'the other channel to report the trouble',
        () => {
          const hooks = at.requests.filter(({ url }) => url === '/hook').map(json);
          return hooks.length === 6 && hooks.map((it) => it['type'] as string).sort();
        },
        { withinMs: 40_000 },
      );
      const trouble = ['endpoint_breaker', 'endpoint_disabled', 'endpoint_failing'];
      assert.equal(kinds, [...trouble, 'source_lost', 'source_lost', 'source_lost']);
      await until(
        'all to be sent',
        async () => (await db.rows('select from channel_notifications')).length === 0,
      );
      const events = await db.rows<{ event_type: string }>('select event_type from events');
      assert.equal(
        events.map((it) => it.event_type),
        Array.from({ length: 3 }, () => 'gateway.source.lost'),
      );
    },
    {
      notifications: { endpoint_failures: 2 },
      circuit_breaker: { minimum_request_count: 2, error_timeout: 600 },
    },
  ),
);

channels.run();
