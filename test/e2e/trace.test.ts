// deadline: 180 s
import crypto from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { spans, type SpanRow } from '#core/tracing/spans';
import { endpoint } from '../support/endpoint.js';
import { runGateway } from '../support/gateway.js';
import { kafka } from '../support/kafka.js';
import { collector } from '../support/otlp.js';
import { kafkaSource, production } from '../support/production.js';
import { sqs } from '../support/sqs.js';
import { until } from '../support/until.js';
import { checkParents, only, producer, tracedBy, wholeTrace } from './traced.js';

const trace = suite('e2e/trace');

const to = await collector();
const queues = await sqs();
const broker = await kafka();
const receiver = await endpoint({
  answer: ({ body }) => {
    const type = typeOf(body);
    const before = receiver.requests.filter((request) => typeOf(request.body) === type).length - 1;
    return {
      status: (type === 'order.paid' && before < 2) || (type === 'again' && before < 3) ? 503 : 200,
    };
  },
});
// Every event passes both queues, and another agent makes retries. It reads no source, so that no
// message is read twice while two agents divide a topic.
const gateway = await production({
  agents: 0,
  settings: { tracer: tracedBy(to), ingest: { inline_routing: false } },
});
await Promise.all([
  gateway.startAgent(['--mode', 'events']),
  gateway.startAgent(['--mode', 'retry']),
]);
trace.after(async () => {
  await gateway.close();
  await Promise.all([receiver.close(), queues.close(), broker.close()]);
  to.close();
});

const SECRET = 'planted-secret';
const PAYLOAD = 'planted-payload';
const strategy = { type: 'linear', duration: 1, retry_count: 2 };
const { uid: endpointId } = await gateway.api('POST', '/endpoints', {
  name: 'receiver',
  url: `${receiver.url}/${SECRET}`,
  strategy,
  authentication: { type: 'api_key', api_key: { header_name: 'x-key', header_value: SECRET } },
});
await gateway.api('POST', '/subscriptions', {
  name: 'all',
  endpoint_id: endpointId,
  filter_config: { event_types: ['*'] },
});
const topic = await kafkaSource(gateway, broker, 1, {
  body_function: `function transform(payload) {
    if (payload.throws) throw new Error('cannot read ' + payload.throws);
    return { event_type: payload.type, data: payload.data, custom_headers: { 'x-own': 'planted-secret' } };
  }`,
});
const queue = queues.queue();
const { uid: sqsSource } = await gateway.api('POST', '/sources', {
  name: 'shop',
  type: 'pub_sub',
  pub_sub: { type: 'sqs', workers: 1, sqs: queues.connection(queue.name) },
});

// Everything is sent at the same time, so that the test waits only once for an agent's export
// interval.
const paid = producer();
const again = producer();
const sold = producer();
const made = producer();
const refused = producer();
const thrown = producer();
const quiet = producer({ sampled: false });
const inside = producer();
const nowhere = producer();
await broker.produce(topic, [
  {
    value: JSON.stringify({ type: 'order.paid', data: { type: 'order.paid', card: PAYLOAD } }),
    headers: { traceparent: paid.traceparent, tracestate: 'shop=7,other=x', authorization: SECRET },
  },
  { value: JSON.stringify({ throws: PAYLOAD }), headers: { traceparent: thrown.traceparent } },
]);
const message = (
  type: string,
  event: object = {},
  attributes: Readonly<Record<string, string>> = {},
) => ({
  body: JSON.stringify({ event_type: type, data: { type }, ...event }),
  attributes,
});
const once = message(
  'sold',
  { endpoint_id: endpointId, idempotency_key: 'one' },
  { traceparent: sold.traceparent },
);
await queues.send(queue, [
  message('again', { endpoint_id: endpointId }, { traceparent: again.traceparent }),
  once,
  once,
  message('quiet', {}, { traceparent: quiet.traceparent, tracestate: 'a=b' }),
  message(
    'odd',
    {},
    { traceparent: '00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01', tracestate: 'a=b' },
  ),
  message('inside', { custom_headers: { traceparent: inside.traceparent } }),
  message('nowhere', { endpoint_id: crypto.randomUUID() }, { traceparent: nowhere.traceparent }),
]);
const ofApi = { event_type: 'made', endpoint_id: endpointId, data: { type: 'made' } };
await gateway.api('POST', '/events', ofApi, {
  traceparent: made.traceparent,
  tracestate: 'shop=8',
});
const bad = { event_type: 'made', data: {}, custom_headers: { 'not a name': PAYLOAD } };
for (const route of ['/events', '/events/broadcast'])
  await gateway
    .api('POST', route, bad, { traceparent: refused.traceparent })
    .catch((error: Error) => assert.match(error.message, '422'));

function typeOf(body: Buffer): string {
  return (JSON.parse(body.toString()) as { type: string }).type;
}

const requests = (traceId: string) =>
  receiver.requests.filter(({ headers }) => headers['traceparent']?.includes(traceId));
const sent = async (type: string, count = 1) => {
  const ofType = () => receiver.requests.filter(({ body }) => typeOf(body) === type);
  return until(`${count} requests of ${type}`, () => ofType().length >= count && ofType());
};

trace(
  'a Kafka record is one trace from its producer through transform, queues and retries to the webhook',
  async () => {
    const found = await wholeTrace(to, paid.traceId, [
      'ingest.message',
      'ingest.transform',
      'dynamic.event.creation.success',
      'event.routing',
      'event.routing',
      'meta_event_delivery',
      'meta_event_delivery',
      'meta_event_delivery',
    ]);
    checkParents(found, [paid.spanId]);
    const ingest = only(found, 'ingest.message');
    assert.is(ingest.parentSpanId, paid.spanId);
    assert.is(ingest.attributes['gateway.coordinates'], `${topic}/0/0`);
    assert.is(ingest.attributes['messaging.system'], 'kafka');
    assert.is(ingest.attributes['gateway.outcome'], 'accepted');
    const transform = only(found, 'ingest.transform');
    const creation = only(found, 'dynamic.event.creation.success');
    for (const span of [transform, creation])
      assert.is(span.parentSpanId, ingest.spanId, span.name);
    assert.ok(
      ingest.startedAt <= transform.startedAt &&
        transform.endedAt <= creation.endedAt &&
        creation.endedAt <= ingest.endedAt,
    );

    const routings = found
      .filter(({ name }) => name === 'event.routing')
      .sort((a, b) => a.startedAt - b.startedAt);
    assert.equal(
      routings.map(({ attributes }) => [
        attributes['gateway.queue'],
        attributes['gateway.outcome'],
      ]),
      [
        ['create-event', 'passed_on'],
        ['match-subscriptions', 'routed'],
      ],
    );
    const attempts = found
      .filter(({ name }) => name === 'meta_event_delivery')
      .sort((a, b) => a.startedAt - b.startedAt);
    for (const span of [...routings, ...attempts])
      assert.is(span.parentSpanId, creation.spanId, span.name);
    const [first, second] = attempts.map(({ resource }) => resource['process.pid']);
    assert.is.not(first, second);
    assert.equal(
      attempts.map(({ attributes }) => attributes['http.response.status_code']),
      [503, 503, 200],
    );
    assert.equal(
      attempts.map(({ links }) => links.map(({ traceId, spanId }) => [traceId, spanId])),
      [[], [[paid.traceId, attempts[0]!.spanId]], [[paid.traceId, attempts[1]!.spanId]]],
    );
    assert.equal(
      attempts.map(({ status, attributes }) => [status.code, attributes['error.type']]),
      [
        ['error', '503'],
        ['error', '503'],
        ['unset', undefined],
      ],
    );
    assert.equal(
      requests(paid.traceId).map(({ headers }) => headers['traceparent']),
      attempts.map(({ spanId }) => `00-${paid.traceId}-${spanId}-01`),
    );
    for (const { headers } of requests(paid.traceId))
      assert.is(headers['tracestate'], 'shop=7,other=x');
  },
);

trace(
  'attempts that an operator asks for are in the trace of their event, linked to the attempt before',
  async () => {
    const names = [
      'ingest.message',
      'event.creation.success',
      'event.routing',
      ...Array<string>(3).fill('meta_event_delivery'),
    ];
    const before = await wholeTrace(to, again.traceId, names);
    await until('the delivery to have failed', async () => {
      const rows = await gateway.database.rows(
        `select from event_deliveries where status = 'failure'`,
      );
      return rows.length === 1;
    });
    const config = { database: gateway.database.connection };
    const { code, stderr } = await runGateway(['retry', '--status', 'failure', '--time', '10m'], {
      config,
    });
    assert.is(code, 0, stderr);
    const after = await wholeTrace(to, again.traceId, [...names, 'meta_event_delivery']);
    checkParents(after, [again.spanId]);
    const third = before.find(({ attributes }) => attributes['gateway.attempt'] === 3);
    const fourth = after.find(({ attributes }) => attributes['gateway.attempt'] === 4);
    assert.equal(
      fourth?.links.map(({ spanId }) => spanId),
      [third?.spanId],
    );
  },
);

trace(
  'an SQS message attribute is the parent, and a message that makes no second event is in the trace as such',
  async () => {
    const found = await wholeTrace(to, sold.traceId, [
      'ingest.message',
      'ingest.message',
      'event.creation.success',
      'event.routing',
      'meta_event_delivery',
    ]);
    const ingests = found.filter(({ name }) => name === 'ingest.message');
    const ingest = ingests.find(({ attributes }) => attributes['gateway.outcome'] === 'accepted')!;
    assert.equal(ingests.map(({ attributes }) => attributes['gateway.outcome']).sort(), [
      'accepted',
      'duplicate',
    ]);
    assert.is(ingest.parentSpanId, sold.spanId);
    assert.is(ingest.attributes['messaging.system'], 'aws_sqs');
    assert.is(ingest.attributes['gateway.source'], sqsSource);
    assert.is(only(found, 'event.routing').attributes['gateway.deliveries'], 1);
    assert.is((await sent('sold')).length, 1);
  },
);

trace('an event that is created over the API is traced from the request', async () => {
  const found = await wholeTrace(to, made.traceId, [
    'event.creation.success',
    'event.routing',
    'meta_event_delivery',
  ]);
  const creation = only(found, 'event.creation.success');
  assert.is(creation.parentSpanId, made.spanId);
  assert.is(creation.resource['service.name'], 'gateway-server');
  const attempt = only(found, 'meta_event_delivery');
  assert.is(attempt.parentSpanId, creation.spanId);
  assert.is(attempt.resource['service.name'], 'gateway-agent');
  assert.is(requests(made.traceId)[0]?.headers['tracestate'], 'shop=8');
});

trace('an event that the API refuses is an error in the trace of the request', async () => {
  const found = await wholeTrace(to, refused.traceId, [
    'dynamic.event.creation.error',
    'event.creation.error',
  ]);
  for (const { attributes, parentSpanId, events } of found) {
    assert.is(attributes['gateway.code'], 'invalid_request');
    assert.is(parentSpanId, refused.spanId);
    assert.equal(events, [], 'the mistake is of the caller, who was told');
  }
});

trace(
  'a message that is put in quarantine is an error in its trace, without what the function said',
  async () => {
    const found = await wholeTrace(to, thrown.traceId, [
      'ingest.message',
      'ingest.transform',
      'event.creation.error',
    ]);
    checkParents(found, [thrown.spanId]);
    const error = only(found, 'event.creation.error');
    assert.is(error.attributes['gateway.code'], 'transform_threw');
    assert.is(error.attributes['error.type'], 'transform_threw');
    assert.equal(error.status, { code: 'error', message: 'The transform function threw.' });
    assert.equal(
      found.flatMap(({ events }) => events.map(({ name }) => name)),
      ['exception'],
    );
  },
);

/** Waits for a span of a trace; other spans can precede and follow it. */
async function spanOf({ traceId }: { readonly traceId: string }, name: string) {
  return until(`${name} in its trace`, () =>
    to.spans.find((span) => span.traceId === traceId && span.name === name),
  );
}

trace('a message for subscriptions that Postgres refuses is an error of its creation', async () => {
  const from = producer();
  await gateway.database.rows(
    `alter table events add constraint refused check (event_type <> 'refused')`,
  );
  await queues.send(queue, [message('refused', {}, { traceparent: from.traceparent })]);
  const error = await spanOf(from, 'dynamic.event.creation.error');
  await gateway.database.rows('alter table events drop constraint refused');
  const ingest = await spanOf(from, 'ingest.message');
  assert.is(error.parentSpanId, ingest.spanId);
  assert.is(ingest.attributes['gateway.outcome'], 'quarantined');
  assert.equal(
    [error.attributes['gateway.code'], error.attributes['gateway.event_type']],
    ['database_refused', 'refused'],
  );
});

trace(
  'a message whose route cannot be stored is an error of matching, and is delivered when it can',
  async () => {
    const from = producer();
    await gateway.database.rows(
      `alter table event_deliveries add constraint unroutable check (event_type <> 'unroutable')`,
    );
    await queues.send(queue, [message('unroutable', {}, { traceparent: from.traceparent })]);
    const error = await spanOf(from, 'dynamic.event.subscription.matching.error');
    await gateway.database.rows('alter table event_deliveries drop constraint unroutable');
    const creation = await spanOf(from, 'dynamic.event.creation.success');
    assert.is(error.parentSpanId, creation.spanId);
    assert.equal(
      [error.attributes['gateway.outcome'], error.attributes['error.type'], error.status.code],
      ['pending', '23514', 'error'],
    );
    await sent('unroutable');
  },
);

trace('a message for an endpoint that is not there is an error of routing', async () => {
  const found = await wholeTrace(to, nowhere.traceId, [
    'ingest.message',
    'event.creation.success',
    'event.routing',
  ]);
  const { attributes, status } = only(found, 'event.routing');
  assert.equal(
    [attributes['gateway.outcome'], attributes['error.type'], status.code],
    ['unknown_endpoint', 'unknown_endpoint', 'error'],
  );
});

trace('the webhook of a trace that its producer does not record says so', async () => {
  const [request] = await sent('quiet');
  assert.match(
    request?.headers['traceparent'] ?? '',
    new RegExp(`^00-${quiet.traceId}-[0-9a-f]{16}-00$`),
  );
  assert.is(request?.headers['tracestate'], 'a=b');
});

trace('a malformed trace context begins a new trace, and does not travel on', async () => {
  const [request] = await sent('odd');
  const [, traceId] =
    /^00-([0-9a-f]{32})-[0-9a-f]{16}-01$/.exec(request?.headers['traceparent'] ?? '') ?? [];
  assert.ok(traceId, request?.headers['traceparent']);
  assert.is(request?.headers['tracestate'], undefined);
  const names = [
    'ingest.message',
    'dynamic.event.creation.success',
    'event.routing',
    'event.routing',
    'meta_event_delivery',
  ];
  const found = await wholeTrace(to, traceId, names);
  assert.is(only(found, 'ingest.message').parentSpanId, undefined);
  checkParents(found);
});

trace(
  'a trace context that a transform function puts into custom headers is followed',
  async () => {
    const names = [
      'ingest.message',
      'dynamic.event.creation.success',
      'event.routing',
      'event.routing',
      'meta_event_delivery',
    ];
    const found = await wholeTrace(to, inside.traceId, names);
    assert.is(only(found, 'ingest.message').parentSpanId, inside.spanId);
  },
);

trace(
  'nothing of a trace that its producer does not record has arrived, though all that was sent with it has',
  () => {
    assert.equal(
      to.spans.filter(({ traceId }) => traceId === quiet.traceId),
      [],
    );
  },
);

trace('every span of the table has arrived, with each of its attributes', () => {
  // The agents of e2e/trace-sampling have an ingest rate.
  const { 'ingest.throttle': _, ...rows } = spans;
  const missing = Object.entries<SpanRow>(rows).flatMap(([name, { attributes }]) => {
    const found = to.spans
      .filter((span) => span.name === name)
      .flatMap((span) => Object.keys(span.attributes));
    return attributes
      .filter((attribute) => !found.includes(attribute))
      .map((attribute) => `${attribute} of ${name}`);
  });
  assert.equal(missing, []);
});

trace(
  'nothing that a message, its headers, an endpoint or a function held has arrived at the collector',
  () => {
    for (const planted of [SECRET, PAYLOAD]) assert.not.match(to.text(), planted);
  },
);

trace.run();
