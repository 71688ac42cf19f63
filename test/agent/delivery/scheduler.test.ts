import net from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Webhook } from 'standardwebhooks';
import { deleteEndpoint, setEndpointStatus, updateEndpoint } from '#store/config/endpoints';
import { settleDeliveries } from '#store/deliveries/settle-deliveries';
import { WAIT_REASONS } from '#store/deliveries/postponed-deliveries';
import { registerAgent } from '#store/deliveries/agents';
import { consumersOf } from '#agent/delivery/scheduler';
import {
  endpoint as receiver,
  type Answer,
  type Endpoint,
  type ReceivedRequest,
} from '../../support/endpoint.js';
import { askingServers, nameServer } from '../../support/name-server.js';
import { until, within } from '../../support/until.js';
import { empty } from '../../store/batches.js';
import { readConfigVersion } from '../../store/made.js';
import { migratedDatabase } from '../../store/migrated.js';
import { hold, states } from '../hold.js';
import { makeEndpoint, makeProject, secretRecord } from '../records.js';
import { runAgent, type RunningAgent } from '../running.js';

const deliver = suite('agent/delivery/scheduler');

const db = await migratedDatabase();
deliver.after(() => db.close());

interface Scene {
  readonly running: RunningAgent;
  open(
    fields?: Partial<Parameters<typeof makeEndpoint>[2]>,
    answer?: Parameters<typeof receiver>[0],
  ): Promise<{ id: string; secret: string; at: Endpoint }>;
  /** Commits deliveries to the endpoint and pushes them to the scheduler. Returns their ids. */
  push(endpointId: string, count?: number): Promise<string[]>;
}

async function scene(
  test: (scene: Scene) => Promise<void>,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const running = await runAgent({ db, settings });
  const opened: Endpoint[] = [];
  try {
    await within(
      test({
        running,
        open: async (fields = {}, answer = {}) => {
          const at = await receiver(answer);
          opened.push(at);
          const { id, secret } = await makeEndpoint(db, running.projectId, {
            url: at.url,
            ...fields,
          });
          await running.configCache.refresh();
          return { id, secret, at };
        },
        push: async (endpointId, count = 1) => {
          const held = await hold(running, endpointId, count);
          running.wiring.inFlight.add(held);
          return held.map(({ id }) => id);
        },
      }),
      60_000,
      'the test',
    );
  } finally {
    await Promise.all(opened.map((at) => at.close()));
    await running.close();
    // Otherwise the next agent would continue with the remaining deliveries.
    await empty(db);
  }
}

async function become(
  running: RunningAgent,
  endpointId: string,
  expected: Record<string, number>,
): Promise<void> {
  let last: unknown;
  const same = async () => {
    last = await states(running, endpointId);
    return (
      JSON.stringify(Object.entries(last as object).sort()) ===
      JSON.stringify(Object.entries(expected).sort())
    );
  };
  await until(`${JSON.stringify(expected)}`, same).catch((error: Error) => {
    throw new Error(`${error.message}; found ${JSON.stringify(last)}`);
  });
}

const attemptsOf = (id: string) =>
  db.rows<{
    number: number;
    http_status: number | null;
    error_class: string | null;
    error: string | null;
    response_body: string | null;
    url: string;
  }>(
    'select number, http_status, error_class, error, response_body, url from delivery_attempts where event_delivery_id = $1 order by number, requested_at',
    [id],
  );

const reasonOf = async (id: string) =>
  (
    await db.rows<{ reason: string | null }>('select reason from event_deliveries where id = $1', [
      id,
    ])
  )[0]!.reason;

/** A delayed response that counts concurrent requests. */
function counting(delayMs: number): { answer: () => Promise<Answer>; most: () => number } {
  let now = 0;
  let most = 0;
  return {
    answer: async () => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      now--;
      return {};
    },
    most: () => most,
  };
}

const RETRY_AT_ONCE = { type: 'linear', duration: 1, retry_count: 3 } as const;

deliver('a delivery arrives signed, is recorded with its attempt, and frees its room', () =>
  scene(async ({ running, open, push }) => {
    const { id, secret, at } = await open(
      {},
      { answer: { status: 201, body: 'thanks', headers: { 'x-id': '7' } } },
    );
    const [delivery] = await push(id);
    const [request] = await at.received(1);
    assert.is(request!.headers['webhook-id'], delivery);
    assert.equal(new Webhook(secret).verify(request!.body, { ...request!.headers }), { n: 1 });
    await become(running, id, { success: 1 });
    assert.equal(await attemptsOf(delivery!), [
      {
        number: 1,
        http_status: 201,
        error_class: null,
        error: null,
        response_body: 'thanks',
        url: at.url,
      },
    ]);
    await until('the room to be free', () => running.wiring.inFlight.size === 0);
    assert.is(running.wiring.inFlight.room, 4000);
  }),
);

deliver(
  'no more requests are under way to an endpoint than it allows, or than the setting says',
  () =>
    scene(
      async ({ running, open, push }) => {
        const [three, five] = [counting(30), counting(30)];
        const own = await open({ concurrency: 3 }, { answer: three.answer });
        const other = await open({}, { answer: five.answer });
        await Promise.all([push(own.id, 60), push(other.id, 60)]);
        await become(running, own.id, { success: 60 });
        await become(running, other.id, { success: 60 });
        assert.equal([three.most(), five.most()], [3, 5]);
      },
      { delivery: { allowed_networks: ['127.0.0.0/8'], endpoint_concurrency: 5 } },
    ),
);

deliver('no more requests are under way than the agent has consumers', () =>
  scene(
    async ({ running, open, push }) => {
      const both = counting(20);
      const [one, other] = [
        await open({}, { answer: both.answer }),
        await open({}, { answer: both.answer }),
      ];
      await Promise.all([push(one.id, 20), push(other.id, 20)]);
      await become(running, one.id, { success: 20 });
      await become(running, other.id, { success: 20 });
      assert.is(both.most(), 4);
    },
    { consumer_pool_size: 4 },
  ),
);

deliver(
  'an endpoint with thousands waiting does not stand in front of others, however few consumers there are',
  () =>
    scene(
      async ({ open, push }) => {
        const order: string[] = [];
        const noted = (name: string) => ({ answer: () => (order.push(name), {}) });
        const busy = await open({}, noted('busy'));
        const others = await Promise.all([1, 2, 3].map((n) => open({}, noted(`other ${n}`))));
        await push(busy.id, 3000);
        await busy.at.received(10);
        for (const { id } of others) await push(id, 2);
        await Promise.all(others.map(({ at }) => at.received(2)));
        // The busy endpoint continues while the pushed deliveries are committed; afterwards the lanes
        // take turns.
        const first = order.findIndex((name) => name === 'other 3');
        const last = order.findLastIndex((name) => name === 'other 3');
        const between = order.slice(first, last).filter((name) => name === 'busy').length;
        assert.ok(between <= 12, `${between} of the busy endpoint in between`);
        assert.ok(busy.at.requests.length < 3000, 'the busy endpoint was served to its end first');
      },
      { consumer_pool_size: 2 },
    ),
);

deliver(
  'lanes take turns: with one consumer, two endpoints with much waiting are served alternately',
  () =>
    scene(
      async ({ running, open }) => {
        const order: string[] = [];
        const noted = (name: string) => ({ answer: () => (order.push(name), {}) });
        const [a, b, c] = [
          await open({}, noted('a')),
          await open({}, noted('b')),
          await open({}, noted('c')),
        ];
        const held = await Promise.all([a, b, c].map(({ id }) => hold(running, id, 50)));
        running.wiring.inFlight.add(held.flat());
        await until('all requests', () => order.length === 150);
        for (const name of ['a', 'b', 'c']) {
          const share = order.slice(0, 75).filter((one) => one === name).length;
          assert.ok(
            share >= 20 && share <= 30,
            `${share} of the first 75 requests went to ${name}`,
          );
        }
        for (const { id } of [a, b, c]) await become(running, id, { success: 50 });
      },
      { consumer_pool_size: 1 },
    ),
);

deliver(
  'an endpoint that hangs keeps little in memory, the rest waits in Postgres, and its neighbours get theirs',
  () =>
    scene(async ({ running, open, push }) => {
      const hanging = await open(
        { timeout_ms: 20_000, strategy: RETRY_AT_ONCE },
        { answer: { hang: true } },
      );
      const neighbours = await Promise.all(Array.from({ length: 10 }, () => open()));
      await push(hanging.id, 400);
      for (const { id } of neighbours) await push(id, 5);
      for (const { id } of neighbours) await become(running, id, { success: 5 });
      // Fifty are in flight, a hundred wait here.
      await become(running, hanging.id, { processing: 150, 'scheduled later': 250 });
      assert.equal(
        running.wiring.gates
          .saturatedQueues()
          .map(({ projectId, endpointId }) => ({ projectId, endpointId })),
        [{ projectId: running.projectId, endpointId: hanging.id }],
      );
      assert.equal(running.wiring.inFlight.counts(), { waiting: 100, sending: 50, recording: 0 });
      for (const { id } of neighbours) await push(id, 5);
      for (const { id } of neighbours) await become(running, id, { success: 10 });
      hanging.at.answer({});
      await hanging.at.close();
    }),
);

deliver(
  'beside endpoints that hang, one that answers goes on as fast as it answers, however many wait for a consumer',
  () =>
    scene(
      async ({ open, push }) => {
        const neighbour = await open();
        await push(neighbour.id, 1);
        await neighbour.at.received(1);
        const hanging = await Promise.all(
          Array.from({ length: 40 }, () =>
            open({ timeout_ms: 60_000 }, { answer: { hang: true } }),
          ),
        );
        await Promise.all(hanging.map(({ id }) => push(id, 2)));
        await until(
          'those that hang to have three quarters',
          () => hanging.reduce((sum, { at }) => sum + at.requests.length, 0) >= 15,
        );
        await push(neighbour.id, 300);
        // Two per poll of the scheduler, twice a second, would take longer.
        await until('its deliveries', () => neighbour.at.requests.length === 301, {
          withinMs: 20_000,
        });
        for (const { at } of hanging) {
          at.answer({});
          await at.close();
        }
      },
      { consumer_pool_size: 20 },
    ),
);

for (const [kind, answersFirst] of [
  ['of which nothing is known yet', false],
  ['that have answered in good time before', true],
] as const) {
  deliver(`many endpoints ${kind} and hang all at once leave consumers to others`, () =>
    scene(
      async ({ running, open, push }) => {
        const hanging = await Promise.all(
          Array.from({ length: 10 }, () => open({ timeout_ms: 30_000 })),
        );
        const neighbour = await open();
        if (answersFirst) {
          for (const { id } of hanging) await push(id);
          for (const { id } of hanging) await become(running, id, { success: 1 });
        }
        for (const { at } of hanging) at.answer({ hang: true });
        const held = await Promise.all(hanging.map(({ id }) => hold(running, id, 30)));
        running.wiring.inFlight.add(held.flat());
        await Promise.all(hanging.map(({ at }) => at.received(answersFirst ? 2 : 1)));
        const { sending } = running.wiring.inFlight.counts();
        console.log(`  ten hanging endpoints hold ${sending} of 40 consumers`);
        assert.ok(sending < 35, `${sending} of 40`);
        await push(neighbour.id, 40);
        await become(running, neighbour.id, { success: 40 });
        for (const { at } of hanging) {
          at.answer({});
          await at.close();
        }
      },
      { consumer_pool_size: 40 },
    ),
  );
}

deliver(
  'while the breaker of an endpoint is open nothing is sent, what waits keeps its attempts, and one probe lets all of it through',
  () =>
    scene(
      async ({ running, open, push }) => {
        let isBad = true;
        const { id, at } = await open(
          { concurrency: 2, strategy: { type: 'linear', duration: 1, retry_count: 5 } },
          { answer: () => ({ status: isBad ? 500 : 200 }) },
        );
        const neighbour = await open();
        await push(id, 50);
        await until('the breaker to open', () => running.wiring.circuitBreakers.stateOf(id));
        const before = at.requests.length;
        assert.ok(before <= 12, `${before} requests`);
        await until('what waits to be given back', async () => {
          const found = await states(running, id);
          return found['scheduled later'] === 50 - before && !found['processing'];
        });
        const [waiting] = await db.rows<{ attempts: number; reason: string }>(
          `select attempts, reason from event_deliveries where endpoint_id = $1 and status = 'scheduled' limit 1`,
          [id],
        );
        assert.equal(waiting, { attempts: 0, reason: WAIT_REASONS.breaker });
        const later = running.wiring.gates.ask(
          'commit',
          running.configCache.endpoint(running.projectId, id),
        );
        assert.equal([later?.answer, later?.gate], ['postpone', 'breaker'], 'new ones wait too');
        await push(neighbour.id, 3);
        await become(running, neighbour.id, { success: 3 });
        isBad = false;
        await become(running, id, { success: 50 });
        assert.is(
          at.requests.length,
          before + 50,
          'those that failed were sent twice, all others once',
        );
        assert.is(running.wiring.circuitBreakers.stateOf(id), undefined);
        const sentences = running.lines
          .filter(({ sentence }) => /^(Opened|Closed) the circuit breaker/.test(sentence))
          .map(({ level }) => level);
        assert.equal(sentences, ['warn', 'info']);
      },
      { circuit_breaker: { error_timeout: 1 } },
    ),
);

deliver(
  'what is due while the breaker is open is put off where it stands, and does not keep the claimer from others',
  () =>
    scene(
      async ({ running, open, push }) => {
        const bad = await open(
          { strategy: { type: 'linear', duration: 1, retry_count: 5 } },
          { answer: { status: 500 } },
        );
        await push(bad.id, 10);
        await until('the breaker to open', () => running.wiring.circuitBreakers.stateOf(bad.id));
        await until('its deliveries to be put off', async () => {
          const [row] = await db.rows<{ n: number }>(
            `select count(*)::int as n from event_deliveries where endpoint_id = $1 and status = 'retry' and attempts = 1 and reason = $2
           and next_attempt_at > now() + interval '10 seconds'`,
            [bad.id, WAIT_REASONS.breaker],
          );
          return row?.n === 10;
        });
        assert.is(bad.at.requests.length, 10);
        assert.equal(running.wiring.inFlight.counts(), { waiting: 0, sending: 0, recording: 0 });
      },
      { circuit_breaker: { error_timeout: 30 } },
    ),
);

deliver('draining releases what waits and lets requests end', () =>
  scene(async ({ running, open, push }) => {
    let release = () => undefined as void;
    const released = new Promise<Answer>((resolve) => (release = () => resolve({})));
    const { id, at } = await open({ concurrency: 4 }, { answer: () => released });
    await push(id, 30);
    await at.received(4);
    let drained = false;
    const draining = running.wiring.scheduler.drain().then(() => (drained = true));
    await become(running, id, { processing: 4, 'scheduled due': 26 });
    assert.not.ok(drained);
    assert.is(running.wiring.inFlight.room, 0);
    release();
    await within(draining, 20_000, 'the drain');
    await running.wiring.attemptWriter.settled();
    await become(running, id, { success: 4, 'scheduled due': 26 });
    assert.is(at.requests.length, 4);
  }),
);

deliver('what comes to an agent that drains is given back unsent', () =>
  scene(async ({ running, open, push }) => {
    const { id, at } = await open();
    await running.wiring.scheduler.drain();
    await push(id, 3);
    await become(running, id, { 'scheduled due': 3 });
    assert.is(at.requests.length, 0);
    assert.is(running.wiring.inFlight.size, 0);
  }),
);

deliver('pausing holds what waits, activating sends it', () =>
  scene(async ({ running, open, push }) => {
    const { projectId, configCache } = running;
    let answer: (of: Answer) => void = () => undefined;
    const first = new Promise<Answer>((resolve) => (answer = resolve));
    const { id, at } = await open(
      { concurrency: 1 },
      { answer: (_, number) => (number === 0 ? first : {}) },
    );
    await push(id, 5);
    await at.received(1);
    await setEndpointStatus(db.knex, projectId, id, { status: 'paused', reason: 'By hand.' });
    await settleDeliveries(db.planes, { projectId, endpointId: id });
    await until(
      'the agent to know',
      () => configCache.endpoint(projectId, id)?.status === 'paused',
    );
    answer({});
    await become(running, id, { success: 1, 'scheduled held': 4 });

    await setEndpointStatus(db.knex, projectId, id, { status: 'active', reason: null });
    await settleDeliveries(db.planes, { projectId, endpointId: id });
    await become(running, id, { success: 5 });
    assert.is(at.requests.length, 5);
  }),
);

deliver('an agent that is late to hear of an activation leaves nothing held', () =>
  scene(async ({ running, open, push }) => {
    const { projectId, configCache, wiring } = running;
    wiring.start();
    const { id, at } = await open();
    await setEndpointStatus(db.knex, projectId, id, { status: 'paused', reason: 'By hand.' });
    await until(
      'the agent to know',
      () => configCache.endpoint(projectId, id)?.status === 'paused',
    );
    await push(id, 2);
    await become(running, id, { 'scheduled held': 2 });
    await setEndpointStatus(db.knex, projectId, id, { status: 'active', reason: null });
    await become(running, id, { success: 2 });
    assert.is(at.requests.length, 2);
  }),
);

deliver(
  'to an endpoint that is inactive or deleted nothing is sent: its deliveries are discarded with the reason',
  () =>
    scene(async ({ running, open, push }) => {
      const { projectId, configCache } = running;
      const [inactive, deleted] = [await open(), await open()];
      await setEndpointStatus(db.knex, projectId, inactive.id, {
        status: 'inactive',
        reason: 'It answered 410 Gone.',
      });
      await deleteEndpoint(db.knex, projectId, deleted.id);
      await until(
        'the agent to know',
        () =>
          configCache.endpoint(projectId, inactive.id)?.status === 'inactive' &&
          !configCache.endpoint(projectId, deleted.id),
      );
      const [first] = await push(inactive.id, 3);
      const [second] = await push(deleted.id, 3);
      await become(running, inactive.id, { discarded: 3 });
      await become(running, deleted.id, { discarded: 3 });
      assert.is(await reasonOf(first!), 'The endpoint is inactive: It answered 410 Gone.');
      assert.is(await reasonOf(second!), 'The endpoint was deleted.');
      assert.is(inactive.at.requests.length + deleted.at.requests.length, 0);
      await until('the room to be free', () => running.wiring.inFlight.size === 0);
    }),
);

deliver('an endpoint that answers 410 is deactivated, and gets nothing more', () =>
  scene(async ({ running, open, push }) => {
    let goOn = () => {};
    const known = new Promise<void>((resolve) => (goOn = resolve));
    // The second request is in flight until the agent knows the response to the first.
    const { id, at } = await open(
      { concurrency: 1 },
      { answer: async (_, n) => (n > 0 && (await known), { status: 410 }) },
    );
    await push(id, 200);
    await until('the endpoint to be inactive', async () => {
      const [row] = await db.rows<{ status: string; status_reason: string }>(
        'select status, status_reason from endpoints where id = $1',
        [id],
      );
      return row?.status === 'inactive' && row.status_reason === 'It answered 410 Gone.';
    });
    await until(
      'the agent to know',
      () => running.configCache.endpoint(running.projectId, id)?.status === 'inactive',
    );
    goOn();
    await until('the deliveries to end', async () => {
      const found = await states(running, id);
      return (found['failure'] ?? 0) + (found['discarded'] ?? 0) === 200;
    });
    assert.ok(at.requests.length <= 2, `${at.requests.length} requests`);
    const [first] = at.requests;
    assert.is(
      await reasonOf(first!.headers['webhook-id']!),
      'The endpoint answered 410 Gone and was deactivated.',
    );
    assert.equal(
      (await attemptsOf(first!.headers['webhook-id']!)).map(({ http_status: status }) => status),
      [410],
    );
  }),
);

deliver(
  'requests that were under way when an endpoint answered 410 do not deactivate it again',
  () =>
    scene(async ({ running, open, push }) => {
      const { id, at } = await open({ concurrency: 20 }, { answer: { status: 410, delayMs: 50 } });
      const version = async () => Number(await readConfigVersion(running.database.pool));
      const before = await version();
      await push(id, 20);
      await become(running, id, { failure: 20 });
      assert.is(at.requests.length, 20);
      assert.is(await version(), before + 1);
    }),
);

deliver(
  'what fails is tried again, with one id and the number of the attempt, until it arrives',
  () =>
    scene(async ({ running, open, push }) => {
      const { id, at } = await open(
        { strategy: RETRY_AT_ONCE },
        { answer: [{ status: 500, body: 'no' }, { status: 429 }, { status: 200, body: 'yes' }] },
      );
      const [delivery] = await push(id);
      await become(running, id, { success: 1 });
      assert.equal(await attemptsOf(delivery!), [
        {
          number: 1,
          http_status: 500,
          error_class: 'status',
          error: 'The endpoint answered 500.',
          response_body: 'no',
          url: at.url,
        },
        {
          number: 2,
          http_status: 429,
          error_class: 'status',
          error: 'The endpoint answered 429.',
          response_body: null,
          url: at.url,
        },
        {
          number: 3,
          http_status: 200,
          error_class: null,
          error: null,
          response_body: 'yes',
          url: at.url,
        },
      ]);
      assert.equal(
        new Set(at.requests.map(({ headers }) => headers['webhook-id'])),
        new Set([delivery]),
      );
      assert.is(await reasonOf(delivery!), null);
    }),
);

deliver('when no retry is left the delivery has failed, and says why', () =>
  scene(async ({ running, open, push }) => {
    const { id, at } = await open(
      { strategy: { type: 'linear', duration: 1, retry_count: 1 } },
      { answer: { status: 503 } },
    );
    const [delivery] = await push(id);
    await become(running, id, { failure: 1 });
    assert.is(at.requests.length, 2);
    assert.is(
      await reasonOf(delivery!),
      'No retry is left after attempt 2. The endpoint answered 503.',
    );
    const single = await open(
      { strategy: { type: 'linear', duration: 1, retry_count: 0 } },
      { answer: { status: 301, headers: { location: at.url } } },
    );
    await push(single.id);
    await become(running, single.id, { failure: 1 });
    assert.is(single.at.requests.length, 1);
    assert.is(at.requests.length, 2);
  }),
);

deliver('the wait that an endpoint asks for with Retry-After is kept', () =>
  scene(async ({ running, open, push }) => {
    const { id } = await open(
      { strategy: RETRY_AT_ONCE },
      { answer: { status: 503, headers: { 'Retry-After': '3600' } } },
    );
    const dated = await open(
      { strategy: RETRY_AT_ONCE },
      {
        answer: () => ({
          status: 503,
          headers: { 'Retry-After': new Date(Date.now() + 7_200_000).toUTCString() },
        }),
      },
    );
    await Promise.all([push(id), push(dated.id)]);
    await become(running, id, { 'retry later': 1 });
    await become(running, dated.id, { 'retry later': 1 });
    const minutes = async (endpointId: string) =>
      (
        await db.rows<{ m: number }>(
          `select extract(epoch from next_attempt_at - now())::float8 / 60 as m from event_deliveries where endpoint_id = $1`,
          [endpointId],
        )
      )[0]!.m;
    const [first, second] = [await minutes(id), await minutes(dated.id)];
    // A part of it is added at random, up to five minutes.
    assert.ok(first > 59 && first <= 65, String(first));
    assert.ok(second > 119 && second <= 126, String(second));
  }),
);

/**
 * A server that closes each connection at its nth request without a response. `requests` counts the
 * received requests.
 */
async function withLosses(
  nth: number,
  test: (scene: Scene & { endpointId: string; requests(): number }) => Promise<void>,
): Promise<void> {
  const sockets = new Set<net.Socket>();
  let requests = 0;
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    let served = 0;
    socket.on('data', (bytes) => {
      if (!bytes.includes('POST ')) return;
      requests++;
      if (++served >= nth) socket.resetAndDestroy();
      else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/`;
  try {
    await scene(async (given) => {
      const { id: endpointId } = await given.open({ url, concurrency: 1 });
      await test({ ...given, endpointId, requests: () => requests });
    });
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

deliver('a reset of a fresh connection is one request, one attempt, and waits for its retry', () =>
  withLosses(1, async ({ running, push, endpointId, requests }) => {
    const [id] = await push(endpointId);
    await become(running, endpointId, { 'retry later': 1 });
    assert.equal(
      (await attemptsOf(id!)).map(({ number, error_class: failure }) => [number, failure]),
      [[1, 'reset']],
    );
    assert.is(requests(), 1);
  }),
);

deliver(
  'a reused connection that ends without a byte is tried again at once, and both requests stand in the log',
  () =>
    withLosses(2, async ({ running, push, endpointId, requests }) => {
      await push(endpointId);
      await become(running, endpointId, { success: 1 });
      const [id] = await push(endpointId);
      await become(running, endpointId, { success: 2 });
      assert.equal(
        (await attemptsOf(id!)).map(({ number, error_class: failure }) => [number, failure]),
        [
          [1, 'reset'],
          [2, null],
        ],
      );
      assert.is(requests(), 3);
    }),
);

deliver(
  'a request that cannot be sent is a failed attempt with its reason, and is retried: the setting may be corrected',
  () =>
    scene(async ({ running, open, push }) => {
      const { id, secret, at } = await open({ strategy: RETRY_AT_ONCE });
      await updateEndpoint(db.knex, running.projectId, id, {
        secrets: [secretRecord('whsec_x', new Date(0), id)],
      });
      await running.configCache.refresh();
      const [delivery] = await push(id);
      await until('the first attempt', async () => (await attemptsOf(delivery!)).length > 0);
      await updateEndpoint(db.knex, running.projectId, id, {
        secrets: [secretRecord(secret, null, id)],
      });
      await become(running, id, { success: 1 });
      const [first] = await attemptsOf(delivery!);
      assert.equal([first!.http_status, first!.error_class], [null, 'unsendable']);
      assert.match(first!.error ?? '', 'no valid secret');
      assert.ok(at.requests.length === 1);
    }),
);

deliver(
  'many deliveries to an address that is refused at once are an attempt each, with that reason',
  () =>
    scene(async ({ running, open, push }) => {
      const strategy = { type: 'linear', duration: 3600, retry_count: 1 } as const;
      const { id } = await open({ strategy, url: 'http://10.0.0.1/hooks' });
      await push(id, 3000);
      await become(running, id, { 'retry later': 3000 });
      const classes = await running.db.rows(
        `select error_class, count(*)::int as n from delivery_attempts where endpoint_id = $1 group by 1`,
        [id],
      );
      assert.equal(classes, [{ error_class: 'refused_address', n: 3000 }]);
    }),
);

deliver(
  'each kind of failure is told by its class, and no address outside the allowed networks is reached',
  () =>
    scene(async ({ running, open, push }) => {
      const strategy = { type: 'linear', duration: 3600, retry_count: 1 } as const;
      const hanging = await open({ strategy, timeout_ms: 200 }, { answer: { hang: true } });
      const closing = await open({ strategy }, { answer: { close: true } });
      const inner = await open({ strategy, url: 'http://10.0.0.1/hooks' });
      const unknown = await open({ strategy, url: 'http://no-such-host.invalid/' });
      const secure = await open({ strategy, url: closing.at.url.replace('http:', 'https:') });
      const expected = [
        [hanging.id, 'timeout'],
        [closing.id, 'reset'],
        [inner.id, 'refused_address'],
        [unknown.id, 'dns'],
      ] as const;
      for (const [id, errorClass] of expected) {
        const [delivery] = await push(id);
        await become(running, id, { 'retry later': 1 });
        const [attempt] = await attemptsOf(delivery!);
        assert.equal([attempt!.error_class, attempt!.http_status], [errorClass, null]);
        assert.ok(attempt!.error);
      }
      await push(secure.id);
      await become(running, secure.id, { 'retry later': 1 });
    }),
);

deliver(
  'delivery.lookups_per_project: names beyond it wait without an attempt, and those of other projects do not',
  async () => {
    const servers = await nameServer((name) =>
      name.startsWith('silent') ? 'silence' : ['127.0.0.1'],
    );
    const strategy = { type: 'linear', duration: 3600, retry_count: 1 } as const;
    const inside = () =>
      scene(
        async ({ running, open, push }) => {
          const at = await receiver();
          try {
            const to = (name: string) => open({ strategy, url: at.url.replace('127.0.0.1', name) });
            const [silent, slow, late] = [
              await to('silent1.test'),
              await to('silent2.test'),
              await to('late.test'),
            ];
            const theirs = await makeEndpoint(db, await makeProject(db), {
              url: at.url.replace('127.0.0.1', 'theirs.test'),
            });
            await running.configCache.refresh();
            await push(silent.id);
            await push(slow.id);
            const [delivery] = await push(late.id);
            running.wiring.inFlight.add(
              await hold({ ...running, projectId: theirs.project_id }, theirs.id, 1),
            );
            await become(running, theirs.id, { success: 1 });
            await become(running, late.id, { 'scheduled later': 1 });
            assert.is(await reasonOf(delivery!), WAIT_REASONS.lookup);
            assert.equal(await attemptsOf(delivery!), []);
            assert.is(at.requests.length, 1);
            for (const { id } of [silent, slow]) await become(running, id, { 'retry later': 1 });
            const [told] = await db.rows<{ error: string }>(
              `select error from delivery_attempts where error_class = 'dns' limit 1`,
            );
            assert.match(
              told!.error,
              /^silent\d\.test cannot be looked up: no name server answered within 5000 ms/,
            );
            await become(running, late.id, { success: 1 });
            assert.is((await attemptsOf(delivery!))[0]!.number, 1);
          } finally {
            await at.close();
          }
        },
        { delivery: { allowed_networks: ['127.0.0.0/8'], lookups_per_project: 2 } },
      );
    try {
      await askingServers([servers.address], inside);
    } finally {
      await servers.close();
    }
  },
);

deliver('a whole response is kept up to the cap, whatever bytes it has', () =>
  scene(
    async ({ running, open, push }) => {
      const { id } = await open(
        {},
        {
          answer: {
            body: Buffer.concat([Buffer.from('a\0b\x1ec\xff'), Buffer.alloc(5_000, 'x')]),
            headers: { 'x-odd': 'é' },
          },
        },
      );
      const [delivery] = await push(id);
      await become(running, id, { success: 1 });
      const [attempt] = await attemptsOf(delivery!);
      assert.match(attempt!.response_body ?? '', /^a\ufffdb\ufffdc/);
      assert.ok((attempt!.response_body ?? '').length <= 1024);
    },
    { max_response_size: 1 },
  ),
);

deliver('an attempt that Postgres refuses does not hold up the attempts beside it', () =>
  scene(async ({ running, open, push }) => {
    const good = await open();
    const bad = await open({ strategy: { type: 'linear' } as never }, { answer: { status: 500 } });
    const ids = await push(bad.id, 3);
    await push(good.id, 3);
    await become(running, good.id, { success: 3 });
    await become(running, bad.id, { failure: 3 });
    assert.match((await reasonOf(ids[0]!)) ?? '', /could not be recorded/);
    assert.equal(
      (await attemptsOf(ids[0]!)).map(({ http_status: status }) => status),
      [500],
    );
    await until('the room to be free', () => running.wiring.inFlight.size === 0);
  }),
);

deliver(
  'an agent that lost what it held sends no more of what waits, and leaves it to those who have it',
  () =>
    scene(async ({ running, open, push }) => {
      let answer: (of: Answer) => void = () => undefined;
      const first = new Promise<Answer>((resolve) => (answer = resolve));
      const { id, at } = await open(
        { concurrency: 1 },
        { answer: (_: ReceivedRequest, number: number) => (number === 0 ? first : {}) },
      );
      await push(id, 4);
      const [request] = await at.received(1);
      const other = await registerAgent(db.pool, 'other', 60_000);
      await db.rows(
        'update event_deliveries set claimed_by = $2 where endpoint_id = $1 and id <> $3',
        [id, other, request!.headers['webhook-id']],
      );
      running.wiring.inFlight.releaseWaiting();
      answer({});
      await become(running, id, { success: 1, processing: 3 });
      assert.is(at.requests.length, 1);
      await until('the room to be free', () => running.wiring.inFlight.size === 0);
    }),
);

deliver('what was committed under an earlier id of the agent is not sent, but given back', () =>
  scene(async ({ running, open }) => {
    const { id, at } = await open();
    const { inFlight, claimer } = running.wiring;
    await claimer.stop();
    const held = await hold(running, id, 2);
    await db.rows('update event_deliveries set claimed_by = 7 where endpoint_id = $1', [id]);
    inFlight.add(held.map((delivery) => ({ ...delivery, agentId: 7 })));
    await become(running, id, { 'scheduled due': 2 });
    assert.is(at.requests.length, 0);
    assert.is(inFlight.size, 0);
  }),
);

deliver('who waits for room is told when there is some, or when nothing moves', () =>
  scene(
    async ({ running, open, push }) => {
      const { inFlight } = running.wiring;
      let answer: (of: Answer) => void = () => undefined;
      const first = new Promise<Answer>((resolve) => (answer = resolve));
      const { id, at } = await open({ concurrency: 2 }, { answer: () => first });
      assert.is(await inFlight.waitForRoom(20_000), true);
      await push(id, 2);
      await at.received(2);
      assert.is(inFlight.room, 0);
      assert.is(await within(inFlight.waitForRoom(50), 10_000, 'an answer'), false);
      const waiting = inFlight.waitForRoom(30_000);
      answer({});
      assert.is(await within(waiting, 10_000, 'room'), true);
    },
    { delivery: { allowed_networks: ['127.0.0.0/8'], max_outstanding: 2 } },
  ),
);

deliver('a project has its own policy and header, an endpoint its own over it', async () => {
  const config = {
    strategy: { type: 'linear', duration: 3600, retry_count: 5 },
    signature: { header: 'X-Shop-Hmac', hash: 'SHA512', encoding: 'base64' },
  } as const;
  const projectId = await makeProject(db, { config });
  const running = await runAgent({ db, projectId });
  const at = await receiver({ answer: { status: 500 } });
  try {
    const byProject = await makeEndpoint(db, projectId, { url: at.url });
    const own = await makeEndpoint(db, projectId, {
      url: at.url,
      strategy: { type: 'linear', duration: 1, retry_count: 0 },
    });
    await running.configCache.refresh();
    for (const { id } of [byProject, own]) running.wiring.inFlight.add(await hold(running, id, 1));
    await become(running, byProject.id, { 'retry later': 1 });
    await become(running, own.id, { failure: 1 });
    assert.match(at.requests[0]!.headers['x-shop-hmac'] ?? '', /^[A-Za-z0-9+/]{86}==$/);
  } finally {
    await at.close();
    await running.close();
    await empty(db);
  }
});

deliver(
  'what is held is bounded in bytes as well: with large bodies there is no room although there are few',
  () =>
    scene(async ({ running, open }) => {
      const { id, at } = await open({}, { answer: { hang: true } });
      const { inFlight } = running.wiring;
      const held = await hold(running, id, 5);
      const large = held.map((delivery) => ({ ...delivery, body: Buffer.alloc(8 * 1024 * 1024) }));
      inFlight.add(large.slice(0, 3));
      assert.ok(inFlight.room > 0);
      inFlight.add(large.slice(3));
      assert.is(inFlight.room, 0);
      await at.received(5);
      inFlight.recorded(large.map(({ id }) => ({ id, number: 1 })));
      assert.ok(inFlight.room > 0, 'and it is free again');
    }),
);

const GIB = 2 ** 30;

deliver(
  'the setting counts whatever the machine is; 0 is what cores and memory suggest, and never none',
  () => {
    const small = { cores: 1, memoryBytes: GIB / 4 };
    assert.is(consumersOf(7, small), 7);
    assert.is(consumersOf(0, { cores: 2, memoryBytes: 16 * GIB }), 500);
    assert.is(consumersOf(0, { cores: 8, memoryBytes: 16 * GIB }), 2_000);
    assert.is(consumersOf(0, small), 128, 'memory bounds it');
    assert.is(consumersOf(0, { cores: 1, memoryBytes: 1 }), 1);
  },
);

deliver.run();
