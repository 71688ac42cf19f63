import otel from '@gateway/tracer-otel';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Throttle } from '#agent/flow-control/throttle';
import { Pipeline } from '#ingest/pipeline';
import { Transformer } from '#ingest/transform/transformer';
import type { InFlightDelivery } from '#agent/model/delivery';
import { PendingRouter } from '#agent/routing/pending-router';
import { DeliveryPlanner } from '#agent/routing/plan-deliveries';
import { tracing } from '#agent/telemetry/tracing';
import { newId } from '#core/events/ids';
import { TokenBuckets } from '#core/process/token-buckets';
import { LoopShares } from '#core/process/loop-shares';
import { silentLog } from '#core/logging/log';
import type { StorableEvent } from '#store/events/events';
import { bucketsOn } from '../../support/buckets.js';
import { flushed, producer, type Producer } from '../../e2e/traced.js';
import { acceptPending } from '../../store/batches.js';
import { migratedDatabase } from '../../store/migrated.js';
import { collector, type OtlpSpan } from '../../support/otlp.js';
import { until } from '../../support/until.js';
import { makeEndpoint } from '../records.js';
import { pluginsOf, type RunningAgent } from '../running.js';
import { type Scene, withAgent } from '../scene.js';

const traces = suite('agent/telemetry/tracing');

const db = await migratedDatabase();
const to = await collector();
const started = await otel.start(
  { collector_url: `http://${to.address}`, sample_rate: 1, insecure_skip_verify: false },
  { serviceName: 'gateway-agent', serviceVersion: '1.2.3', environment: 'test' },
);
const plugins = { ...pluginsOf(), tracer: { name: 'otel', close: () => Promise.resolve() } };
const spans = tracing(plugins)!;
traces.after(async () => {
  await started.close();
  to.close();
  await db.close();
});

const onTracedWay = (test: (scene: Scene) => Promise<void>) => withAgent(db, test, { plugins });

const sent = async (wanted: (span: OtlpSpan) => boolean) => (await flushed(to)).filter(wanted);

const of = (from: Producer) => (span: OtlpSpan) => span.traceId === from.traceId;

/** A router of the running agent, or one that Postgres refuses. */
function router({ wiring, database, configCache }: RunningAgent, agentId?: number) {
  const { inFlight, gates, dueTimes } = wiring;
  const refused = agentId !== undefined && {
    planner: new DeliveryPlanner({
      configCache,
      lease: { agentId },
      inFlight,
      gates,
      dueTimes,
      batchSize: 1,
      routingPace: new TokenBuckets(0),
      claimsFirstAttempts: true,
    }),
  };
  return new PendingRouter({
    log: silentLog,
    loopShares: new LoopShares(0),
    database,
    configCache,
    inFlight,
    planner: wiring.planner,
    tracing: spans,
    ...refused,
  });
}

async function put(
  running: RunningAgent,
  from: Producer | null,
  fields: Partial<StorableEvent> = {},
) {
  const headers = JSON.stringify(
    from ? { 'x-shop': '"traceparent":"no"', traceparent: from.traceparent } : {},
  );
  const events = await acceptPending(db, 1, { projectId: running.projectId, headers, ...fields });
  return router(running).read(events);
}

/** Passes a message to the pipeline like a source. Returns its outcome. */
function hand(
  { wiring, kv, projectId }: RunningAgent,
  { body, headers = {}, coordinates = newId(), ratePerSecond = 0 }: Handed,
): ReturnType<ReturnType<Pipeline['handle']>> {
  const pipeline = new Pipeline({
    pace: new TokenBuckets(0),
    loopShares: new LoopShares(0),
    throttle: new Throttle(bucketsOn(kv), ratePerSecond),
    transformer: new Transformer({ sandbox: wiring.sandbox, log: silentLog }),
    eventWriter: wiring.eventWriter,
    maxMessageBytes: 10_000,
    tracing: spans,
  });
  const source = { projectId, id: newId(), bodyFunction: null };
  return pipeline.handle(() => source)({
    coordinates,
    timestamp: Date.now(),
    body: Buffer.from(JSON.stringify(body)),
    headers,
  });
}

interface Handed {
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly coordinates?: string;
  readonly ratePerSecond?: number;
}

traces(
  'an event of the API that was created without a tracer begins its trace with its first attempt, and its retry stays in it',
  () =>
    onTracedWay(async ({ running, at }) => {
      at.answer([{ status: 500 }, { status: 200 }]);
      const { id } = await makeEndpoint(db, running.projectId, {
        url: at.url,
        strategy: { type: 'linear', duration: 1, retry_count: 1 },
      });
      await running.configCache.refresh();
      await router(running).route(await put(running, null, { endpointId: id, sourceId: null }));
      const requests = await at.received(2);
      const [first, second] = requests.map(
        ({ headers }) => headers['traceparent']?.split('-') ?? [],
      );
      const found = await until('both attempts', async () => {
        const attempts = await sent(({ traceId }) => traceId === first![1]);
        return attempts.length === 2 && attempts;
      });
      assert.equal(
        found.map(({ spanId, parentSpanId, links }) => [spanId, parentSpanId, links.length]),
        [
          [first![2], undefined, 0],
          [second![2], first![2], 1],
        ],
      );
    }),
);

traces(
  'an attempt after one of a trace that is not recorded is in that trace, and is not recorded either',
  () => {
    const from = producer({ sampled: false });
    const trace = spans.attempting({
      headers: {},
      sourceId: newId(),
      traceparent: from.traceparent,
    } as unknown as InFlightDelivery);
    assert.equal(trace, { traceparent: from.traceparent, tracestate: undefined, span: undefined });
  },
);

traces(
  'an event of a source that carries no trace context was decided on when it was read: its attempts begin no trace',
  () => {
    const attempt = (fields: object) =>
      spans.attempting({
        headers: {},
        sourceId: null,
        traceparent: null,
        ...fields,
      } as unknown as InFlightDelivery);
    assert.is(attempt({ sourceId: newId() }), undefined);
    assert.ok(attempt({})?.span);
  },
);

traces(
  'of an event whose trace is not recorded nothing is sent, and its trace context goes on as it is',
  () =>
    onTracedWay(async ({ running, at }) => {
      const from = producer({ sampled: false });
      await router(running).route(await put(running, from));
      const [request] = await at.received(1);
      assert.is(request?.headers['traceparent'], from.traceparent);
      assert.equal(await sent(of(from)), []);
    }),
);

traces('an event that names an endpoint that is not there is an error of routing', () =>
  onTracedWay(async ({ running }) => {
    const from = producer();
    await router(running).route(await put(running, from, { endpointId: newId() }));
    const [span, ...more] = await sent(of(from));
    assert.equal(more, []);
    assert.equal(
      [
        span?.name,
        span?.parentSpanId,
        span?.attributes['gateway.outcome'],
        span?.attributes['gateway.queue'],
      ],
      ['event.routing', from.spanId, 'unknown_endpoint', 'reconciler'],
    );
    assert.is(span?.status.code, 'error');
  }),
);

traces('matching fails when the project is gone, and when the route cannot be stored', () =>
  onTracedWay(async ({ running }) => {
    const [gone, refused, named] = [producer(), producer(), producer()];
    await router(running).route(await put(running, gone, { projectId: newId() }));
    const events = [
      ...(await put(running, refused)),
      ...(await put(running, named, { endpointId: newId() })),
    ];
    await router(running, 2 ** 40)
      .route(events)
      .then(
        () => assert.unreachable(),
        () => undefined,
      );
    const found = await sent((span) => of(gone)(span) || of(refused)(span) || of(named)(span));
    assert.equal(
      found.map(({ name, parentSpanId, attributes, status }) => [
        name,
        parentSpanId,
        attributes['error.type'],
        status.code,
      ]),
      [
        ['dynamic.event.subscription.matching.error', gone.spanId, 'unknown_project', 'error'],
        ['dynamic.event.subscription.matching.error', refused.spanId, '22003', 'error'],
      ],
    );
  }),
);

traces('of two routers with the same event one tells of its route', () =>
  onTracedWay(async ({ running }) => {
    const from = producer();
    const events = await put(running, from);
    await Promise.all([router(running).route(events), router(running).route(events)]);
    const routes = (await sent(of(from))).filter(({ name }) => name === 'event.routing');
    assert.equal(
      routes.map(({ attributes }) => attributes['gateway.deliveries']),
      [1],
    );
  }),
);

traces(
  'a message that Postgres refuses is an error of its creation, by what its event was to be',
  () =>
    onTracedWay(async ({ running }) => {
      await db.rows(`alter table events add constraint refused check (event_type <> 'refused')`);
      try {
        for (const [name, target] of [
          ['dynamic.event.creation.error', {}],
          ['event.creation.error', { owner_id: 'shop' }],
        ] as const) {
          const from = producer();
          const body = { event_type: 'refused', data: {}, ...target };
          assert.is(
            await hand(running, { body, headers: { traceparent: from.traceparent } }),
            'quarantined',
          );
          const found = await sent(of(from));
          assert.equal(found.map((span) => span.name).sort(), [name, 'ingest.message'].sort());
          const error = found.find((span) => span.name === name);
          assert.is(error?.attributes['gateway.code'], 'database_refused');
          assert.is(error?.attributes['gateway.event_type'], 'refused');
          assert.is(error?.status.message, 'Postgres refused the event as it is.');
        }
      } finally {
        await db.rows('alter table events drop constraint refused');
      }
    }),
);

traces('a message that waited for the ingest rate says so, and its steps lie within it', () =>
  onTracedWay(async ({ running }) => {
    const [before, from] = [producer(), producer()];
    const outcomes = [before, from].map(({ traceparent }) =>
      hand(running, {
        body: { event_type: 'a', data: {} },
        headers: { Traceparent: traceparent },
        ratePerSecond: 1,
      }),
    );
    assert.equal(await Promise.all(outcomes), ['accepted', 'accepted']);
    const found = await sent(of(from));
    const message = found.find(({ name }) => name === 'ingest.message');
    const throttle = found.find(({ name }) => name === 'ingest.throttle');
    assert.ok(
      throttle && throttle.endedAt - throttle.startedAt > 200,
      'one message a second passes',
    );
    for (const name of ['ingest.throttle', 'dynamic.event.creation.success']) {
      const span = found.find((it) => it.name === name);
      assert.is(span?.parentSpanId, message?.spanId, name);
      assert.ok(span!.startedAt >= message!.startedAt && span!.endedAt <= message!.endedAt, name);
    }
  }),
);

traces('a message that goes back to its broker leaves no trace', () =>
  onTracedWay(async ({ running }) => {
    const from = producer();
    running.wiring.eventWriter.stop();
    assert.is(
      await hand(running, {
        body: { event_type: 'a', data: {} },
        headers: { traceparent: from.traceparent },
      }),
      'later',
    );
    assert.equal(await sent(of(from)), []);
  }),
);

traces('without an active tracer there is nothing to trace with', () => {
  assert.is(tracing(pluginsOf()), undefined);
});

traces.run();
