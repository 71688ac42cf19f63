import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { runGateway } from '../support/gateway.js';
import { production, subscribed } from '../support/production.js';
import { until } from '../support/until.js';

const issues = suite('e2e/issues');
// A retry reaches the endpoint only past a breaker that would stay open for longer than the test.
const gateway = await production({
  agents: 2,
  settings: {
    circuit_breaker: { minimum_request_count: 5, error_timeout: 600, max_error_timeout: 600 },
  },
});
const { database } = gateway;
const config = { database: database.connection };
await database.rows(
  `update projects set config = '{"strategy":{"type":"linear","duration":3600,"retry_count":3}}'`,
);
issues.after(() => gateway.close());

interface Issue {
  readonly uid: string;
  readonly kind: string;
  readonly state: string;
  readonly error: string;
}
interface Page {
  readonly content: readonly Issue[];
}

issues(
  'an endpoint fails: an issue says why; mended, all is delivered on one request, and the issue resolves',
  async () => {
    const receiver = await endpoint({ answer: { status: 500 } });
    const { uid } = await subscribed(gateway, receiver.url);
    const breaker = async () =>
      (await gateway.api<{ circuit_breaker: { state: string } }>('GET', `/endpoints/${uid}`))
        .circuit_breaker.state;
    const N = 30;
    for (let n = 0; n < N; n++)
      await gateway.api('POST', '/events', { event_type: 'order.paid', data: { n } });
    await until('the circuit breaker to open', async () => (await breaker()) === 'open');
    await until('all to wait', async () => {
      const rows = await database.rows(
        `select from event_deliveries where status in ('retry', 'scheduled') and next_attempt_at > now()`,
      );
      return rows.length === N;
    });
    const list = async (state: string) =>
      (await gateway.api<Page>('GET', `/issues?state=${state}`)).content;
    await until('the issue', async () => (await list('open')).length === 1);
    const [issue] = await list('open');
    assert.equal([issue!.kind, issue!.error], ['http_500', 'The endpoint answered 500.']);
    const listed = await runGateway(['utils', 'issues', 'list'], { config });
    assert.match(listed.stdout, /http_500/);

    receiver.answer({ status: 200 });
    const counted = await runGateway(['utils', 'issues', 'retry', issue!.uid, '--dry-run'], {
      config,
    });
    assert.is(counted.stdout, `${N} event deliveries would be re-queued\n`);
    const { due } = await gateway.api<{ due: number }>('POST', `/issues/${issue!.uid}/retry`);
    assert.is(due, N);
    await until('all to be delivered', async () => {
      const rows = await database.rows(`select from event_deliveries where status = 'success'`);
      return rows.length === N;
    });
    await until('the issue to resolve', async () => (await list('resolved')).length === 1);
    assert.is(await breaker(), 'closed');
    const accepted = new Set(receiver.requests.map(({ headers }) => headers['webhook-id']));
    assert.is(accepted.size, N);
    await receiver.close();
  },
);

issues('one delivery is retried as the probe of an open circuit breaker', async () => {
  const receiver = await endpoint({ answer: { status: 503 } });
  const { uid } = await subscribed(gateway, receiver.url, ['order.probe']);
  for (let n = 0; n < 10; n++)
    await gateway.api('POST', '/events', { event_type: 'order.probe', data: { n } });
  const waiting = () =>
    database.rows<{ id: string }>(
      `select id from event_deliveries where endpoint_id = $1 and status in ('retry', 'scheduled') and next_attempt_at > now() order by id`,
      [uid],
    );
  const state = async () =>
    (await gateway.api<{ circuit_breaker: { state: string } }>('GET', `/endpoints/${uid}`))
      .circuit_breaker.state;
  await until('the circuit breaker to open', async () => (await state()) === 'open');
  await until('all to wait', async () => (await waiting()).length === 10);
  receiver.answer({ status: 200 });
  const [first] = await waiting();
  await gateway.api('PUT', `/eventdeliveries/${first!.id}/resend`);
  await until('it to be delivered', async () => {
    const rows = await database.rows<{ status: string }>(
      'select status::text from event_deliveries where id = $1',
      [first!.id],
    );
    return rows[0]!.status === 'success';
  });
  await until('the circuit breaker to close', async () => (await state()) === 'closed');
  await receiver.close();
});

issues.run();
