// long
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { production, subscribed, type Created, type Production } from '../support/production.js';
import { until } from '../support/until.js';

const functions = suite('e2e/subscription-functions');

const MASKS =
  'function transform({ id, ...rest }) { return { id, fields: Object.keys(rest).length }; }';
const THROWS = 'function transform(payload) {\n  return payload.customer.name;\n}';
const LOOPS = 'function transform() { for (;;); }';
const DATA = { id: 'o-1', card: '4111', amount: 7 };

interface Delivery extends Created {
  readonly status: string;
  readonly attempts: number;
  readonly endpoint_id: string;
  readonly is_transformed: boolean;
}

interface Attempt {
  readonly error_class: string | null;
  readonly error: string | null;
}

async function scene(
  test: (gateway: Production, open: (fn: string | null) => Promise<Opened>) => Promise<void>,
): Promise<void> {
  const gateway = await production({
    settings: {
      circuit_breaker: { failure_threshold: 1, minimum_request_count: 2 },
      transform: { deadline_ms: 500 },
    },
  });
  const receivers: Endpoint[] = [];
  try {
    await test(gateway, async (fn) => {
      const at = await endpoint();
      receivers.push(at);
      const { uid, secret } = await subscribed(gateway, at.url);
      await gateway.api('PUT', `/endpoints/${uid}`, {
        strategy: { type: 'linear', duration: 1, retry_count: 20 },
      });
      const { content } = await gateway.api<{ content: Created[] }>(
        'GET',
        `/subscriptions?endpointId=${uid}`,
      );
      const change = (text: string | null) =>
        gateway.api('PUT', `/subscriptions/${content[0]!.uid}`, { function: text });
      await change(fn);
      return { uid, secret, at, subscriptionId: content[0]!.uid, change };
    });
  } finally {
    await gateway.close();
    for (const at of receivers) await at.close();
  }
}

interface Opened {
  readonly uid: string;
  readonly secret: string;
  readonly at: Endpoint;
  readonly subscriptionId: string;
  change(fn: string | null): Promise<unknown>;
}

const deliveriesOf = async (gateway: Production, endpointId: string) =>
  (await gateway.api<{ content: Delivery[] }>('GET', `/eventdeliveries?endpointId=${endpointId}`))
    .content;
const attemptsOf = async (gateway: Production, id: string) =>
  (await gateway.api<{ content: Attempt[] }>('GET', `/eventdeliveries/${id}/deliveryattempts`))
    .content;

functions(
  'of one event an endpoint gets what its function made, and its neighbour the event; both signatures verify',
  () =>
    scene(async (gateway, open) => {
      const [masked, plain] = [await open(MASKS), await open(null)];
      await gateway.api('POST', '/events', { event_type: 'order.paid', data: DATA });
      const [made] = await masked.at.received(1);
      const [whole] = await plain.at.received(1);
      assert.is(made!.body.toString(), '{"id":"o-1","fields":2}');
      assert.equal(JSON.parse(whole!.body.toString()), DATA);
      for (const [{ secret }, request] of [
        [masked, made],
        [plain, whole],
      ] as const)
        assert.not.throws(() => new Webhook(secret).verify(request!.body, { ...request!.headers }));
      const delivery = await until('the delivery to be recorded', async () => {
        return (await deliveriesOf(gateway, masked.uid)).find(({ status }) => status === 'success');
      });
      assert.is(delivery.is_transformed, true);
      const sent = await gateway.api<Created>('GET', `/eventdeliveries/${delivery.uid}/event`);
      assert.equal([sent['data'], sent['is_transformed']], [{ id: 'o-1', fields: 2 }, true]);
    }),
);

functions(
  'a function that fails is a recorded attempt, which opens no circuit breaker; a corrected one delivers what waits',
  () =>
    scene(async (gateway, open) => {
      const shop = await open(THROWS);
      for (let n = 0; n < 4; n++)
        await gateway.api('POST', '/events', { event_type: 'order.paid', data: DATA });
      const failed = await until('four deliveries to be tried twice', async () => {
        const found = await deliveriesOf(gateway, shop.uid);
        return found.length === 4 && found.every(({ attempts }) => attempts >= 2)
          ? found
          : undefined;
      });
      const [attempt] = await attemptsOf(gateway, failed[0]!.uid);
      assert.is(attempt!.error_class, 'function');
      assert.match(
        attempt!.error!,
        `The function of the subscription "orders" (${shop.subscriptionId}) failed.`,
      );
      assert.match(attempt!.error!, / on line 2\. Change the function/);
      const { circuit_breaker: breaker } = await gateway.api<{
        circuit_breaker: { state: string; failures: number };
      }>('GET', `/endpoints/${shop.uid}`);
      assert.equal([breaker.state, breaker.failures, shop.at.requests.length], ['closed', 0, 0]);
      await shop.change(MASKS);
      await shop.at.received(4);
      await until('all to be recorded', async () =>
        (await deliveriesOf(gateway, shop.uid)).every(({ status }) => status === 'success'),
      );
    }),
);

functions('a function that loops slows no neighbour, and a killed agent loses nothing', () =>
  scene(async (gateway, open) => {
    const [looping, neighbour] = [await open(LOOPS), await open(MASKS)];
    for (let n = 0; n < 20; n++)
      await gateway.api('POST', '/events', { event_type: 'order.paid', data: DATA });
    await neighbour.at.received(20);
    await until('the loop to be ended', async () => {
      const attempts = await Promise.all(
        (await deliveriesOf(gateway, looping.uid)).map(({ uid }) => attemptsOf(gateway, uid)),
      );
      return attempts
        .flat()
        .some(({ error }) => error?.includes('did not return within its deadline'));
    });
    const [agent] = gateway.agents;
    await agent!.process.kill();
    await gateway.startAgent();
    await looping.change(MASKS);
    await looping.at.received(20);
    assert.is(looping.at.requests[0]!.body.toString(), '{"id":"o-1","fields":2}');
  }),
);

functions.run();
