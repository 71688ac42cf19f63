import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { verify } from '#client/verify';
import { newId } from '#core/events/ids';
import {
  deactivateEndpoint,
  setEndpointStatus,
  type EndpointFormat,
  type EndpointRow,
} from '#store/config/endpoints';
import {
  endNotifications,
  raiseNotifications,
  type NewNotification,
} from '#store/config/notifications';
import { startAgent } from '@gateway/agent';
import { migratedDatabase } from '../../store/migrated.js';
import { endpoint as receiver, type Endpoint } from '../../support/endpoint.js';
import { until, within } from '../../support/until.js';
import { makeEndpoint, makeProject, makeSubscription, sealed } from '../records.js';
import { agentConfig, keptLog, pluginsOf, type Migrated } from '../running.js';

const announcer = suite('agent/notifications/announcer');

interface Scene {
  readonly db: Migrated;
  readonly at: Endpoint;
  readonly projectId: string;
  readonly endpointId: string;
  /** Creates an endpoint that subscribes to operational events, with a path of the receiver. */
  listener(
    path: string,
    fields?: Partial<EndpointRow> & { readonly eventTypes?: readonly string[]; key?: string },
  ): Promise<EndpointRow & { secret: string }>;
  raise(subject?: string, kind?: 'endpoint_failing' | 'source_lost'): Promise<void>;
  raiseAll(subjects: readonly string[]): Promise<void>;
}

/** Runs a test with an agent without SMTP, and a receiver that all endpoints use. */
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
    const listener: Scene['listener'] = async (
      path,
      { eventTypes = ['gateway.*'], key, ...fields } = {},
    ) => {
      const id = newId();
      const authentication = key && {
        type: 'bearer' as const,
        bearer: { token: sealed(key, ['endpoints', id, 'authentication']) },
      };
      const made = await makeEndpoint(db, projectId, {
        id,
        url: `${at.url}${path}`,
        rate_limit: 0,
        ...(authentication && { authentication }),
        ...fields,
      });
      await makeSubscription(db, projectId, { endpointId: made.id, eventTypes });
      return made;
    };
    const raiseAll = async (
      subjects: readonly string[],
      kind: NewNotification['kind'] = 'endpoint_failing',
    ) => {
      const facts = { failures: 3, error: 'It answered 500.' };
      await raiseNotifications(
        db.pool,
        subjects.map((subject) => ({ kind, projectId, subject, facts })),
        { agentIdOf: () => 0, quietSeconds: 0, isMailed: false },
      );
    };
    const raise: Scene['raise'] = (subject = endpointId, kind) => raiseAll([subject], kind);
    await within(
      test({ db, at, projectId, endpointId, listener, raise, raiseAll }),
      75_000,
      'the test',
    );
  } finally {
    if (agent) await within(agent.close(), 40_000, 'the agent to close');
    await at.close();
    await db.close();
  }
}

const json = ({ body }: { body: Buffer }) =>
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  JSON.parse(body.toString()) as Record<string, any>;

const toldAll = (db: Migrated) =>
  until(
    'all to be told',
    async () =>
      (await db.rows('select from notifications where event_due_at is not null')).length === 0,
    { withinMs: 40_000 },
  );

announcer('each format receives a failure and its end', () =>
  scene(async ({ db, at, endpointId, listener, raise }) => {
    for (const format of ['slack', 'teams', 'pagerduty', 'opsgenie'] as const)
      await listener(`/${format}`, { format, key: 'K1' });
    await listener('/other', { eventTypes: ['gateway.source.*'] });
    await listener('/all', { eventTypes: ['*'] });
    await listener('/owned', { owner_id: 'acme' });
    await raise();
    await at.received(4, { withinMs: 40_000 });
    await endNotifications(db.pool, 'endpoint_failing', [endpointId]);
    const requests = await at.received(8, { withinMs: 40_000 });
    const of = (path: string) => requests.filter(({ url }) => url === path);

    const [failing, over] = of('/slack').map(json);
    assert.match(failing!['text'], /^Endpoint ware &amp; &lt;b&gt; of project shop is failing\n/);
    assert.match(failing!['text'], 'Last error: It answered 500.');
    assert.match(over!['text'], /^Resolved: Endpoint/);
    const card = json(of('/teams')[0]!)['attachments'][0];
    const [title] = card.content.body;
    assert.is(title.inlines[0].text, 'Endpoint ware & <b> of project shop is failing');
    const [trigger, resolve] = of('/v2/enqueue').map(json);
    assert.equal([trigger!['event_action'], resolve!['event_action']], ['trigger', 'resolve']);
    assert.is(resolve!['dedup_key'], trigger!['dedup_key']);
    const [alert] = of('/v2/alerts');
    assert.is(alert!.headers['authorization'], 'GenieKey K1');
    const { alias } = json(alert!);
    assert.is(of(`/v2/alerts/${alias}/close?identifierType=alias`).length, 1);
  }),
);

announcer('the end waits while the problem is being retried for PagerDuty', () =>
  scene(async ({ db, at, endpointId, listener, raise }) => {
    at.answer([{ status: 503 }, { status: 503 }, {}]);
    const strategy = { type: 'linear', duration: 2, retry_count: 5 } as const;
    await listener('/', { format: 'pagerduty', key: 'R1', strategy });
    await raise();
    await at.received(1, { withinMs: 40_000 });
    await endNotifications(db.pool, 'endpoint_failing', [endpointId]);
    await at.received(3, { withinMs: 40_000 });
    // Its lease would end in a minute.
    await until('the end', async () => {
      await db.rows('update notifications set event_due_at = now() where event_due_at is not null');
      await db.rows(`select pg_notify('gateway_notifications', '')`);
      return at.requests.length > 3;
    });
    const actions = at.requests.map((it) => json(it)['event_action']);
    assert.equal(actions, ['trigger', 'trigger', 'trigger', 'resolve']);
  }),
);

announcer('many failures at once share events, and each is named once', () =>
  scene(async ({ db, at, projectId, listener, raiseAll }) => {
    await listener('/slack', { format: 'slack' });
    const failing = [];
    for (let n = 0; n < 12; n++)
      failing.push(await makeEndpoint(db, projectId, { url: at.url, name: `endpoint ${n}` }));
    await raiseAll(failing.map(({ id }) => id));
    const messages = await at.received(2, { withinMs: 40_000 });
    await toldAll(db);
    assert.is(at.requests.length, 2);
    const texts = messages.map((it) => json(it)['text'] as string);
    assert.match(texts.sort()[0]!, /^10 endpoints are failing, project shop\n/);
    for (const { id } of failing) assert.is(texts.join().split(`(${id})`).length, 2);
  }),
);

announcer('a disabled endpoint is resolved when it is activated', () =>
  scene(async ({ db, at, projectId, endpointId, listener }) => {
    await listener('/', { format: 'pagerduty', key: 'R1' });
    await deactivateEndpoint(db.pool, projectId, endpointId, 'gone', { error: 'gone' }, false);
    await at.received(1, { withinMs: 40_000 });
    await setEndpointStatus(db.knex, projectId, endpointId, { status: 'active', reason: null });
    const [trigger, resolve] = (await at.received(2, { withinMs: 40_000 })).map(json);
    assert.equal(
      [trigger!['event_action'], resolve!['event_action'], resolve!['dedup_key']],
      ['trigger', 'resolve', trigger!['dedup_key']],
    );
  }),
);

announcer('events are signed, and made once', () =>
  scene(async ({ db, at, projectId, endpointId, listener, raise }) => {
    const { secret } = await listener('/ops', { eventTypes: ['gateway.endpoint.*'] });
    await raise();
    await at.received(1, { withinMs: 40_000 });
    await toldAll(db);
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
    await toldAll(db);

    // An agent dies after it has committed both events.
    await db.rows('update notifications set event_id = null, event_due_at = now()');
    await db.rows(`select pg_notify('gateway_notifications', '')`);
    await toldAll(db);
    assert.is((await db.rows('select from events')).length, 2);
    assert.is(at.requests.length, 2);
  }),
);

announcer('without a subscription to operational events, none is made', () =>
  scene(async ({ db, projectId, endpointId, raise, listener }) => {
    await raise();
    assert.equal(await db.rows('select from notifications'), []);
    await listener('/', { eventTypes: ['gateway.source.lost'] });
    await raise();
    await toldAll(db);
    assert.equal(await db.rows('select from events'), []);
    assert.is((await db.rows('select from notifications')).length, 1, `${projectId} ${endpointId}`);
  }),
);

announcer('an address that endpoints may not use is refused, whatever the format', () =>
  scene(
    async ({ db, at, listener, raise }) => {
      await listener('/slack', { format: 'slack' });
      await raise();
      const [attempt] = await until('the attempt', async () => {
        const rows = await db.rows<{ error: string }>('select error from delivery_attempts');
        return rows.length > 0 && rows;
      });
      assert.match(attempt!.error, '127.0.0.1');
      assert.is(at.requests.length, 0);
    },
    { delivery: { allowed_networks: [] } },
  ),
);

announcer('trouble with deliveries of operational events makes no more of them', () =>
  scene(
    async ({ db, at, listener, raise }) => {
      at.answer(({ url }) => ({ status: url === '/works' ? 200 : url === '/gone' ? 410 : 500 }));
      const strategy = { type: 'linear', duration: 1, retry_count: 0 } as const;
      const format: EndpointFormat = 'slack';
      await listener('/failing', { strategy, format });
      await listener('/gone', { strategy, format });
      await listener('/works');
      for (const partition of [1, 2, 3]) await raise(`${newId()} ${partition}`, 'source_lost');
      const trouble = ['endpoint_breaker', 'endpoint_disabled', 'endpoint_failing'];
      await until(
        'the trouble to be raised',
        async () => {
          const rows = await db.rows<{ kind: string }>(
            `select kind from notifications where kind <> 'source_lost' order by kind::text`,
          );
          return rows.length === 3 && rows.map(({ kind }) => kind).join() === trouble.join();
        },
        { withinMs: 40_000 },
      );
      await toldAll(db);
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

announcer.run();
