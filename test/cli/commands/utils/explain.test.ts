import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startAgent } from '@gateway/agent';
import { messageDigest, newId } from '#core/events/ids';
import { silentLog } from '#core/logging/log';
import { setEndpointStatus } from '#store/config/endpoints';
import { deleteSubscription, updateSubscription } from '#store/config/subscriptions';
import { WAIT_REASONS } from '#store/deliveries/postponed-deliveries';
import type { CreatedEvent } from '#ingest/commit/event-creator';
import { createEvent } from '../../../store/made.js';
import { acceptEvents, encodeSignal } from '#store/events/events';
import { KEPT_BYTES_MAX, keptParts } from '#store/events/kept-messages';
import { MemoryKv } from '#store/kv/memory-kv';
import { quarantineMessages } from '#store/quarantine/messages';
import { makeEndpoint, makeProject, makeSubscription } from '../../../agent/records.js';
import { agentConfig, pluginsOf, type Migrated } from '../../../agent/running.js';
import { batch, newEvent, quarantinedMessage } from '../../../store/batches.js';
import { migratedDatabase } from '../../../store/migrated.js';
import { connectionOf } from '../../../support/database.js';
import { endpoint as receiver, type Endpoint } from '../../../support/endpoint.js';
import { runGateway } from '../../../support/gateway.js';
import { until, within } from '../../../support/until.js';

const explain = suite('cli/commands/utils/explain');

let db: Migrated;
let at: Endpoint;
const kv = new MemoryKv();

explain.before(async () => {
  db = await migratedDatabase();
  at = await receiver();
});
explain.after(async () => {
  if (agent) await within((await agent).close(), 40_000, 'the agent to close');
  await at.close();
  await kv.close();
  await db.close();
});

const run = (...args: string[]) =>
  runGateway(['utils', 'explain', ...args], { config: { database: connectionOf(db.url) } });

async function create(projectId: string, fields: Partial<CreatedEvent> = {}): Promise<string> {
  const plain = {
    eventType: 'order.paid',
    messageType: 'single',
    endpointId: null,
    ownerId: null,
    idempotencyKey: null,
  } as const;
  const { id } = await createEvent(
    db.pool,
    { projectId, headers: {}, data: '{"amount":50}', ...plain, ...fields },
    3600,
  );
  return id;
}

let agent: Promise<{ close(): Promise<void> }> | undefined;

/**
 * Waits until the agent, started on the first call, has routed these events and attempted every
 * delivery that is not held.
 */
async function routed(projectId: string, ids: readonly string[]): Promise<void> {
  await (agent ??= startAgent({
    config: agentConfig(db.url),
    plugins: pluginsOf(),
    log: silentLog,
    kv,
  }));
  await kv.queue('create-event').push(ids.map((id) => encodeSignal({ projectId, id })));
  await until('the events to be routed and attempted', async () => {
    const [row] = await db.rows<{ open: number }>(
      `select (select count(*) from events where project_id = $1 and status = 'pending')
            + (select count(*) from event_deliveries
               where project_id = $1 and (status = 'processing' or (status = 'scheduled' and next_attempt_at < 'infinity'))) as open`,
      [projectId],
    );
    return Number(row?.open) === 0;
  });
}

// Runs first, while no agent runs.
explain('a pending event says since when, and that no agent is running', async () => {
  const projectId = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId, { url: at.url });
  const id = await create(projectId, { messageType: 'broadcast', endpointId });
  const { code, stdout } = await run(id);
  assert.is(code, 0);
  assert.match(
    stdout,
    /pending for \S+: no agent is running to route it\. Start one with `gateway agent`\./,
  );
  assert.match(stdout, 'The event is a broadcast');
  await db.rows(`insert into agents (name, expires_at) values ('far', now() + interval '1 hour')`);
  await db.rows(`update events set accepted_at = now() - interval '1 hour' where id = $1`, [id]);
  const stuck = await run(id);
  await db.rows('delete from agents');
  assert.match(
    stuck.stdout,
    /pending for 1h\S*: one agent is running, and no earlier event is pending\. Check \/healthz of the agents/,
  );
});

explain(
  'an event that subscriptions routed: each delivery with its last attempt, each subscription with why not',
  async () => {
    const projectId = await makeProject(db);
    at.answer((request) => (request.url === '/fails' ? { status: 503 } : {}));
    const strategy = { type: 'linear', duration: 3600, retry_count: 3 } as const;
    const shop = await makeEndpoint(db, projectId, { url: at.url, name: 'shop' });
    const fails = await makeEndpoint(db, projectId, {
      url: `${at.url}/fails`,
      name: 'unsteady',
      strategy,
    });
    const paused = await makeEndpoint(db, projectId, { url: at.url, name: 'sleeper' });
    const gone = await makeEndpoint(db, projectId, { url: at.url, name: 'departed' });
    await setEndpointStatus(db.knex, projectId, paused.id, {
      status: 'paused',
      reason: 'The endpoint was paused over the API.',
    });
    await setEndpointStatus(db.knex, projectId, gone.id, {
      status: 'inactive',
      reason: 'It answered 410 Gone.',
    });
    for (const { id: endpointId } of [shop, fails, paused, gone])
      await makeSubscription(db, projectId, { endpointId });
    await makeSubscription(db, projectId, { endpointId: shop.id, eventTypes: ['refund.*'] });
    const large = await makeSubscription(db, projectId, {
      endpointId: shop.id,
      filter: { body: { amount: { $gte: 100 } } },
    });
    const deleted = await makeSubscription(db, projectId, {
      endpointId: fails.id,
      filter: { headers: { 'x-tenant': 'a' } },
    });
    const id = await create(projectId, { idempotencyKey: 'order-17' });
    await routed(projectId, [id]);
    // The reason that an agent records when it finds the breaker open.
    await db.rows(`update event_deliveries set reason = $2 where endpoint_id = $1`, [
      fails.id,
      WAIT_REASONS.breaker,
    ]);
    await updateSubscription(db.knex, projectId, large, { name: 'large orders' });
    await deleteSubscription(db.knex, projectId, deleted);

    const note = 'the header "Host" was omitted: the connection sets it';
    await db.rows('update events set notes = $2 where id = $1', [id, JSON.stringify([note])]);

    const { code, stdout, stderr } = await run(id);
    assert.is(code, 0, stderr);
    for (const expected of [
      'none: it was created over the management API',
      `notes            ${note}\n`,
      /idempotency_key {2}order-17; until 20\S+Z further messages with this key are duplicates/,
      'The event has neither an endpoint_id nor an owner_id, so the subscriptions of the project decide.',
      'processed: routed. The event went to the endpoints of its deliveries.',
      '4 deliveries: ',
      /success after 1 attempt; the last, at 20\S+Z, was answered 200\n/,
      /retry after 1 attempt; the last, at 20\S+Z, was answered 503\n/,
      /next attempt at 20\S+Z, in (1h|59m)\S*\n {4}The circuit breaker of the endpoint is open: /,
      /sleeper \(.*, paused\)\n {4}\S+ {2}scheduled, not attempted\n {4}held while its endpoint is paused; POST /,
      /discarded, not attempted\n {4}The endpoint is inactive: It answered 410 Gone\.\n/,
      'the event type order.paid does not match refund.*',
      /not large orders: the filter requires amount to be at least 100, but it is 50; changed since the event/,
      'not subscription: the subscription was deleted; changed since the event',
    ])
      assert.match(stdout, expected);

    const { event, deliveries, subscriptions } = JSON.parse((await run(id, '--json')).stdout) as {
      event: { notes: string[] };
      deliveries: { status: string; held: boolean }[];
      subscriptions: { matches: boolean; changed_since: boolean }[];
    };
    assert.equal(event.notes, [note]);
    assert.equal(deliveries.map(({ status }) => status).sort(), [
      'discarded',
      'retry',
      'scheduled',
      'success',
    ]);
    assert.equal(
      [
        deliveries.filter(({ held }) => held).length,
        subscriptions.filter(({ matches }) => matches).length,
      ],
      [1, 4],
    );
    assert.is(subscriptions.filter((it) => it.changed_since).length, 2);
  },
);

explain('an event that went nowhere says why, and where it would go now', async () => {
  const projectId = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId, {
    url: at.url,
    name: 'shop',
    owner_id: 'tenant-a',
  });
  const unheard = await create(projectId);
  const mistyped = await create(projectId, { messageType: 'fanout', ownerId: 'tenant-b' });
  await routed(projectId, [unheard, mistyped]);
  const nobody = await run(unheard);
  assert.match(
    nobody.stdout,
    'processed: no_subscription. No subscription of the project matches the event type',
  );
  assert.match(nobody.stdout, 'no deliveries');
  assert.match(nobody.stdout, 'the project has no subscriptions');
  const owner = await run(mistyped);
  assert.match(
    owner.stdout,
    'failed: unknown_owner. The message named an owner_id that no endpoint of the project has.',
  );
  assert.match(owner.stdout, 'The event has an owner_id');
  assert.match(owner.stdout, 'the project has tenant-a, which is similar');
  await makeSubscription(db, projectId, { endpointId });
  assert.match(
    (await run(unheard)).stdout,
    `with the current configuration, it would go to 1 endpoint: ${endpointId}\n`,
  );
});

explain('the id of something else says what it is and what to run', async () => {
  const projectId = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId, { url: at.url, name: 'shop' });
  const id = await create(projectId, { endpointId });
  await routed(projectId, [id]);
  const [delivery] = await db.rows<{ id: string }>(
    'select id from event_deliveries where event_id = $1',
    [id],
  );
  const message = quarantinedMessage({ projectId });
  await quarantineMessages(db.pool, [message]);
  const cases = [
    [
      delivery!.id,
      `${delivery!.id} is an event delivery of the event ${id}`,
      `run \`gateway utils explain ${id}\``,
    ],
    [
      message.id,
      'is a quarantined message, not an event',
      `run \`gateway utils quarantine show ${message.id}\``,
    ],
    [endpointId, 'is the endpoint shop, not an event', 'give the id of an event'],
    [newId(), ' not found', 'idempotency key'],
    ['ffffffff-ffff-4fff-bfff-ffffffffffff', ' not found', 'check the id'],
  ] as const;
  const told = await Promise.all(cases.map(([given]) => run(given)));
  for (const [at, { code, stderr }] of told.entries()) {
    assert.is(code, 1);
    assert.match(stderr, cases[at]![1]);
    assert.match(stderr, cases[at]![2]);
  }
});

explain('what is no id is wrong use, and an id in upper case is one', async () => {
  const { code, stderr } = await run('order-17');
  assert.is(code, 2);
  assert.match(stderr, 'error: the argument must be an id, not "order-17"');
  const projectId = await makeProject(db);
  const id = await create(projectId);
  assert.is((await run(id.toUpperCase())).code, 0);
});

explain('what came from outside cannot steer the terminal', async () => {
  const projectId = await makeProject(db);
  const id = await create(projectId, { eventType: 'a\u001b[2Jb', ownerId: 'x\u202ey' });
  const { stdout } = await run(id);
  assert.ok(stdout.includes('a\\x1b[2Jb') && stdout.includes('x\\u202ey'), stdout);
});

explain(
  'it tells of the message that the event was made of, and --message writes its bytes',
  async () => {
    const projectId = await makeProject(db);
    const raw = Buffer.from([0x7b, 0x1b, 0xff]);
    const events = [raw, Buffer.alloc(KEPT_BYTES_MAX + 1)].map((body) => {
      const event = newEvent({ projectId, digest: messageDigest(body) });
      const { id, occurredAtMs } = event;
      const message = {
        projectId,
        id,
        occurredAtMs,
        digest: event.digest!,
        ...keptParts({ body, headers: {} }),
      };
      return { event, messages: [{ message, eventIds: [id] }] };
    });
    for (const { event, messages } of events)
      await acceptEvents(db.pool, batch([event], { messages }));
    const [kept, large] = events.map(({ event }) => event.id) as [string, string];
    const shown = await run(kept);
    assert.match(
      shown.stdout,
      new RegExp(
        `^message +3 bytes; \`gateway utils explain ${kept} --message\` writes them$`,
        'm',
      ),
    );
    assert.is(JSON.parse((await run(kept, '--json')).stdout).event.message_bytes, 3);
    const { stdout } = await run(kept, '--message');
    assert.is(stdout, raw.toString());
    assert.match(
      (await run(large, '--message')).stderr,
      /it has 65537 bytes; messages of up to 64 KB are kept/,
    );
    const none = await create(projectId);
    assert.not.match((await run(none)).stdout, /^message/m);
    const refused = await run(none, '--message');
    assert.equal([refused.code, refused.stdout], [1, '']);
    assert.match(refused.stderr, /message of the event .* not found.*keep_messages/s);
  },
);

explain.run();
