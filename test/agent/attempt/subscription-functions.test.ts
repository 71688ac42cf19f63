import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Webhook } from 'standardwebhooks';
import {
  deleteSubscription,
  toggleSubscription,
  updateSubscription,
} from '#store/config/subscriptions';
import { findEventDelivery, resendEventDelivery } from '#store/deliveries/delivery-log';
import { WAIT_REASONS } from '#store/deliveries/postponed-deliveries';
import { empty } from '../../store/batches.js';
import { migratedDatabase } from '../../store/migrated.js';
import { endpoint as receiver, type Endpoint } from '../../support/endpoint.js';
import { until, within } from '../../support/until.js';
import { hold, states } from '../hold.js';
import { makeEndpoint, makeSubscription } from '../records.js';
import { runAgent, type RunningAgent } from '../running.js';

const functions = suite('agent/attempt/subscription-functions');

const db = await migratedDatabase();
functions.after(() => db.close());

const AT_ONCE = { type: 'linear', duration: 1, retry_count: 5 } as const;
const MASKS = 'function transform({ n }) { return { masked: n + 1 }; }';
const THROWS = 'function transform(payload) {\n  return payload.missing.field;\n}';
const LOOPS = 'function transform() { for (;;); }';

interface Opened {
  readonly id: string;
  readonly secret: string;
  readonly subscriptionId: string;
  readonly at: Endpoint;
}

interface Scene {
  readonly running: RunningAgent;
  open(fn: string | null, answer?: Parameters<typeof receiver>[0]): Promise<Opened>;
  /** Pushes deliveries of the subscription to the scheduler. Returns their ids. */
  push(to: Opened, count?: number): Promise<string[]>;
  change(to: Opened, fn: string | null): Promise<void>;
}

async function scene(
  test: (scene: Scene) => Promise<void>,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const running = await runAgent({
    db,
    settings: { transform: { deadline_ms: 300 }, ...settings },
  });
  const { configCache, projectId } = running;
  const opened: Endpoint[] = [];
  try {
    await within(
      test({
        running,
        open: async (fn, answer = {}) => {
          const at = await receiver(answer);
          opened.push(at);
          const { id, secret } = await makeEndpoint(db, projectId, {
            url: at.url,
            strategy: AT_ONCE,
          });
          const subscriptionId = await makeSubscription(db, projectId, { endpointId: id, fn });
          await configCache.refresh();
          return { id, secret, subscriptionId, at };
        },
        push: async ({ id, subscriptionId }, count = 1) => {
          const held = await hold(running, id, count, {}, subscriptionId);
          running.wiring.inFlight.add(held);
          return held.map((one) => one.id);
        },
        change: async ({ subscriptionId }, fn) => {
          await updateSubscription(db.knex, projectId, subscriptionId, { function: fn });
          await configCache.refresh();
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

const become = (running: RunningAgent, { id }: Opened, state: string, count = 1) =>
  until(`${count} ${state}`, async () => (await states(running, id))[state] === count);

const attemptsOf = (id: string) =>
  db.rows<{
    number: number;
    http_status: number | null;
    error_class: string | null;
    error: string | null;
  }>(
    'select number, http_status, error_class, error from delivery_attempts where event_delivery_id = $1 order by number',
    [id],
  );

const deliveryOf = async (id: string) =>
  (
    await db.rows<{
      status: string;
      attempts: number;
      reason: string | null;
      transformed_data: string | null;
    }>('select status, attempts, reason, transformed_data from event_deliveries where id = $1', [
      id,
    ])
  )[0]!;

const bodies = (at: Endpoint) => at.requests.map(({ body }) => body.toString());

functions(
  'the endpoint of a subscription gets what its function makes, signed, and the endpoint of another the data of the event',
  () =>
    scene(async ({ running, open, push }) => {
      const [masked, plain] = [await open(MASKS), await open(null)];
      const [first] = await push(masked);
      const [second] = await push(plain);
      await become(running, masked, 'success');
      await become(running, plain, 'success');
      assert.equal([bodies(masked.at), bodies(plain.at)], [['{"masked":2}'], ['{"n":1}']]);
      for (const { secret, at } of [masked, plain])
        new Webhook(secret).verify(at.requests[0]!.body, { ...at.requests[0]!.headers });
      assert.is((await deliveryOf(first!)).transformed_data, '{"masked":2}');
      assert.is((await deliveryOf(second!)).transformed_data, null);
    }),
);

functions(
  'what was made first is sent by every further attempt, and by a resend, whatever the function is by then',
  () =>
    scene(async ({ running, open, push, change }) => {
      const shop = await open(MASKS, { answer: [{ status: 500 }, { status: 200 }] });
      const [id] = await push(shop);
      await become(running, shop, 'retry later');
      await change(shop, THROWS);
      await become(running, shop, 'success');
      const delivery = await findEventDelivery(db.planes, running.projectId, id!);
      await resendEventDelivery(db.planes, delivery!, ['success']);
      await shop.at.received(3);
      assert.equal(bodies(shop.at), Array(3).fill('{"masked":2}'));
    }),
);

functions(
  'a function that throws is a failed attempt that names subscription, line and fix; corrected, it mends what waits',
  () =>
    scene(
      async ({ running, open, push, change }) => {
        const shop = await open(THROWS);
        const ids = await push(shop, 12);
        await become(running, shop, 'retry later', 12);
        const [attempt] = await attemptsOf(ids[0]!);
        assert.equal(
          [attempt!.number, attempt!.http_status, attempt!.error_class],
          [1, null, 'function'],
        );
        assert.match(
          attempt!.error!,
          new RegExp(
            `^The function of the subscription "subscription" \\(${shop.subscriptionId}\\) failed\\. .* on line 2\\. Change the function`,
          ),
        );
        assert.equal(
          [shop.at.requests.length, running.wiring.circuitBreakers.notClosed()],
          [0, []],
        );
        await change(shop, MASKS);
        await become(running, shop, 'success', 12);
        assert.equal(bodies(shop.at), Array(12).fill('{"masked":2}'));
      },
      { circuit_breaker: { failure_threshold: 1, minimum_request_count: 2 } },
    ),
);

functions('the last attempt of a function that fails ends the delivery', () =>
  scene(async ({ running, open, push }) => {
    const shop = await open(THROWS);
    await db.rows(
      `update endpoints set strategy = '{"type":"linear","duration":1,"retry_count":0}' where id = $1`,
      [shop.id],
    );
    await running.configCache.refresh();
    const [id] = await push(shop);
    await become(running, shop, 'failure');
    assert.match(
      (await deliveryOf(id!)).reason!,
      /^No retry is left after attempt 1\. The function of the subscription/,
    );
  }),
);

functions('null ends the delivery without a request or an attempt, an array fails', () =>
  scene(async ({ running, open, push }) => {
    const [none, several] = [
      await open('const transform = () => null;'),
      await open('const transform = (p) => [p, p];'),
    ];
    const [dropped] = await push(none);
    const [failed] = await push(several);
    await become(running, none, 'discarded');
    const { attempts, reason } = await deliveryOf(dropped!);
    assert.is(attempts, 0);
    assert.match(
      reason!,
      /^The function of the subscription "subscription" \(.*\) returned null: nothing is sent\.$/,
    );
    await become(running, several, 'retry later');
    const [attempt] = await attemptsOf(failed!);
    assert.match(
      attempt!.error!,
      /returned an array of 2, and a delivery has one object\. Return an object, or null to send nothing\./,
    );
    assert.equal([none.at.requests.length, several.at.requests.length], [0, 0]);
  }),
);

functions(
  'a subscription that was disabled, deleted or changed back has the function that it has now for what it made before',
  () =>
    scene(async ({ running, open, push, change }) => {
      const [disabled, deleted, without] = [
        await open(MASKS),
        await open(MASKS),
        await open(MASKS),
      ];
      await toggleSubscription(db.knex, running.projectId, disabled.subscriptionId);
      await deleteSubscription(db.knex, running.projectId, deleted.subscriptionId);
      await change(without, null);
      for (const one of [disabled, deleted, without]) {
        await push(one);
        await become(running, one, 'success');
      }
      assert.equal(
        [bodies(disabled.at), bodies(deleted.at), bodies(without.at)],
        [['{"masked":2}'], ['{"masked":2}'], ['{"n":1}']],
      );
    }),
);

functions(
  'a function that loops holds up no other endpoint: what waits for it waits in Postgres',
  () =>
    scene(
      async ({ running, open, push, change }) => {
        const [looping, plain, good] = [await open(LOOPS), await open(null), await open(MASKS)];
        const ids = await push(looping, 30);
        await push(plain, 30);
        await push(good, 30);
        await become(running, plain, 'success', 30);
        await become(running, good, 'success', 30);
        assert.is(looping.at.requests.length, 0);
        await until(
          'a failed attempt',
          async () => (await Promise.all(ids.map(attemptsOf))).flat().length > 0,
        );
        const tried = (await Promise.all(ids.map(attemptsOf))).flat();
        assert.match(tried[0]!.error!, /did not return within its deadline of 300 ms/);
        const reasons = async () =>
          (await Promise.all(ids.map(deliveryOf))).map(({ reason }) => reason);
        await until('the others to wait', async () =>
          (await reasons()).includes(WAIT_REASONS.function),
        );
        assert.equal(running.wiring.circuitBreakers.notClosed(), []);
        await change(looping, MASKS);
        await become(running, looping, 'success', 30);
      },
      { consumer_pool_size: 8 },
    ),
);

functions('a probe of a circuit breaker is no failure when the function fails instead', () =>
  scene(
    async ({ running, open, push, change }) => {
      const shop = await open(null, {
        answer: [{ status: 500 }, { status: 500 }, { status: 200 }],
      });
      await push(shop, 2);
      await until(
        'the breaker to open',
        () => running.wiring.circuitBreakers.notClosed().length === 1,
      );
      await change(shop, THROWS);
      const [thrown] = await push(shop);
      await until('the attempt of the probe', async () => (await attemptsOf(thrown!)).length > 0);
      const states = running.wiring.circuitBreakers.notClosed().map(({ state }) => state);
      assert.equal(states, ['half_open']);
      await change(shop, MASKS);
      await until(
        'the breaker to close',
        () => running.wiring.circuitBreakers.notClosed().length === 0,
      );
    },
    { circuit_breaker: { failure_threshold: 1, minimum_request_count: 2, error_timeout: 1 } },
  ),
);

functions.run();
