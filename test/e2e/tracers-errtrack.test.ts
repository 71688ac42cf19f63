// deadline: 240 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { VERSION } from '#core/process/version';
import { httpProxy } from '../support/http-proxy.js';
import { sentry } from '../support/sentry.js';
import { freePort } from '../support/ports.js';
import { tracerScene } from './tracer-scene.js';

const errtrack = suite('e2e/tracers-errtrack');

const ofServer = await sentry();
const scene = await tracerScene({
  tracer: { type: 'errtrack', errtrack: { dsn: ofServer.dsn } },
  settings: { env: 'canary' },
});
errtrack.after(async () => {
  await scene.close();
  await ofServer.close();
});

/** Log lines about the tracer, except debug output. */
const toldOf = (log: string) =>
  log
    .split('\n')
    .filter((line) => line.includes('"tracer":"errtrack"') && !line.includes('"debug":true'));
const at = (dsn: string) => ['--tracer-type', 'errtrack', '--errtrack-dsn', dsn];

errtrack(
  'what fails arrives as an issue of its kind with its coordinates, what happens as transactions, and nothing secret',
  async () => {
    const to = await scene.closing(sentry());
    const proxy = await scene.closing(httpProxy());
    const agent = await scene.agent({
      flags: ['--errtrack-environment', 'staging', '--proxy', proxy.url],
      tracer: {
        type: 'errtrack',
        errtrack: { dsn: 'http://key@127.0.0.1:1/1', environment: 'file', debug: true },
      },
      env: { GATEWAY_ERRTRACK_DSN: to.dsn },
    });
    await scene.work();
    const { code } = await scene.finish(agent);
    assert.is(code, 0, agent.stderr);
    assert.ok(
      proxy.asked.some((url) => url.startsWith(`POST http://${new URL(to.dsn).host}/`)),
      'spans go through the proxy',
    );

    const [refused] = to.errors.filter(({ tags }) => tags?.['span'] === 'event.creation.error');
    const [failed] = to.errors.filter(({ tags }) => tags?.['span'] === 'meta_event_delivery');
    assert.is(to.errors.length, 2);
    assert.equal(refused?.fingerprint, ['event.creation.error', 'not_json']);
    assert.is(refused?.exception?.values[0]?.type, 'not_json');
    assert.is(refused?.tags?.['gateway.source'], scene.source);
    assert.match(refused?.tags?.['gateway.coordinates'] ?? '', /./);
    assert.equal(failed?.fingerprint, ['meta_event_delivery', '500']);
    assert.is(failed?.tags?.['gateway.endpoint'], scene.failingEndpoint);
    assert.is(failed?.tags?.['gateway.event_type'], 'order.failed');
    for (const { tags, contexts } of to.errors) {
      assert.match(tags?.['gateway.project'] ?? '', /./);
      assert.is(contexts['span']?.['gateway.project'], tags?.['gateway.project']);
      assert.ok(
        to.transactions.some((it) => it.contexts.trace['trace_id'] === contexts.trace['trace_id']),
        'its trace is there',
      );
    }
    assert.is((await to.arrived('meta_event_delivery', 2)).length, 2);
    const traces = to.transactions.map(({ contexts }) => contexts.trace['trace_id']);
    assert.ok(traces.includes(scene.paid.traceId));
    assert.not.ok(traces.includes(scene.quiet.traceId));
    for (const { release, environment, tags } of [...to.errors, ...to.transactions]) {
      assert.is(release, `gateway@${VERSION}`);
      assert.is(environment, 'staging');
      assert.is(tags?.['service'], 'gateway-agent');
    }
    for (const secret of scene.planted) {
      assert.not.ok(to.text().includes(secret), secret);
      assert.not.ok(agent.stderr.includes(secret), secret);
    }

    assert.is(agent.stdout, '', 'debugging does not go to standard output');
    const lines = agent.stderr.split('\n').filter(Boolean);
    for (const line of lines) assert.type(JSON.parse(line), 'object');
    assert.ok(lines.some((line) => line.includes('"debug":true')));
    assert.not.match(agent.stderr, to.key);
    assert.equal(toldOf(agent.stderr), []);
  },
);

errtrack(
  'at a rate of a tenth some of the traces that begin here arrive, whole, with the errors in them',
  async () => {
    const to = await scene.closing(sentry());
    const some = await scene.agent({
      flags: at(to.dsn),
      env: { GATEWAY_ERRTRACK_SAMPLE_RATE: '0.1' },
    });
    await scene.read(140, 10);
    await scene.finish(some);
    const traces = [...new Set(to.transactions.map(({ contexts }) => contexts.trace['trace_id']))];
    assert.ok(traces.length > 0 && traces.length < 50, `${traces.length} of 150`);
    const attempts = await to.arrived('meta_event_delivery', traces.length);
    assert.equal(attempts.map(({ trace_id }) => trace_id).sort(), traces.sort());
    const failed = to.transactions.filter(({ contexts }) =>
      JSON.stringify(contexts).includes('order.failed'),
    );
    assert.is(to.errors.length, failed.length);
    for (const { contexts } of to.errors) assert.ok(traces.includes(contexts.trace['trace_id']));
  },
);

errtrack(
  'a server that is away, refuses and comes back is told of once each way, without the key, and deliveries go on',
  async () => {
    const port = await freePort();
    const key = 'fedcba9876543210fedcba9876543210';
    const agent = await scene.agent({ flags: at(`http://${key}@127.0.0.1:${port}/42`) });
    for (let count = 0; count < 3; count++) await scene.deliver();
    await agent.line('127.0.0.1 cannot be reached');
    const to = await scene.closing(sentry({ port }));
    to.answer(500);
    await scene.deliver();
    to.answer(200);
    await scene.deliver();
    await agent.line('Spans arrive again.');
    const { code } = await scene.finish(agent);
    assert.is(code, 0, agent.stderr);
    const told = toldOf(agent.stderr).map((line) => (JSON.parse(line) as { level: string }).level);
    assert.equal(told, ['warn', 'info'], agent.stderr);
    assert.not.match(agent.stderr, key);
  },
);

errtrack('the server sends the spans of events that it creates, and stops in time', async () => {
  const { code } = await scene.gateway.server.terminate({ withinMs: 7_000 });
  assert.is(code, 0, scene.gateway.server.stderr);
  const mine = ofServer.transactions.filter(({ tags }) => tags?.['service'] === 'gateway-server');
  assert.ok(mine.length > 0);
  for (const { transaction, environment } of mine)
    assert.equal([transaction, environment], ['dynamic.event.creation.success', 'canary']);
});

errtrack.run();
