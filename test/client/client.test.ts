import http from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { GatewayApiError, GatewayClient } from '@gateway/client';
import { makeProject, startApi, type Api } from '../server/api.js';
import { loopback } from '../support/ports.js';

const client = suite('client/client');
let api: Api;
let gateway: GatewayClient;

client.before(async () => {
  api = await startApi();
  const { id, key } = await makeProject(api);
  gateway = new GatewayClient({ url: api.url, key, projectId: id });
});
client.after(() => api.close());

const failing = async (promise: Promise<unknown>) => {
  const error = await promise.then(
    () => new Error('it succeeded'),
    (it: unknown) => it,
  );
  if (!(error instanceof GatewayApiError)) throw error;
  return error;
};

client('a resource is created, changed, read and deleted', async () => {
  const { uid, secrets } = await gateway.endpoints.create({
    name: 'shop',
    url: 'https://example.com/hooks',
  });
  assert.match(secrets[0]!.value, /^whsec_/);
  assert.is((await gateway.endpoints.update(uid, { http_timeout: 20 })).http_timeout, 20);
  assert.is((await gateway.endpoints.pause(uid)).status, 'paused');
  assert.is((await gateway.endpoints.get(uid)).name, 'shop');
  assert.is(await gateway.endpoints.delete(uid), null);
  const { status, code, message } = await failing(gateway.endpoints.get(uid));
  assert.equal([status, code], [404, 'not_found']);
  assert.match(message, uid);
});

client('a list is iterated page by page, and one page can be had', async () => {
  const made = [];
  for (let n = 0; n < 5; n++)
    made.push((await gateway.endpoints.create({ name: `e${n}`, url: 'https://example.com' })).name);
  const names = [];
  for await (const { name } of gateway.endpoints.list({ perPage: 2, sort: 'ASC' }))
    names.push(name);
  assert.equal(names, made);
  const { content, pagination } = await gateway.endpoints.list({ perPage: 2 }).page();
  assert.equal(
    content.map(({ name }) => name),
    ['e4', 'e3'],
  );
  assert.ok(pagination.has_next_page);
});

client('an invalid request says which fields, and nothing is sent without a project', async () => {
  const { status, errors } = await failing(
    gateway.endpoints.create({ name: '', url: 'ftp://example.com' }),
  );
  assert.is(status, 422);
  assert.equal(errors[0], { field: 'name', sentence: 'must not be empty' });
  const homeless = new GatewayClient({ url: api.url, key: 'gw_x' });
  const error = await homeless.endpoints
    .list()
    .page()
    .catch((it: Error) => it.message);
  assert.is(
    error,
    'GET /projects/{project_id}/endpoints needs a project_id: give the client a projectId',
  );
  assert.is((await failing(homeless.project('no-project').endpoints.list().page())).status, 401);
});

/** A server that gives these answers in order and records requests. */
async function answering(...answers: readonly (number | 'reset')[]) {
  const asked: { method: string; atMs: number; key: unknown }[] = [];
  const server = http.createServer((request, response) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)]!;
    asked.push({
      method: request.method!,
      atMs: performance.now(),
      key: request.headers['idempotency-key'],
    });
    if (answer === 'reset') return void request.socket.destroy();
    response.writeHead(answer, {
      'content-type': 'application/json',
      ...(answer === 429 && { 'retry-after': '1' }),
    });
    response.end(
      JSON.stringify(
        answer === 200
          ? { data: { uid: 'x' } }
          : { message: 'no', code: 'too_many_requests', fix: 'wait' },
      ),
    );
  });
  const port = await loopback(server);
  return {
    asked,
    client: (options = {}) =>
      new GatewayClient({ url: `http://127.0.0.1:${port}`, key: 'k', projectId: 'p', ...options }),
    close: () => (server.closeAllConnections(), server.close()),
  };
}

client('a request that was one too many is repeated when the server says', async () => {
  const server = await answering(429, 200);
  assert.is((await server.client().endpoints.create({ name: 'e', url: 'u' })).uid, 'x');
  const [first, second] = server.asked;
  assert.ok(second!.atMs - first!.atMs >= 990);
  server.close();
});

client('what may have happened is not repeated, unless it happens once only', async () => {
  for (const answer of [503, 'reset'] as const) {
    const server = await answering(answer, 200);
    const lost = await server
      .client()
      .events.create({ event_type: 'a', data: {} })
      .then(
        () => 'succeeded',
        () => 'failed',
      );
    assert.equal([lost, server.asked.length], ['failed', 1], String(answer));
    server.close();
    const safe = await answering(answer, 200);
    await safe.client().events.create({ event_type: 'a', data: {}, idempotency_key: 'k' });
    assert.is(safe.asked.length, 2, String(answer));
    await safe.client().endpoints.get('e');
    safe.close();
  }
});

client('a create is repeated with the same key, and each create has its own', async () => {
  for (const answer of [503, 'reset'] as const) {
    const server = await answering(answer, 200);
    const create = () => server.client().endpoints.create({ name: 'e', url: 'u' });
    await create();
    await create();
    const [first, second, third] = server.asked.map(({ key }) => key);
    assert.match(String(first), /^[0-9a-f]{32}$/);
    assert.equal([second === first, third === first], [true, false]);
    await server
      .client()
      .endpoints.create({ name: 'e', url: 'u' }, { headers: { 'Idempotency-Key': 'mine' } });
    assert.is(server.asked.at(-1)!.key, 'mine');
    server.close();
  }
  const headers = { 'idempotency-key': 'of the client' };
  const made = () =>
    gateway.endpoints.create({ name: 'once', url: 'https://example.com' }, { headers });
  const [one, other] = await Promise.all([made(), made()]);
  assert.is(one.uid, other.uid, 'of two at a time the second waits for the first');
});

client('it gives up after the last repetition, and when its caller does', async () => {
  const server = await answering(429);
  const { status, fix } = await failing(server.client({ retries: 0 }).endpoints.get('e'));
  assert.equal([status, fix], [429, 'wait']);
  const caller = new AbortController();
  const running = server.client().endpoints.get('e', { signal: caller.signal });
  setTimeout(() => caller.abort(new Error('enough')), 50);
  assert.is(await running.catch((it: Error) => it.message), 'enough');
  server.close();
});

client('an answer of somebody else is not taken for one of the gateway', async () => {
  const other = http.createServer((_request, response) => response.end('<html>'));
  const port = await loopback(other);
  const { code, message } = await failing(
    new GatewayClient({ url: `http://127.0.0.1:${port}`, key: 'k' }).organisations.list(),
  );
  assert.is(code, 'unexpected_answer');
  assert.match(message, 'answered 200, and not as the gateway does');
  other.close();
});

client('a connection that is lost in the middle of a response is tried again', async () => {
  let requests = 0;
  const server = http.createServer((_, response) => {
    requests += 1;
    response.writeHead(200, { 'content-type': 'application/json' });
    if (requests === 1) response.write('{"data":', () => response.destroy());
    else response.end('{"data":{"uid":"p"}}');
  });
  const port = await loopback(server);
  const { uid } = await new GatewayClient({
    url: `http://127.0.0.1:${port}`,
    key: 'k',
  }).projects.get('p');
  assert.is(uid, 'p');
  assert.is(requests, 2);
  server.close();
});

client.run();
