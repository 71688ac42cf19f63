// deadline: 180 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../support/gateway.js';
import { endpoint } from '../support/endpoint.js';
import { production, subscribed } from '../support/production.js';
import { until } from '../support/until.js';

const retry = suite('e2e/retry');
// Failing deliveries must exhaust their attempts, however many fail.
const gateway = await production({
  agents: 2,
  settings: { circuit_breaker: { failure_threshold: 0 } },
});
const { database } = gateway;
const config = { database: database.connection };
await database.rows(
  `update projects set config = '{"strategy":{"type":"linear","duration":1,"retry_count":0}}'`,
);
retry.after(() => gateway.close());

interface Attempts {
  content: { http_status: number; number: number }[];
}

retry(
  'what failed while an endpoint was down is delivered after retry, each once, though it is run twice at once',
  async () => {
    const receiver = await endpoint({ answer: { status: 500 } });
    try {
      const project = await database.rows<{ id: string }>('select id from projects');
      const { uid } = await subscribed(gateway, receiver.url, ['order.paid']);
      const count = async (status: string) =>
        (
          await database.rows(
            'select from event_deliveries where status = $1::event_delivery_status',
            [status],
          )
        ).length;
      for (let n = 0; n < 20; n++)
        await gateway.api('POST', '/events', { event_type: 'order.paid', data: { n } });
      await until('all to have failed', async () => (await count('failure')) === 20);
      assert.is(receiver.requests.length, 20);

      receiver.answer({ status: 200 });
      const args = [
        'retry',
        '--status',
        'failure',
        '--time',
        '30m',
        '--endpoint-id',
        uid,
        '--project-id',
        project[0]!.id,
      ];
      const both = await Promise.all([
        runGateway([...args, '--json'], { config }),
        runGateway([...args, '--json'], { config }),
      ]);
      const requeued = both.map(
        ({ stdout }) => (JSON.parse(stdout) as { requeued: number }).requeued,
      );
      assert.is(requeued[0]! + requeued[1]!, 20, both.map(({ stderr }) => stderr).join(''));

      await until('all to be delivered', async () => (await count('success')) === 20);
      const sent = receiver.requests
        .slice(20)
        .map(({ body }) => (JSON.parse(body.toString()) as { n: number }).n);
      assert.equal(
        sent.sort((a, b) => a - b),
        Array.from({ length: 20 }, (_, n) => n),
      );
      const [delivery] = await database.rows<{ id: string }>(
        'select id from event_deliveries limit 1',
      );
      const { content } = await gateway.api<Attempts>(
        'GET',
        `/eventdeliveries/${delivery!.id}/deliveryattempts`,
      );
      assert.equal(
        content.map(({ number, http_status: status }) => [number, status]),
        [
          [2, 200],
          [1, 500],
        ],
      );
      assert.match((await runGateway(args, { config })).stdout, 'nothing to re-queue');
    } finally {
      await receiver.close();
    }
  },
);

retry('deliveries of a paused endpoint are held and go out when it is active again', async () => {
  const receiver = await endpoint({ answer: { status: 500 } });
  try {
    const { uid } = await subscribed(gateway, receiver.url, ['order.held']);
    await gateway.api('POST', '/events', { event_type: 'order.held', data: {} });
    await until(
      'it to fail',
      async () =>
        (await database.rows(`select from event_deliveries where status = 'failure'`)).length === 1,
    );
    receiver.answer({ status: 200 });
    await gateway.api('PUT', `/endpoints/${uid}/pause`);
    const { stdout, stderr } = await runGateway(['retry', '--status', 'failure', '--time', '1h'], {
      config,
    });
    assert.is(stdout, 're-queued 1 event delivery\n');
    assert.match(stderr, '1 event delivery held until');
    assert.is(receiver.requests.length, 1);
    await gateway.api('POST', `/endpoints/${uid}/activate`);
    await receiver.received(2);
  } finally {
    await receiver.close();
  }
});

retry(
  'events that reached nobody are replayed over the API, and reach the subscription that was missing, each once',
  async () => {
    const receiver = await endpoint();
    try {
      for (let n = 0; n < 20; n++)
        await gateway.api('POST', '/events', { event_type: 'order.missed', data: { n } });
      const pending = () =>
        database.rows(
          `select from events where event_type = 'order.missed' and status = 'pending'`,
        );
      await until('all to be routed', async () => (await pending()).length === 0);
      const { uid } = await subscribed(gateway, receiver.url, ['order.missed']);
      const replay = () =>
        gateway.api<{ count: number }>(
          'POST',
          '/events/batchreplay?startDate=2026-01-01&event_type=order.missed',
        );
      assert.is((await replay()).count, 20);
      await receiver.received(20);
      await until('all to be routed', async () => (await pending()).length === 0);
      assert.is((await replay()).count, 20);
      await until('all to be routed again', async () => (await pending()).length === 0);
      // Another subscription gives another delivery id, but the endpoint has the event.
      const { content } = await gateway.api<{ content: { uid: string }[] }>(
        'GET',
        `/subscriptions?endpointId=${uid}`,
      );
      await gateway.api('DELETE', `/subscriptions/${content[0]!.uid}`);
      await gateway.api('POST', '/subscriptions', {
        name: 'again',
        endpoint_id: uid,
        filter_config: { event_types: ['order.missed'] },
      });
      assert.is((await replay()).count, 20);
      await until(
        'all to be routed by the other subscription',
        async () => (await pending()).length === 0,
      );
      assert.is(
        (await database.rows(`select from event_deliveries where event_type = 'order.missed'`))
          .length,
        20,
      );
      assert.is(receiver.requests.length, 20);
    } finally {
      await receiver.close();
    }
  },
);

retry.run();
