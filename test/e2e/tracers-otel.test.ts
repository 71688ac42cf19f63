// deadline: 240 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { VERSION } from '#core/process/version';
import { authority } from '../support/authority.js';
import { collector } from '../support/otlp.js';
import { freePort } from '../support/ports.js';
import { tracerScene } from './tracer-scene.js';

const otel = suite('e2e/tracers-otel');

const KEY = 'planted-collector-key';

const ofServer = await collector();
const scene = await tracerScene({
  tracer: { type: 'otel', otel: { collector_url: `http://${ofServer.address}` } },
  settings: { env: 'canary' },
});
const ca = authority();
const certificate = ca.issue('localhost', ['DNS:localhost']);
otel.after(async () => {
  await scene.close();
  ofServer.close();
  ca.close();
});

const toldOf = (log: string) => log.split('\n').filter((line) => line.includes('"tracer":"otel"'));

otel(
  'over TLS, by an authority of its own: spans of all that happens to messages, who sent them, the header, and nothing that is secret',
  async () => {
    const to = await scene.closing(collector({ tls: certificate }));
    const file = {
      type: 'otel',
      otel: { collector_url: to.address, otel_auth: { header_name: 'x-collector-key' } },
    };
    const env = { GATEWAY_OTEL_AUTH_HEADER_VALUE: KEY };
    const agent = await scene.agent({ tracer: file, env, flags: ['--otel-ca-file', ca.file] });
    await scene.work();
    const { code } = await scene.finish(agent);
    assert.is(code, 0, agent.stderr);
    const found = (name: string) => to.spans.filter((span) => span.name === name);
    assert.is(found('ingest.message').length, 3);
    assert.is(found('event.creation.error').length, 1);
    assert.equal(
      found('meta_event_delivery')
        .map(({ status }) => status.code)
        .sort(),
      ['error', 'unset'],
    );
    assert.ok(
      to.spans.some(
        ({ traceId, parentSpanId }) =>
          traceId === scene.paid.traceId && parentSpanId === scene.paid.spanId,
      ),
    );
    assert.not.ok(to.spans.some(({ traceId }) => traceId === scene.quiet.traceId));
    for (const { resource } of to.spans) {
      assert.is(resource['service.name'], 'gateway-agent');
      assert.is(resource['service.version'], VERSION);
      assert.is(resource['deployment.environment.name'], 'canary');
      assert.is(resource['deployment.environment'], 'canary');
    }
    for (const { metadata } of to.requests) assert.equal(metadata.get('x-collector-key'), [KEY]);
    for (const secret of scene.planted) assert.not.ok(to.text().includes(secret), secret);
    assert.equal(toldOf(agent.stderr), []);
    assert.not.match(agent.stdout + agent.stderr, KEY);
  },
);

otel(
  'a collector that is away at the start, comes, goes, comes back and hangs is told of once each way, and holds nothing up',
  async () => {
    const port = await freePort();
    const flags = [
      '--tracer-type',
      'otel',
      '--otel-collector-url',
      `https://localhost:${port}`,
      '--otel-insecure-skip-verify',
    ];
    const agent = await scene.agent({ flags });
    for (let count = 0; count < 3; count++) await scene.deliver();
    await agent.line('Spans do not arrive and are lost');
    await scene.deliver();
    const first = await scene.closing(collector({ port, tls: certificate }));
    await first.arrived('meta_event_delivery');
    await agent.line('Spans arrive again.');
    first.close();
    await scene.deliver();
    const second = await scene.closing(collector({ port, tls: certificate }));
    await scene.deliver();
    await second.arrived('meta_event_delivery');
    second.answer('hang');
    await scene.deliver();
    const { code, seconds } = await scene.finish(agent);
    assert.is(code, 0, agent.stderr);
    assert.ok(seconds < 12, `${seconds} s`);
    const told = toldOf(agent.stderr).map((line) => (JSON.parse(line) as { level: string }).level);
    assert.equal(told, ['warn', 'info'], agent.stderr);
    assert.match(agent.stderr, /ECONNREFUSED/);
  },
);

otel('the server sends the spans of events that it creates, and stops in time', async () => {
  const { code } = await scene.gateway.server.terminate({ withinMs: 7_000 });
  assert.is(code, 0, scene.gateway.server.stderr);
  const mine = ofServer.spans.filter(
    ({ resource }) => resource['service.name'] === 'gateway-server',
  );
  assert.is(mine.length, 7);
  for (const { name } of mine) assert.is(name, 'dynamic.event.creation.success');
});

otel.run();
