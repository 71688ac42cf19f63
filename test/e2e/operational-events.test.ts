// deadline: 150 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { verify } from '#client/verify';
import { endpoint } from '../support/endpoint.js';
import { production, subscribed } from '../support/production.js';
import { until } from '../support/until.js';

const operational = suite('e2e/operational-events');
const gateway = await production({
  agents: 1,
  settings: {
    circuit_breaker: { minimum_request_count: 3, error_timeout: 1 },
    notifications: { endpoint_failures: 3, quiet_seconds: 0 },
  },
});
operational.after(() => gateway.close());

interface OperationalEvent {
  readonly type: string;
  readonly endpoint: { readonly uid: string };
}

operational(
  'an endpoint fails until its breaker opens and a delivery is exhausted, and recovers: a second endpoint receives signed events',
  async () => {
    const [receiver, ops] = await Promise.all([
      endpoint({ answer: { status: 500 } }),
      endpoint({ answer: { status: 200 } }),
    ]);
    await gateway.database.rows(
      `update projects set config = '{"strategy":{"type":"linear","duration":1,"retry_count":1}}'`,
    );
    const { uid } = await subscribed(gateway, receiver.url, ['order.*']);
    const { uid: opsId, secret } = await subscribed(gateway, ops.url, ['gateway.*']);
    const events = () =>
      Promise.all(
        ops.requests.map(({ body, headers }) => verify<OperationalEvent>(body, headers, secret)),
      );
    const received = (...types: string[]) =>
      until(
        types.join(' and '),
        async () => {
          const found = (await events()).filter(({ endpoint: of }) => of.uid === uid);
          return types.every((type) => found.some((it) => it.type === type));
        },
        { withinMs: 60_000 },
      );
    for (let n = 0; n < 4; n++)
      await gateway.api('POST', '/events', { event_type: 'order.paid', data: { n } });
    await received(
      'gateway.endpoint.failing',
      'gateway.endpoint.breaker_opened',
      'gateway.delivery.exhausted',
    );
    receiver.answer({ status: 200 });
    await gateway.api('POST', '/events', { event_type: 'order.paid', data: {} });
    await received('gateway.endpoint.recovered', 'gateway.endpoint.breaker_closed');

    const history = await gateway.api<{ content: { event_metadata: { event_type: string } }[] }>(
      'GET',
      `/eventdeliveries?endpointId=${opsId}`,
    );
    assert.ok(
      history.content.some((it) => it.event_metadata.event_type === 'gateway.delivery.exhausted'),
    );
    await Promise.all([receiver.close(), ops.close()]);
  },
);

operational.run();
