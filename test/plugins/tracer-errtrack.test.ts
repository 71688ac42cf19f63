import {
  createTraceState,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
} from '@opentelemetry/api';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import plugin from '@gateway/tracer-errtrack';
import { sentry } from '../support/sentry.js';
import { until, within } from '../support/until.js';
import { failure } from './reading.js';
import { logged, receiving } from '../support/receiving.js';

const tracer = suite('plugins/tracer-errtrack');

const about = { serviceName: 'gateway-agent', serviceVersion: '1.2.3', environment: 'canary' };
const settings = { sample_rate: 1, environment: 'staging', debug: false };
const envelopes = /^\/api\/42\/envelope\//;

const dsnOf = ({ host }: { host: string }) => `http://publickey@${host}/42`;

/** Items of envelopes: https://develop.sentry.dev/sdk/data-model/envelopes/ */
function items(text: string): { type: string; item: Record<string, unknown> }[] {
  const found: { type: string; item: Record<string, unknown> }[] = [];
  const lines = text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  lines.forEach((line, at) => {
    const item = lines[at + 1];
    if (typeof line['type'] === 'string' && item && ['transaction', 'event'].includes(line['type']))
      found.push({ type: line['type'], item });
  });
  return found;
}

tracer(
  'a span arrives as a transaction with the environment, the release and the service',
  async () => {
    const to = await receiving(() => ({ status: 200 }));
    const started = await plugin.start({ ...settings, dsn: dsnOf(to) }, about);
    const span = trace
      .getTracer('gateway')
      .startSpan(
        'event.creation.success',
        { attributes: { 'event.id': 'evt-1' }, startTime: Date.now() - 50 },
        ROOT_CONTEXT,
      );
    assert.ok(span.isRecording());
    span.end();
    await within(started.close(), 10_000, 'the tracer to close');
    const [found, ...others] = items(to.bodies(envelopes));
    assert.is(others.length, 0);
    assert.is(found?.type, 'transaction');
    assert.is(found?.item['transaction'], 'event.creation.success');
    assert.is(found?.item['environment'], 'staging');
    assert.is(found?.item['release'], 'gateway@1.2.3');
    assert.is((found?.item['tags'] as Record<string, string>)['service'], 'gateway-agent');
    assert.match(JSON.stringify(found?.item), 'evt-1');
    assert.match(
      `${to.requests[0]?.path} ${to.requests[0]?.headers['x-sentry-auth']?.toString()}`,
      'publickey',
    );
    await to.close();
  },
);

tracer('without an environment of its own, it files under that of the gateway', async () => {
  const to = await receiving(() => ({ status: 200 }));
  const started = await plugin.start({ sample_rate: 1, debug: false, dsn: dsnOf(to) }, about);
  trace.getTracer('gateway').startSpan('any').end();
  await within(started.close(), 10_000, 'the tracer to close');
  assert.is(items(to.bodies(envelopes))[0]?.item['environment'], 'canary');
  await to.close();
});

tracer('a span is in the trace that came with the message', async () => {
  const to = await receiving(() => ({ status: 200 }));
  const started = await plugin.start({ ...settings, dsn: dsnOf(to) }, about);
  const parent = {
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: 'b7ad6b7169203331',
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  };
  const span = trace
    .getTracer('gateway')
    .startSpan('continued', {}, trace.setSpanContext(ROOT_CONTEXT, parent));
  assert.is(span.spanContext().traceId, parent.traceId);
  span.end();
  await started.close();
  const { trace: told } = items(to.bodies(envelopes))[0]?.item['contexts'] as {
    trace: Record<string, string>;
  };
  assert.is(told['trace_id'], parent.traceId);
  assert.is(told['parent_span_id'], parent.spanId);
  await to.close();
});

tracer('an exception recorded on a span arrives as an error of the same trace', async () => {
  const to = await receiving(() => ({ status: 200 }));
  const started = await plugin.start({ ...settings, dsn: dsnOf(to) }, about);
  const span = trace.getTracer('gateway').startSpan('event.creation.error');
  span.setStatus({ code: SpanStatusCode.ERROR, message: 'no such endpoint' });
  span.recordException(new TypeError('no such endpoint'));
  span.end();
  const { traceId } = span.spanContext();
  await started.close();
  const error = items(to.bodies(envelopes)).find(({ type }) => type === 'event')?.item;
  const { values } = error?.['exception'] as {
    values: { type: string; value: string; stacktrace: { frames: unknown[] } }[];
  };
  assert.is(values[0]?.type, 'TypeError');
  assert.is(values[0]?.value, 'no such endpoint');
  assert.ok((values[0]?.stacktrace.frames.length ?? 0) > 0);
  assert.is((error?.['contexts'] as { trace: { trace_id: string } }).trace.trace_id, traceId);
  assert.is((error?.['tags'] as Record<string, string>)['span'], 'event.creation.error');
  await to.close();
});

tracer('a span arrives without a close, within seconds', async () => {
  const to = await receiving(() => ({ status: 200 }));
  const started = await plugin.start({ ...settings, dsn: dsnOf(to) }, about);
  trace.getTracer('gateway').startSpan('meta_event_delivery').end();
  await until('the transaction', () => to.bodies(envelopes).includes('meta_event_delivery'));
  await started.close();
  await to.close();
});

tracer('a rate of zero sends nothing', async () => {
  const to = await receiving(() => ({ status: 200 }));
  const started = await plugin.start({ ...settings, sample_rate: 0, dsn: dsnOf(to) }, about);
  for (let at = 0; at < 20; at++) trace.getTracer('gateway').startSpan('unsampled').end();
  await started.close();
  assert.equal(items(to.bodies(envelopes)), []);
  await to.close();
});

tracer(
  'errors of one kind are one issue, whatever their sentences and ids, and their attributes can be searched for',
  async () => {
    const to = await sentry();
    const started = await plugin.start({ ...settings, dsn: to.dsn }, about);
    const failed = (event: string, type: string, attributes: object = { 'error.type': type }) => {
      const span = trace.getTracer('gateway').startSpan('meta_event_delivery', {
        attributes: { 'gateway.event': event, ...attributes },
      });
      span.recordException({ name: type, message: `failed at ${event}` });
      span.end();
    };
    failed('evt-1', 'timeout');
    failed('evt-2', 'timeout');
    failed('evt-3', 'connection');
    failed('evt-4', 'Error', {});
    await started.close();
    assert.equal(
      to.errors.map(({ fingerprint }) => fingerprint),
      [
        ['meta_event_delivery', 'timeout'],
        ['meta_event_delivery', 'timeout'],
        ['meta_event_delivery', 'connection'],
        ['meta_event_delivery', 'Error', 'failed at evt-4'],
      ],
    );
    assert.is(to.errors[0]?.tags?.['gateway.event'], 'evt-1');
    assert.is(to.errors[0]?.tags?.['error.type'], 'timeout');
    await to.close();
  },
);

tracer('an HTTP request that is the first span of its process is sent like any other', async () => {
  const to = await sentry();
  const started = await plugin.start({ ...settings, dsn: to.dsn }, about);
  const attributes = { 'http.request.method': 'POST' };
  trace
    .getTracer('gateway')
    .startSpan('meta_event_delivery', { kind: SpanKind.CLIENT, attributes }, ROOT_CONTEXT)
    .end();
  await started.close();
  assert.is(to.transactions.length, 1);
  await to.close();
});

tracer('the trace state of a sender is left as it is', async () => {
  const to = await sentry();
  const started = await plugin.start({ ...settings, dsn: to.dsn }, about);
  for (const traceFlags of [TraceFlags.SAMPLED, TraceFlags.NONE]) {
    const traceState = createTraceState('shop=7');
    const parent = {
      traceId: '0af7651916cd43dd8448eb211c80319c',
      spanId: 'b7ad6b7169203331',
      traceFlags,
      traceState,
      isRemote: true,
    };
    const span = trace
      .getTracer('gateway')
      .startSpan('any', {}, trace.setSpanContext(ROOT_CONTEXT, parent));
    assert.is(span.spanContext().traceState?.serialize(), 'shop=7');
    span.end();
  }
  await started.close();
  await to.close();
});

tracer('debugging goes to the log, without the key, and ends with the tracer', async () => {
  const to = await sentry();
  const { lines, log } = logged();
  const printed: unknown[] = [];
  const { log: print } = console;
  console.log = (...words) => void printed.push(...words);
  try {
    const started = await plugin.start(
      { ...settings, debug: true, dsn: to.dsn },
      { ...about, log },
    );
    trace.getTracer('gateway').startSpan('any').end();
    await started.close();
    const count = lines.length;
    assert.ok(count > 0);
    await (await plugin.start({ ...settings, dsn: to.dsn }, { ...about, log })).close();
    assert.is(lines.length, count);
  } finally {
    console.log = print;
  }
  assert.equal(printed, []);
  assert.not.match(lines.join('\n'), to.key);
  await to.close();
});

tracer(
  'a server that refuses, or is away, is told of in the log once, and close ends',
  async () => {
    const to = await receiving(() => ({ status: 403 }));
    for (const [dsn, sentence] of [
      [dsnOf(to), /127\.0\.0\.1 refuses spans and errors/],
      ['http://publickey@127.0.0.1:1/42', /127\.0\.0\.1 cannot be reached/],
    ] as const) {
      const { sentences, lines, log } = logged();
      const started = await plugin.start({ ...settings, dsn }, { ...about, log });
      for (let at = 0; at < 3; at++) trace.getTracer('gateway').startSpan('any').end();
      await within(started.close(), 10_000, 'the tracer to close');
      assert.is(lines.length, 1);
      assert.match(sentences[0] ?? '', sentence);
      assert.not.match(lines[0] ?? '', 'publickey');
    }
    await to.close();
  },
);

tracer('close gives the provider back', async () => {
  const to = await receiving(() => ({ status: 200 }));
  const started = await plugin.start({ ...settings, dsn: dsnOf(to) }, about);
  await started.close();
  assert.not.ok(trace.getTracer('test').startSpan('any').isRecording());
  await to.close();
});

tracer('start refuses what is not a DSN, without repeating it', async () => {
  const { error: print } = console;
  const printed: unknown[] = [];
  console.error = (...words) => void printed.push(...words);
  for (const dsn of [
    'not-a-dsn-secretkey',
    'https://host/42',
    'ftp://secretkey@host/42',
    'https://secretkey@host',
    'https://secretkey@host/project',
    'https://secretkey@[host/42',
    'https://secretkey@host:port/42',
  ]) {
    const started = Promise.resolve().then(() => plugin.start({ ...settings, dsn }, about));
    const { message, fix } = await failure(started, dsn);
    assert.match(message, /tracer\.errtrack\.dsn is not a DSN/);
    assert.not.match(`${message}${fix}`, 'secretkey');
    assert.not.ok(
      trace.getTracer('test').startSpan('any').isRecording(),
      'and leaves no provider behind',
    );
  }
  console.error = print;
  assert.equal(printed, []);
});

tracer.run();
