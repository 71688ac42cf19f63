import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { GatewayError } from '#core/errors/errors';
import { newId } from '#core/events/ids';
import { traceCreation } from '#server/routes/events/trace-creation';
import otel from '@gateway/tracer-otel';
import { flushed, producer, type Producer } from '../../../e2e/traced.js';
import { collector } from '../../../support/otlp.js';

const creation = suite('server/routes/events/trace-creation');

const to = await collector();
const started = await otel.start(
  { collector_url: `http://${to.address}`, sample_rate: 1, insecure_skip_verify: false },
  { serviceName: 'gateway-server', serviceVersion: '1.2.3', environment: 'test' },
);
const tracer = { name: 'otel', close: () => started.close() };
creation.after(async () => {
  await tracer.close();
  to.close();
});

/**
 * Creates an event in a request of this producer. Returns the event's headers, the error, and the
 * spans of the producer's trace.
 */
async function create(
  from: Producer,
  make: () => { id: string; duplicate: boolean },
  plugins: { tracer?: typeof tracer } = { tracer },
) {
  const headers: Record<string, string> = { traceparent: 'another', 'x-own': 'of the event' };
  const requestHeaders = { traceparent: from.traceparent, tracestate: 'shop=7' };
  const asked = {
    projectId: newId(),
    eventType: 'order.paid',
    dynamic: true,
    requestHeaders,
    headers,
  };
  const error = await traceCreation(plugins, asked, async () => Promise.resolve(make())).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return {
    headers,
    error,
    spans: (await flushed(to)).filter(({ traceId }) => traceId === from.traceId),
  };
}

const made = () => ({ id: newId(), duplicate: false });
const fails = (error: Error) => () => {
  throw error;
};

creation(
  'an event carries the span of its creation on, which stands under the request',
  async () => {
    const from = producer();
    const { headers, spans } = await create(from, made);
    assert.equal(
      spans.map(({ name, kind, parentSpanId }) => [name, kind, parentSpanId]),
      [['dynamic.event.creation.success', 'producer', from.spanId]],
    );
    assert.equal(headers, {
      traceparent: `00-${from.traceId}-${spans[0]?.spanId}-01`,
      tracestate: 'shop=7',
      'x-own': 'of the event',
    });
  },
);

creation('an event that was there already has no span of a creation', async () => {
  const { spans } = await create(producer(), () => ({ id: newId(), duplicate: true }));
  assert.equal(spans, []);
});

creation(
  'what Postgres says of a failure does not go on, and what the caller did wrong is no exception',
  async () => {
    const failed = Object.assign(new Error('the row holds a planted secret'), { code: '08006' });
    const refused = new GatewayError('invalid_request', { problems: [] });
    for (const [error, type, exceptions] of [
      [failed, '08006', ['exception']],
      [refused, 'invalid_request', []],
    ] as const) {
      const found = await create(producer(), fails(error));
      assert.is(found.error, error);
      assert.equal(
        found.spans.map(({ name, status, attributes, events }) => [
          name,
          status.code,
          attributes['error.type'],
          events.map((it) => it.name),
        ]),
        [['dynamic.event.creation.error', 'error', type, exceptions]],
      );
    }
    assert.not.match(to.text(), 'planted');
  },
);

creation(
  'of a request whose trace is not recorded the context goes on as it is, and nothing else is made',
  async () => {
    const from = producer({ sampled: false });
    for (const make of [made, fails(new Error('away'))]) {
      const { headers, spans } = await create(from, make);
      assert.equal(headers, {
        traceparent: from.traceparent,
        tracestate: 'shop=7',
        'x-own': 'of the event',
      });
      assert.equal(spans, []);
    }
  },
);

creation('without a tracer the headers of the event stay as they are', async () => {
  const { headers, spans } = await create(producer(), made, {});
  assert.equal(headers, { traceparent: 'another', 'x-own': 'of the event' });
  assert.equal(spans, []);
});

creation.run();
