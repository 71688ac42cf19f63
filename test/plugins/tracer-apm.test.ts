import { context, ROOT_CONTEXT, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import plugin from '@gateway/tracer-apm';
import { within } from '../support/until.js';
import { failure } from './reading.js';
import { logged, receiving } from '../support/receiving.js';

const tracer = suite('plugins/tracer-apm');

const about = { serviceName: 'gateway-agent', serviceVersion: '1.2.3', environment: 'canary' };
const intake = /^\/intake\/v2\/events/;

const server = (status = 202) =>
  receiving((path) => (path === '/' ? { status: 200, body: '{"version":"8.12.0"}' } : { status }));

/** Intake lines: https://www.elastic.co/guide/en/observability/current/apm-api-events.html */
function events(text: string): Record<string, Record<string, unknown>>[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, Record<string, unknown>>);
}

tracer('start refuses what is not a URL, and names the setting', async () => {
  for (const agent_url of ['apm:8200', 'http://', 'ftp://apm:8200']) {
    const started = Promise.resolve().then(() => plugin.start({ agent_url }, about));
    const { message, fix } = await failure(started, agent_url);
    assert.match(message, /tracer\.apm\.agent_url/);
    assert.match(fix, /GATEWAY_APM_AGENT_URL/);
  }
});

tracer(
  'a span and its child arrive as a transaction and a span of the service, with the error recorded on it',
  async () => {
    const to = await server();
    const started = await plugin.start({ agent_url: to.url, secret_token: 'hidden-token' }, about);
    await trace
      .getTracer('gateway')
      .startActiveSpan(
        'event.creation.error',
        { attributes: { 'event.id': 'evt-1' } },
        async (span) => {
          await Promise.resolve();
          trace.getTracer('gateway').startSpan('child', {}, context.active()).end();
          span.setStatus({ code: SpanStatusCode.ERROR });
          span.recordException(new TypeError('no such endpoint'));
          span.end();
        },
      );
    await within(started.close(), 10_000, 'the tracer to close');
    const found = events(to.bodies(intake));
    const service = found.find((event) => event['metadata'])?.['metadata']?.['service'] as Record<
      string,
      unknown
    >;
    assert.is(service['name'], 'gateway-agent');
    assert.is(service['version'], '1.2.3');
    assert.is(service['environment'], 'canary');
    const transaction = found.find((event) => event['transaction'])?.['transaction'];
    assert.is(transaction?.['name'], 'event.creation.error');
    assert.is(transaction?.['outcome'], 'failure');
    assert.match(JSON.stringify(transaction), 'evt-1');
    const child = found.find((event) => event['span'])?.['span'];
    assert.is(child?.['name'], 'child');
    assert.is(child?.['trace_id'], transaction?.['trace_id']);
    const error = found.find((event) => event['error'])?.['error']?.['exception'] as Record<
      string,
      unknown
    >;
    assert.is(error['message'], 'no such endpoint');
    assert.is(
      to.requests.find(({ path }) => intake.test(path))?.headers['authorization'],
      'Bearer hidden-token',
    );
    await to.close();
  },
);

tracer('a span is in the trace that came with the message', async () => {
  const to = await server();
  const started = await plugin.start({ agent_url: to.url }, about);
  const parent = {
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: 'b7ad6b7169203331',
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  };
  const startedAt = Date.now() - 5_000;
  const span = trace
    .getTracer('gateway')
    .startSpan(
      'meta_event_delivery',
      { startTime: startedAt },
      trace.setSpanContext(ROOT_CONTEXT, parent),
    );
  assert.ok(span.isRecording());
  span.end(startedAt + 40);
  await started.close();
  const transaction = events(to.bodies(intake)).find((event) => event['transaction'])?.[
    'transaction'
  ];
  assert.is(transaction?.['trace_id'], parent.traceId);
  assert.is(transaction?.['parent_id'], parent.spanId);
  assert.ok(Math.abs(Number(transaction?.['duration']) - 40) < 2);
  await to.close();
});

tracer(
  'nothing is asked of anyone but the server, and nothing else of the process is reported',
  async () => {
    const to = await server();
    const other = await receiving(() => ({ status: 200 }));
    const started = await plugin.start({ agent_url: to.url }, about);
    await fetch(other.url);
    trace.getTracer('gateway').startSpan('any').end();
    await started.close();
    const found = events(to.bodies(intake)).filter((event) => !event['metadata']);
    assert.equal(
      found.map((event) => Object.keys(event)[0]),
      ['transaction'],
    );
    assert.is(other.requests[0]?.headers['traceparent'], undefined);
    assert.is(other.requests[0]?.headers['elastic-apm-traceparent'], undefined);
    await other.close();
    await to.close();
  },
);

tracer('how the process was started stays here: flags may be secrets', async () => {
  const to = await server();
  process.argv.push('--db-password=planted-secret');
  try {
    const started = await plugin.start({ agent_url: to.url }, about);
    trace.getTracer('gateway').startSpan('any').end();
    await started.close();
  } finally {
    process.argv.pop();
  }
  assert.match(to.bodies(intake), '"transaction"');
  assert.not.match(to.bodies(intake), 'planted-secret');
  await to.close();
});

tracer('a burst of thousands of spans arrives whole', async () => {
  const to = await server();
  const { lines, log } = logged();
  const started = await plugin.start({ agent_url: to.url }, { ...about, log });
  for (let at = 0; at < 5_000; at++)
    trace.getTracer('gateway').startSpan('burst', {}, ROOT_CONTEXT).end();
  await within(started.close(), 10_000, 'the tracer to close');
  assert.is(events(to.bodies(intake)).filter((event) => event['transaction']).length, 5_000);
  assert.equal(lines, []);
  await to.close();
});

tracer('a server that is away is told of in the log, and close ends', async () => {
  const { sentences, lines, log } = logged();
  const started = await plugin.start(
    { agent_url: 'http://127.0.0.1:1', secret_token: 'hidden-token' },
    { ...about, log },
  );
  trace.getTracer('gateway').startSpan('any').end();
  await within(started.close(), 10_000, 'the tracer to close');
  assert.match(sentences.join('\n'), /ECONNREFUSED|127\.0\.0\.1/);
  assert.not.match(lines.join('\n'), 'hidden-token');
});

tracer('close gives the provider back', async () => {
  const to = await server();
  const started = await plugin.start({ agent_url: to.url }, about);
  await started.close();
  assert.not.ok(trace.getTracer('test').startSpan('any').isRecording());
  await to.close();
});

tracer.run();
