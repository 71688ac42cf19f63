import {
  context,
  createContextKey,
  propagation,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
} from '@opentelemetry/api';
import fs from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import net from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PluginError } from '@gateway/plugin';
import plugin from '@gateway/tracer-otel';
import { activeContext } from '#tracer-otel/index';
import { collector } from '../support/otlp.js';
import { loopback } from '../support/ports.js';
import { certificates } from '../support/start/certificates.js';
import { tempFolder } from '../support/start/keep.js';
import { until, within } from '../support/until.js';
import { logged } from '../support/receiving.js';

const tracer = suite('plugins/tracer-otel');

const about = { serviceName: 'gateway-agent', serviceVersion: '1.2.3', environment: 'canary' };
const settings = { sample_rate: 1, insecure_skip_verify: false };

function emit(name: string, parent = ROOT_CONTEXT): void {
  const span = trace
    .getTracer('test')
    .startSpan(name, { attributes: { 'event.id': 'evt-1' } }, parent);
  span.setStatus({ code: SpanStatusCode.OK });
  span.end();
}

const remote = (traceFlags: TraceFlags) =>
  trace.setSpanContext(ROOT_CONTEXT, {
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: 'b7ad6b7169203331',
    traceFlags,
    isRemote: true,
  });

tracer(
  'a span and its child arrive at the collector, with name, version and environment of the service',
  async () => {
    const to = await collector();
    const started = await plugin.start(
      { ...settings, collector_url: `http://${to.address}` },
      about,
    );
    await trace.getTracer('test').startActiveSpan('event.creation.success', async (span) => {
      await Promise.resolve();
      emit('child', context.active());
      span.end();
    });
    await within(started.close(), 10_000, 'the tracer to close');
    const environment = ['deployment.environment.name', 'canary'];
    for (const text of [
      'event.creation.success',
      'child',
      'evt-1',
      'service.name',
      'gateway-agent',
      '1.2.3',
      ...environment,
    ])
      assert.ok(to.text().includes(text), text);
    to.close();
  },
);

tracer(
  'an environment that OTEL_RESOURCE_ATTRIBUTES names goes before that of the gateway',
  async () => {
    const to = await collector();
    process.env['OTEL_RESOURCE_ATTRIBUTES'] = 'deployment.environment.name=blue';
    try {
      const started = await plugin.start(
        { ...settings, collector_url: `http://${to.address}` },
        about,
      );
      emit('any');
      await within(started.close(), 10_000, 'the tracer to close');
    } finally {
      delete process.env['OTEL_RESOURCE_ATTRIBUTES'];
    }
    assert.match(to.text(), 'blue');
    assert.not.match(to.text(), 'canary');
    to.close();
  },
);

tracer('a span arrives without a close, within seconds', async () => {
  const to = await collector();
  const started = await plugin.start(
    { ...settings, collector_url: to.address, insecure_skip_verify: true },
    about,
  );
  emit('meta_event_delivery');
  await until('the span', () => to.text().includes('meta_event_delivery'));
  await started.close();
  to.close();
});

tracer('a span is the child of the trace context that came with the message', async () => {
  const to = await collector();
  const started = await plugin.start({ ...settings, collector_url: `http://${to.address}` }, about);
  emit('continued', remote(TraceFlags.SAMPLED));
  const carrier: Record<string, string> = {};
  propagation.inject(remote(TraceFlags.SAMPLED), carrier);
  await started.close();
  assert.ok(to.requests[0]?.body.includes(Buffer.from('0af7651916cd43dd8448eb211c80319c', 'hex')));
  assert.ok(to.requests[0]?.body.includes(Buffer.from('b7ad6b7169203331', 'hex')));
  assert.is(carrier['traceparent'], '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
  to.close();
});

tracer('the rate decides about new traces, and the sender about its own', async () => {
  const to = await collector();
  const started = await plugin.start(
    { ...settings, sample_rate: 0, collector_url: `http://${to.address}` },
    about,
  );
  for (let at = 0; at < 100; at++) emit('unsampled');
  emit('wanted by its sender', remote(TraceFlags.SAMPLED));
  await started.close();
  assert.not.ok(to.text().includes('unsampled'));
  assert.ok(to.text().includes('wanted by its sender'));

  const all = await plugin.start({ ...settings, collector_url: `http://${to.address}` }, about);
  emit('unwanted by its sender', remote(TraceFlags.NONE));
  emit('new');
  await all.close();
  assert.not.ok(to.text().includes('unwanted by its sender'));
  assert.ok(to.text().includes('new'));
  to.close();
});

tracer('the auth header goes with every request', async () => {
  const to = await collector();
  const started = await plugin.start(
    {
      ...settings,
      collector_url: `http://${to.address}`,
      otel_auth: { header_name: 'X-Api-Key', header_value: 'hidden-value' },
    },
    about,
  );
  emit('any');
  await started.close();
  assert.equal(to.requests[0]?.metadata.get('x-api-key'), ['hidden-value']);
  to.close();
});

tracer('TLS is verified, unless it is not to be', async () => {
  const files = certificates(tempFolder('tracer-otel'));
  const to = await collector({ tls: files });
  const { lines, log } = logged();
  for (const collector_url of [to.address, `https://${to.address}`]) {
    const strict = await plugin.start({ ...settings, collector_url }, { ...about, log });
    emit('any');
    await within(strict.close(), 10_000, 'the tracer to close');
  }
  assert.is(to.requests.length, 0);
  assert.match(lines.join('\n'), /are lost.*certificate/);

  const lax = await plugin.start(
    { ...settings, collector_url: `https://${to.address}`, insecure_skip_verify: true },
    about,
  );
  emit('any');
  await lax.close();
  assert.is(to.requests.length, 1);
  to.close();
});

tracer(
  'a burst beyond what is kept is dropped, which is told of, and what is kept arrives',
  async () => {
    const to = await collector();
    const { lines, log } = logged();
    const started = await plugin.start(
      { ...settings, collector_url: `http://${to.address}` },
      { ...about, log },
    );
    for (let at = 0; at < 20_000; at++) emit('burst');
    await until('room in the queue', () => to.spans.length > 2_048);
    emit('after');
    await within(started.close(), 10_000, 'the tracer to close');
    assert.ok(to.spans.length >= 16_384 && to.spans.length < 20_000, `${to.spans.length}`);
    assert.match(lines.join('\n'), /"lost":\d+\} More spans end than the back end takes/);
    to.close();
  },
);

tracer('a collector that refuses is told of in the log, without the header', async () => {
  const to = await collector({ answer: 'refuse' });
  const { lines, log } = logged();
  const started = await plugin.start(
    {
      ...settings,
      collector_url: `http://${to.address}`,
      otel_auth: { header_name: 'x-api-key', header_value: 'hidden-value' },
    },
    { ...about, log },
  );
  emit('any');
  await started.close();
  assert.match(lines.join('\n'), /who are you/);
  assert.not.match(lines.join('\n'), 'hidden-value');
  to.close();
});

tracer(
  'what an address leads to instead of a collector is named, with what to change',
  async () => {
    const files = certificates(tempFolder('tracer-otel-mistakes'));
    const answer = (_: unknown, response: { writeHead(code: number): { end(): void } }) =>
      void response.writeHead(404).end();
    const key = { key: fs.readFileSync(files.key), cert: fs.readFileSync(files.certificate) };
    const servers = [
      http.createServer(answer),
      https.createServer(key, answer),
      http2.createServer(answer),
      net.createServer((it) => it.destroy()),
    ];
    const sockets = new Set<net.Socket>();
    for (const it of servers) it.on('connection', (socket: net.Socket) => sockets.add(socket));
    const [http1, http1Tls, http2Plain, closing] = (await Promise.all(
      servers.map((it) => loopback(it)),
    )) as [number, number, number, number];
    const [plain, tls, refusing] = await Promise.all([
      collector(),
      collector({ tls: files }),
      collector({ answer: 'refuse' }),
    ]);
    const lax = { insecure_skip_verify: true };
    const told: [
      what: string,
      given: { collector_url: string; insecure_skip_verify?: boolean },
      sentence: RegExp,
    ][] = [
      [
        'an HTTP port',
        { collector_url: `http://127.0.0.1:${http1}` },
        /does not speak gRPC.*4318.*4317/,
      ],
      [
        'an HTTPS port',
        { collector_url: `https://localhost:${http1Tls}`, ...lax },
        /does not speak gRPC.*4318.*4317/,
      ],
      [
        'another server of HTTP/2',
        { collector_url: `http://127.0.0.1:${http2Plain}` },
        /does not speak gRPC.*4317.*404/,
      ],
      ['TLS to plaintext', { collector_url: plain.address }, /does not speak TLS.*http:\/\//],
      [
        'plaintext to TLS',
        { collector_url: `http://${tls.address}` },
        /may require TLS.*https:\/\//,
      ],
      [
        'a server that closes',
        { collector_url: `http://127.0.0.1:${closing}` },
        /closes connections.*4317/,
      ],
      [
        'another authority',
        { collector_url: tls.address },
        /no known authority.*tracer\.otel\.ca_file.*certificate/,
      ],
      [
        'a wrong header',
        { collector_url: `http://${refusing.address}` },
        /rejects the credentials.*otel_auth/,
      ],
      ['no server', { collector_url: 'http://127.0.0.1:1' }, /Nothing listens/],
      [
        'no host',
        { collector_url: 'http://collector.invalid:4317' },
        /name of the host is not known/,
      ],
    ];
    for (const [what, given, sentence] of told) {
      const { lines, log } = logged();
      const started = await plugin.start({ ...settings, ...given }, { ...about, log });
      emit('any');
      await within(started.close(), 10_000, 'the tracer to close');
      assert.match(lines.join('\n'), sentence, what);
      assert.ok(lines.join('\n').includes(given.collector_url), what);
    }
    for (const it of [plain, tls, refusing, ...servers]) it.close();
    for (const socket of sockets) socket.destroy();
  },
);

tracer('a collector that is away neither stops the start nor the close', async () => {
  const started = await within(
    plugin.start({ ...settings, collector_url: 'http://127.0.0.1:1' }, about),
    5_000,
    'the tracer to start',
  );
  emit('any');
  await within(started.close(), 10_000, 'the tracer to close');
});

tracer('close gives the provider back', async () => {
  const to = await collector();
  const started = await plugin.start({ ...settings, collector_url: `http://${to.address}` }, about);
  assert.ok(trace.getTracer('test').startSpan('any').isRecording());
  await started.close();
  assert.not.ok(trace.getTracer('test').startSpan('any').isRecording());
  to.close();
});

const mistakes: Record<string, { given: object; message: RegExp }> = {
  'no port': { given: { collector_url: 'collector' }, message: /collector_url is "collector"/ },
  'a path': {
    given: { collector_url: 'http://collector:4318/v1/traces' },
    message: /collector_url/,
  },
  'a header without a value': {
    given: { otel_auth: { header_name: 'x' } },
    message: /header_name is set, but tracer\.otel\.otel_auth\.header_value is not/,
  },
  'a value without a header': {
    given: { otel_auth: { header_value: 'hidden-value' } },
    message: /header_value is set, but/,
  },
  'a header that is none': {
    given: { otel_auth: { header_name: 'a b', header_value: 'hidden-value' } },
    message: /otel_auth is not a header/,
  },
  'a value with a line break': {
    given: { otel_auth: { header_name: 'a', header_value: 'hidden-value\n' } },
    message: /otel_auth is not a header/,
  },
};

for (const [name, { given, message }] of Object.entries(mistakes)) {
  tracer(`start refuses ${name}, and names the setting`, async () => {
    try {
      await (
        await Promise.resolve().then(() =>
          plugin.start({ ...settings, collector_url: 'collector:4317', ...given }, about),
        )
      ).close();
    } catch (error) {
      assert.instance(error, PluginError);
      const { message: text, fix } = error as PluginError;
      assert.match(text, message);
      assert.match(fix, /tracer\.otel|GATEWAY_OTEL|both or neither/);
      assert.not.match(`${text} ${fix}`, 'hidden-value');
      return;
    }
    assert.unreachable('it started');
  });
}

tracer(
  'a context without a span, as exports use, does not enter the storage that would slow the process',
  () => {
    const contexts = activeContext();
    const key = createContextKey('suppressed');
    const seen = (given: Context) => contexts.with(given, () => contexts.active());
    assert.is(seen(ROOT_CONTEXT.setValue(key, true)), ROOT_CONTEXT);
    const withSpan = trace.setSpanContext(ROOT_CONTEXT, {
      traceId: '1'.repeat(32),
      spanId: '2'.repeat(16),
      traceFlags: TraceFlags.SAMPLED,
    });
    assert.is(seen(withSpan), withSpan);
    const within = contexts.with(withSpan, () =>
      seen(ROOT_CONTEXT.setValue(key, true)).getValue(key),
    );
    assert.is(within, true);
  },
);

tracer.run();
