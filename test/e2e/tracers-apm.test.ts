// deadline: 240 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { VERSION } from '#core/process/version';
import { apmServer } from '../support/apm-server.js';
import { httpProxy } from '../support/http-proxy.js';
import { licensing } from '../support/licensing.js';
import { freePort } from '../support/ports.js';
import { tracerScene } from './tracer-scene.js';

const apm = suite('e2e/tracers-apm');

const TOKEN = 'planted-token';

const issuer = licensing();
const licence = { license_key: issuer.licence(), license_public_key: issuer.publicKey };
const ofServer = await apmServer();
const scene = await tracerScene({
  tracer: { type: 'apm', apm: { agent_url: ofServer.url } },
  settings: { env: 'canary', ...licence },
});
apm.after(async () => {
  await scene.close();
  await ofServer.close();
});

const toldOf = (log: string) => log.split('\n').filter((line) => line.includes('"tracer":"apm"'));

apm(
  'transactions and errors arrive in the traces of their producers, and nothing secret, the command line least of all',
  async () => {
    const to = await scene.closing(apmServer());
    const proxy = await scene.closing(httpProxy());
    const agent = await scene.agent({
      tracer: { type: 'apm', apm: { agent_url: 'http://127.0.0.1:1' } },
      env: { GATEWAY_APM_AGENT_URL: to.url },
      flags: ['--apm-secret-token', TOKEN, '--proxy', proxy.url],
    });
    await scene.work();
    const { code } = await scene.finish(agent);
    assert.is(code, 0, agent.stderr);

    assert.ok(
      proxy.asked.includes(`POST ${to.url}/intake/v2/events`),
      'spans go through the proxy',
    );
    for (const url of [scene.queues, scene.endpoint])
      assert.ok(
        proxy.asked.some((it) => it.startsWith(`POST ${url}/`)),
        `so do requests to ${url}`,
      );
    assert.ok(to.authorizations.length > 0);
    for (const authorization of to.authorizations) assert.is(authorization, `Bearer ${TOKEN}`);
    assert.is((await to.arrived('ingest.message', 3)).length, 3);
    const attempts = await to.arrived('meta_event_delivery', 2);
    assert.ok(
      attempts.some(
        ({ outcome, otel }) =>
          outcome === 'failure' && otel?.attributes?.['gateway.endpoint'] === scene.failingEndpoint,
      ),
    );
    const [refused] = await to.arrived('event.creation.error');
    assert.is(refused?.outcome, 'failure');
    assert.is(refused?.otel?.attributes?.['gateway.source'], scene.source);
    assert.ok(
      to.errors.some(({ trace_id }) => trace_id === refused?.trace_id),
      'an error in the trace of the refused message',
    );
    assert.is(to.errors.length, 2);
    const all = [...to.transactions, ...to.spans];
    assert.ok(
      all.some(
        ({ trace_id, parent_id }) =>
          trace_id === scene.paid.traceId && parent_id === scene.paid.spanId,
      ),
    );
    const unsampled = all.filter(
      ({ trace_id, sampled }) => trace_id === scene.quiet.traceId && sampled !== false,
    );
    assert.equal(unsampled, []);
    for (const { service, process } of to.metadata) {
      assert.equal(
        [service['name'], service['version'], service['environment']],
        ['gateway-agent', VERSION, 'canary'],
      );
      assert.equal(Object.keys(process ?? {}).sort(), ['pid', 'ppid']);
    }
    for (const secret of [...scene.planted, licence.license_key])
      assert.not.ok(to.text().includes(secret), secret);
    const bodies = to.text().replaceAll(`Bearer ${TOKEN}`, '');
    assert.not.match(bodies, TOKEN);
    assert.equal(toldOf(agent.stderr), []);
  },
);

apm(
  'a server that is away at the start and comes is told of once each way, and deliveries go on',
  async () => {
    const port = await freePort();
    const agent = await scene.agent({
      flags: ['--tracer-type', 'apm', '--apm-agent-url', `http://127.0.0.1:${port}`],
      // A request is answered when it ends, by default after ten seconds.
      env: { ELASTIC_APM_API_REQUEST_TIME: '1s' },
    });
    for (let count = 0; count < 3; count++) await scene.deliver();
    await agent.line('Spans do not arrive and are lost');
    await scene.closing(apmServer({ port }));
    await scene.deliver();
    await agent.line('Spans arrive again.');
    const { code, seconds } = await scene.finish(agent);
    assert.is(code, 0, agent.stderr);
    assert.ok(seconds < 12, `${seconds} s`);
    const told = toldOf(agent.stderr).map((line) => (JSON.parse(line) as { level: string }).level);
    assert.equal(told, ['warn', 'info'], agent.stderr);
  },
);

apm('the server sends the spans of events that it creates, and stops in time', async () => {
  await scene.gateway.server.terminate({ withinMs: 7_000 });
  const mine = ofServer.metadata.filter(({ service }) => service['name'] === 'gateway-server');
  assert.ok(mine.length > 0);
  assert.ok(ofServer.transactions.some(({ name }) => name === 'dynamic.event.creation.success'));
});

apm.run();
