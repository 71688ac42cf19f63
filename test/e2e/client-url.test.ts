// deadline: 120 s
import http from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { root } from '../meta/house.js';
import { runGateway } from '../support/gateway.js';
import { freePort, loopback } from '../support/ports.js';
import { managementApi, production } from '../support/production.js';

const clientUrl = suite('e2e/client-url');

const gateway = await production({ agents: 0 });
clientUrl.after(() => gateway.close());

const GATEWAY_URL = `http://127.0.0.1:${gateway.serverPort}`;
const from = (env: Record<string, string>, ...args: string[]) => runGateway(args, { env });

clientUrl('a command prints the same from afar as beside the database', async () => {
  const endpoint = await gateway.api('POST', '/endpoints', { name: 'shop', url: GATEWAY_URL });
  const event = await gateway.api('POST', '/events', {
    event_type: 'order.paid',
    data: { n: 1 },
    endpoint_id: endpoint.uid,
  });
  await gateway.api('POST', '/sources', { name: 'hooks', type: 'http' });
  for (const [words, ...args] of [
    ['utils explain', event.uid, '--json'],
    ['utils sources list', '--json'],
    ['utils quarantine list', '--json'],
    ['utils circuit-breakers', '--endpoint-id', endpoint.uid],
    ['retry', '--status', 'failure', '--time', '1h'],
    ['shards list'],
    ['utils usage'],
  ] as [string, ...string[]][]) {
    const command = [...words.split(' '), ...args];
    const here = await runGateway(command, gateway.run);
    const afar = await from({ GATEWAY_URL, GATEWAY_KEY: gateway.apiKey }, ...command);
    assert.is(here.code, 0, here.stderr);
    const stable = (text: string) => text.replaceAll(/"(since|updated_at)": .*/g, '');
    assert.equal(
      [afar.code, stable(afar.stdout), afar.stderr],
      [0, stable(here.stdout), here.stderr],
      words,
    );
  }
});

clientUrl(
  'a key of a project with two scopes does what they allow, in its project alone',
  async () => {
    const { key: GATEWAY_KEY } = await gateway.api<{ key: string }>('POST', '/api-keys', {
      name: 'support',
      scopes: ['projects:read', 'sources:read'],
    });
    const run = (...command: string[]) => from({ GATEWAY_URL, GATEWAY_KEY }, ...command);
    const call = managementApi(gateway.serverPort, gateway.apiKey);
    const other = await call<{ uid: string }>('POST', '/projects', { name: 'other' });
    const listed = await run('utils', 'sources', 'list', '--json');
    assert.is(listed.code, 0, listed.stderr);
    const sources = JSON.parse(listed.stdout) as { source_name: string; project_name: string }[];
    assert.equal(
      sources.map(({ source_name, project_name }) => [source_name, project_name]),
      [['hooks', 'production']],
    );
    for (const [sentence, ...command] of [
      ['the scope quarantine:read', 'utils', 'quarantine', 'list'],
      ['the scope eventDeliveries:write', 'retry', '--status', 'failure', '--time', '1h'],
      ['the scope shards:read', 'shards', 'list'],
      ['only to the project', 'utils', 'sources', 'list', '--project-id', other.uid],
    ] as [string, ...string[]][]) {
      const { code, stdout, stderr } = await run(...command);
      assert.equal([code, stdout], [1, ''], command.join(' '));
      assert.match(stderr, sentence);
      assert.match(stderr, 'fix: ');
    }
  },
);

clientUrl('event types of documents are imported from afar', async () => {
  const files = ['shop-3.1.yaml', 'bank-3.0.json'].map(
    (it) => `${root}/test/fixtures/openapi/${it}`,
  );
  const command = ['openapi', ...files, '--project-id', gateway.projectId];
  const { code, stdout, stderr } = await from(
    { GATEWAY_URL, GATEWAY_KEY: gateway.apiKey },
    ...command,
  );
  assert.is(code, 0, stderr);
  assert.match(stdout, '8 created, 0 updated, 0 unchanged');
  assert.match((await runGateway(command, gateway.run)).stdout, '0 updated, 8 unchanged');
});

clientUrl('a wrong key, a wrong URL and none of a gateway say what to fix', async () => {
  const GATEWAY_KEY = `${gateway.apiKey.slice(0, -4)}xxxx`;
  const away = `http://127.0.0.1:${await freePort()}`;
  for (const [env, ...sentences] of [
    [{ GATEWAY_URL }, 'refuses the request: client.key is not set', 'GATEWAY_KEY or --key'],
    [{ GATEWAY_URL, GATEWAY_KEY }, 'refuses the request: the API key', 'GATEWAY_KEY or --key'],
    [{ GATEWAY_URL: away, GATEWAY_KEY }, `${away} cannot be used: nothing listens`, '--url'],
    [{ GATEWAY_URL: `${GATEWAY_URL}/docs`, GATEWAY_KEY }, 'cannot be used', '--url'],
  ] as [Record<string, string>, ...string[]][]) {
    const { code, stdout, stderr } = await from(env, 'utils', 'sources', 'list');
    assert.equal([code, stdout], [1, ''], stderr);
    for (const sentence of sentences) assert.match(stderr, sentence);
    assert.not.match(stderr, GATEWAY_KEY);
  }
});

clientUrl('a server without a route of the command is named as older', async () => {
  const server = http.createServer((request, response) => {
    const message = `path ${request.url!.split('?')[0]} not found`;
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ status: false, message, code: 'not_found', fix: 'check it' }));
  });
  const url = `http://127.0.0.1:${await loopback(server)}`;
  try {
    const { code, stderr } = await from(
      { GATEWAY_URL: url, GATEWAY_KEY: 'gw_x' },
      'utils',
      'usage',
    );
    assert.is(code, 1);
    assert.match(
      stderr,
      `the server at ${url} cannot be used: it has no path /api/v1/instance/usage`,
    );
    assert.match(stderr, 'older than this command');
  } finally {
    server.close();
  }
});

clientUrl.run();
