// deadline: 240 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { VERSION } from '@gateway/core';
import { authority } from '../support/authority.js';
import { collector } from '../support/otlp.js';
import { freePort } from '../support/ports.js';
import { tracerScene } from './tracer-scene.js';

const otel = suite('e2e/tracers-otel');

const KEY = 'planted-collector-key';
const CREATED = 'dynamic.event.creation.success';

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

/** The lines of the log about the tracer. */
const toldOf = (log: string) => log.split('\n').filter((line) => line.includes('"tracer":"otel"'));
const at = (address: string) => ['--tracer-type', 'otel', '--otel-collector-url', address];

otel('spans of all that happens to messages arrive, with who sent them, the header, and nothing that is secret', async () => {
  const to = await collector();
  const file = { type: 'otel', otel: { collector_url: `http://${to.address}`, otel_auth: { header_name: 'x-collector-key' } } };
  const agent = await scene.agent({ tracer: file, env: { GATEWAY_OTEL_AUTH_HEADER_VALUE: KEY } });
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
  assert.ok(to.spans.some(({ traceId, parentSpanId }) => traceId === scene.paid.traceId && parentSpanId === scene.paid.spanId));
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
  to.close();
});

otel('a collector that speaks TLS is believed when its authority is named or nothing is to be verified, and else not', async () => {
  const to = await collector({ tls: certificate });
  const ways = [
    { flags: [...at(to.address), '--otel-ca-file', ca.file], arrives: true },
    { flags: [...at(`https://${to.address}`), '--otel-insecure-skip-verify'], arrives: true },
    { flags: at(to.address), arrives: false },
  ];
  for (const { flags, arrives } of ways) {
    const before = to.spans.length;
    const agent = await scene.agent({ flags });
    await scene.deliver();
    const { code } = await scene.finish(agent);
    assert.is(code, 0, agent.stderr);
    assert.is(to.spans.length > before, arrives, flags.join(' '));
    assert.is(toldOf(agent.stderr).length, arrives ? 0 : 1, agent.stderr);
    if (!arrives) assert.match(agent.stderr, /certificate/);
  }
  to.close();
});

otel('a collector that is away at the start, comes, goes and comes back is told of once each way, and deliveries go on', async () => {
  const port = await freePort();
  const agent = await scene.agent({ flags: at(`http://127.0.0.1:${port}`) });
  for (let count = 0; count < 3; count++) await scene.deliver();
  await agent.line('Spans do not arrive and are lost');
  await scene.deliver();
  const first = await collector({ port });
  await first.arrived('meta_event_delivery');
  await agent.line('Spans arrive again.');
  first.close();
  await scene.deliver();
  const second = await collector({ port });
  await scene.deliver();
  await second.arrived('meta_event_delivery');
  const { code } = await scene.finish(agent);
  assert.is(code, 0, agent.stderr);
  const told = toldOf(agent.stderr).map((line) => (JSON.parse(line) as { level: string }).level);
  assert.equal(told, ['warn', 'info'], agent.stderr);
  assert.match(agent.stderr, /ECONNREFUSED/);
  second.close();
});

otel('what ended before SIGTERM arrives, and a collector that hangs holds nothing up', async () => {
  const to = await collector();
  const agent = await scene.agent({ flags: at(`http://${to.address}`) });
  for (let count = 0; count < 5; count++) await scene.deliver();
  await scene.finish(agent);
  assert.is(to.spans.filter(({ name }) => name === 'meta_event_delivery').length, 5);

  to.answer('hang');
  const another = await scene.agent({ flags: at(`http://${to.address}`) });
  for (let count = 0; count < 5; count++) await scene.deliver();
  const { code, seconds } = await scene.finish(another);
  assert.is(code, 0, another.stderr);
  assert.ok(seconds < 12, `${seconds} s`);
  assert.is(toldOf(another.stderr).length, 1, another.stderr);
  to.close();
});

otel('the server sends the spans of events that it creates, and stops in time', async () => {
  const before = ofServer.spans.length;
  const agent = await scene.agent();
  await scene.deliver();
  await scene.finish(agent);
  const { code } = await scene.gateway.server.terminate({ withinMs: 7_000 });
  assert.is(code, 0, scene.gateway.server.stderr);
  const mine = ofServer.spans.slice(before).filter(({ resource }) => resource['service.name'] === 'gateway-server');
  assert.equal(
    mine.map(({ name }) => name),
    [CREATED],
  );
});

otel.run();
