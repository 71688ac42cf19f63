// long
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { runGateway } from '../support/gateway.js';
import { installGateway, pack } from '../support/installed.js';
import { production, subscribed } from '../support/production.js';
import { redis } from '../support/redis.js';
import { tempFolder } from '../support/start/keep.js';

/**
 * A third-party source: its package is outside the workspace, depends only on `@gateway/plugin`,
 * and is installed into a clean installation of packed packages with the operators' command.
 */
const stranger = suite('e2e/stranger');

// The installation is outside the repository: its coverage would be discarded, and slows down each
// start by a quarter.
delete process.env['NODE_V8_COVERAGE'];

const author = fileURLToPath(new URL('../stranger/gateway-source-redis-streams', import.meta.url));
const bin = await installGateway();
const pluginsDir = path.join(tempFolder('operations'), 'gateway-plugins');
const own = await redis();
const address = `${own.connection.host}:${own.connection.port}`;
stranger.after(() => own.close());

stranger('is packed, installed, and explained before it is switched on', async () => {
  const env = { GATEWAY_PLUGINS_DIR: pluginsDir };
  const installed = await runGateway(['plugins', 'install', await pack(author)], { bin, env });
  assert.is(installed.code, 0, installed.stderr);
  assert.match(
    installed.stdout,
    /^installed the source plugin redis-streams \(gateway-source-redis-streams 1\.0\.0\): inactive because the feature flag/,
  );

  const flags = await runGateway(['feature-flags', '--enable-feature-flag=redis-streams'], {
    bin,
    env,
  });
  assert.match(
    flags.stdout,
    /redis-streams +on +--enable-feature-flag +beta +gateway-source-redis-streams +Read Redis streams\./,
  );
  const help = await runGateway(['agent', '--help'], { bin, env });
  assert.match(help.stdout, '--redis-streams-take-over-ms');
  const config = await runGateway(['config', '--redis-streams-take-over-ms=5000'], { bin, env });
  assert.is(
    (JSON.parse(config.stdout) as { source: Record<string, { take_over_ms: number }> }).source[
      'redis-streams'
    ]?.take_over_ms,
    5000,
  );
});

stranger('passes the conformance suite as it was installed', async () => {
  const env = { GATEWAY_PLUGINS_DIR: pluginsDir, REDIS_ADDRESS: address };
  const { code, stdout, stderr } = await runGateway(['plugins', 'test', 'redis-streams'], {
    bin,
    env,
    withinMs: 180_000,
  });
  assert.is(code, 0, `${stdout}${stderr}`);
  assert.match(stdout, /\n18 passed, 0 failed, 1 skipped\n$/);
  assert.match(stdout, 'keeps-the-order, skipped: the rig says that the broker keeps no order');
});

stranger('a metrics backend for StatsD passes it too, as it was installed', async () => {
  const env = { GATEWAY_PLUGINS_DIR: pluginsDir };
  const statsd = fileURLToPath(new URL('../stranger/gateway-metrics-statsd', import.meta.url));
  const installed = await runGateway(['plugins', 'install', await pack(statsd)], { bin, env });
  assert.is(installed.code, 0, installed.stderr);
  const { code, stdout, stderr } = await runGateway(['plugins', 'test', 'statsd'], {
    bin,
    env,
    withinMs: 60_000,
  });
  assert.is(code, 0, `${stdout}${stderr}`);
  assert.match(stdout, '\n4 passed, 0 failed, 0 skipped\n');
});

stranger('delivers its messages, signed, by its own settings and its own flag', async () => {
  const receiver = await endpoint();
  const gateway = await production({
    bin,
    settings: {
      plugins: { dir: pluginsDir, strict: true },
      enable_feature_flag: ['redis-streams'],
      source: { allowed_networks: ['127.0.0.0/8'], 'redis-streams': { take_over_ms: 2000 } },
    },
  });
  const client = new Redis(own.url);
  try {
    const { secret } = await subscribed(gateway, receiver.url, ['order.*']);
    // Sources use database 0 of their Redis, where streams of other tests may exist.
    const stream = `orders-${process.pid}`;
    const connection = { address, stream, group: 'gateway' };
    const source = (fields: object) => ({
      name: 'orders',
      type: 'pub_sub',
      pub_sub: { type: 'redis-streams', 'redis-streams': { ...connection, ...fields } },
    });

    const missing = await gateway
      .api('POST', '/sources', source({}))
      .catch((error: Error) => error.message);
    assert.match(missing as string, `There is no stream ${stream} on Redis at ${address}.`);
    const wrong = await gateway
      .api('POST', '/sources', source({ grup: 1 }))
      .catch((error: Error) => error.message);
    assert.match(wrong as string, 'pub_sub.redis-streams.grup');

    await client.select(0);
    await client.xadd(
      stream,
      '*',
      'traceparent',
      '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      'body',
      message(1),
    );
    await gateway.api('POST', '/sources', source({}));
    await client.xadd(stream, '*', 'body', 'not json');
    await client.xadd(stream, '*', 'body', message(2));
    const requests = await receiver.received(2);
    for (const { body, headers } of requests)
      assert.ok(new Webhook(secret).verify(body.toString(), { ...headers }));
    assert.equal(requests.map(({ body }) => body.toString()).sort(), ['{"n":1.10}', '{"n":2.10}']);
    const poisoned = await gateway.api<{ content: { code: string }[] }>('GET', '/quarantine');
    assert.equal(
      poisoned.content.map(({ code }) => code),
      ['not_json'],
    );
    const [group] = (await client.xinfo('GROUPS', stream)) as unknown[][];
    assert.is(group?.[group.indexOf('pending') + 1], 0, 'everything is acknowledged');
    await client.del(stream);
  } finally {
    await client.quit();
    await gateway.close();
    await receiver.close();
  }
});

/** An ingest message with a number that keeps its last digit only if the bytes are unchanged. */
function message(n: number): string {
  return `{"event_type":"order.paid","data":{"n":${n}.10}}`;
}

stranger.run();
