import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { withoutDescriptors } from '../support/descriptors.js';
import { endpoint } from '../support/endpoint.js';
import { production, subscribed, type Created } from '../support/production.js';
import { until } from '../support/until.js';

const intake = suite('e2e/agent-http');

const gateway = await production({ agents: 0 });
const at = await endpoint();
const { uid: endpointId } = await subscribed(gateway, at.url, ['order.*']);
const agent = await gateway.startAgent();
intake.after(async () => {
  await gateway.close();
  await at.close();
});

const base = `http://127.0.0.1:${agent.port}`;
const path = `/api/v1/projects/${gateway.projectId}`;
async function post(
  to: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = { authorization: `Bearer ${gateway.apiKey}` },
) {
  const response = await fetch(base + to, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: JSON.parse(text) as { message: string; code?: string; data: Created },
  };
}
const order = (n: number) => ({ event_type: 'order.paid', data: { n } });
const arrived = (n: number) => at.requests.some(({ body }) => body.toString() === `{"n":${n}}`);

intake(
  'events that are posted to an agent are committed with their deliveries, and sent from memory',
  async () => {
    const answers = [
      await post(`${path}/events`, order(1)),
      await post(`${path}/events`, { ...order(2), endpoint_id: endpointId }),
      await post(`${path}/events/broadcast`, order(3)),
      await post(`${path}/events/batch`, { events: [order(4), order(5)] }),
    ];
    assert.equal(
      answers.map(({ status }) => status),
      [201, 201, 201, 200],
    );
    await until('all of them', () => [1, 2, 3, 4, 5].every(arrived));
    const { uid } = answers[0]!.body.data;
    const rows = await gateway.database.rows<{ created: boolean; attempts: number }>(
      `select e.accepted_at = d.created_at as created, d.attempts from event_deliveries d join events e on e.id = d.event_id where e.id = $1`,
      [uid],
    );
    assert.equal(rows, [{ created: true, attempts: 1 }], 'one transaction made both');
    assert.is((await gateway.api(`GET`, `/events/${uid}`)).uid, uid);
  },
);

intake('keys, scopes and idempotency are those of a server', async () => {
  const refused = await post(`${path}/events`, order(6), {});
  assert.equal([refused.status, refused.body.code], [401, 'unauthorized']);
  const wrong = await post(`${path}/events`, { data: {} });
  assert.equal([wrong.status, wrong.body.code], [422, 'invalid_request']);
  const keyed = { ...order(7), idempotency_key: 'k-7' };
  const [first, again] = [await post(`${path}/events`, keyed), await post(`${path}/events`, keyed)];
  assert.equal([first.status, again.status, again.body.data.uid], [201, 200, first.body.data.uid]);
  const other = await post(`${path}/endpoints`, { name: 'x', url: at.url });
  assert.equal(
    [other.status, other.body.code],
    [404, 'not_found'],
    'only what brings events is here',
  );
});

intake('an HTTP source takes webhooks at the port of an agent', async () => {
  const body_function = `function transform(payload) { return payload.lines.map((n) => ({ event_type: 'order.line', data: { n } })); }`;
  const source = await gateway.api<Created & { url: string }>('POST', '/sources', {
    name: 'hooks',
    type: 'http',
    body_function,
  });
  const { pathname } = new URL(source.url, base);
  const posted = await post(pathname, { lines: [8, 9] }, {});
  assert.equal([posted.status, posted.body.data['events']], [200, 2]);
  await until('both lines', () => arrived(8) && arrived(9));
  const bad = await post(pathname, { lines: 'none' }, {});
  assert.is(bad.status, 202, 'it is quarantined');
});

intake(
  'an agent that drains refuses events at once, and loses none that it has accepted',
  async () => {
    const leaving = await gateway.startAgent();
    const answers: { status: number; n: number }[] = [];
    let n = 100;
    let isOver = false;
    const caller = async () => {
      while (!isOver) {
        const mine = n++;
        const response = await fetch(`http://127.0.0.1:${leaving.port}${path}/events`, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            authorization: `Bearer ${gateway.apiKey}`,
          },
          body: JSON.stringify(order(mine)),
        }).catch(() => undefined);
        if (response) answers.push({ status: response.status, n: mine });
        else isOver = true;
        await response?.arrayBuffer();
      }
    };
    const callers = [caller(), caller(), caller(), caller()];
    await until(
      'some to be accepted',
      () => answers.filter(({ status }) => status === 201).length > 20,
    );
    await leaving.process.terminate();
    await Promise.all(callers);
    const others = answers.filter(({ status }) => status !== 201);
    assert.ok(
      others.every(({ status }) => status === 503),
      JSON.stringify(others.slice(0, 5)),
    );
    const accepted = answers.filter(({ status }) => status === 201);
    await until('all that was accepted', () => accepted.every((one) => arrived(one.n)));
  },
);

intake('a body that still arrives when an agent is told to stop is answered', async () => {
  const leaving = await gateway.startAgent();
  const body = JSON.stringify(order(11));
  const socket = net.connect(leaving.port, '127.0.0.1');
  const answer: Buffer[] = [];
  socket.on('data', (bytes: Buffer) => answer.push(bytes)).on('error', () => undefined);
  socket.write(
    `POST ${path}/events HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nauthorization: Bearer ${gateway.apiKey}\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 9)}`,
  );
  await sleep(500);
  const stopped = leaving.process.terminate();
  await sleep(3_000);
  socket.write(body.slice(9));
  await until('the answer', () => answer.length > 0);
  await stopped;
  assert.match(Buffer.concat(answer).toString(), /^HTTP\/1\.1 201 /);
  await until('the event', () => arrived(11));
});

intake(
  'an agent without a free descriptor attempts nothing, names the limit, and sends later',
  async () => {
    const fresh = await endpoint();
    const { uid } = await subscribed(gateway, fresh.url, ['short.*']);
    const waiting = () =>
      gateway.database.rows<{ attempts: number; reason: string }>(
        'select attempts, reason from event_deliveries where endpoint_id = $1',
        [uid],
      );
    await withoutDescriptors(agent.process.pid, async () => {
      await gateway.api('POST', '/events', { event_type: 'short.one', data: {} });
      await until('it to wait', async () => (await waiting())[0]?.reason);
      const [row] = await waiting();
      assert.is(row!.attempts, 0);
      assert.match(row!.reason, 'An agent has run short of');
    });
    const shortage = async () => {
      const { data } = (await (await fetch(`${base}/healthz`)).json()) as {
        data: { components: { name: string; state: string; reason?: string }[] };
      };
      return data.components.find(({ name }) => name === 'resources');
    };
    const own = await until('health to show it', shortage);
    assert.is(own.state, 'degraded');
    assert.match(own.reason!, /\(EMFILE\)\. Raise its limit: LimitNOFILE of systemd/);
    await fresh.received(1);
    await until('the record', async () => (await waiting())[0]?.attempts === 1);
    const breakers = await gateway.api<{ circuit_breaker: { failures: number } }>(
      'GET',
      `/endpoints/${uid}`,
    );
    assert.is(breakers.circuit_breaker.failures, 0);
    await fresh.close();
  },
);

intake('a server routes in its commit, and an agent claims the deliveries', async () => {
  const made = await gateway.api('POST', '/events', order(10));
  await until('the event', () => arrived(10));
  const [row] = await gateway.database.rows<{ created: boolean }>(
    `select e.accepted_at = d.created_at as created from event_deliveries d join events e on e.id = d.event_id where e.id = $1`,
    [made.uid],
  );
  assert.ok(row!.created, 'one transaction made both');
});

intake.run();
