// deadline: 180 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { queueOf } from '#store/kv/kv';
import { DEFAULT_SHARD } from '#store/shards/shards';
import { endpoint } from '../support/endpoint.js';
import { scrape, type Exposition } from '../support/exposition.js';
import { kafka } from '../support/kafka.js';
import { kafkaSource, production } from '../support/production.js';
import { testShard } from '../support/shard.js';
import { sqs } from '../support/sqs.js';
import { until } from '../support/until.js';
import { ELSEWHERE } from './watched.js';

const shows = suite('e2e/series');

const settings = {
  enable_feature_flag: ['pullmetrics'],
  metrics: {
    enabled: true,
    metrics_backend: 'pullmetrics',
    pullmetrics_metrics: { sample_time: 1 },
  },
  circuit_breaker: {
    minimum_request_count: 4,
    failure_threshold: 90,
    error_timeout: 1,
    max_error_timeout: 1,
  },
  instance_ingest_rate: 100_000,
};

const message = (type: string, data: object = {}, more: object = {}) =>
  JSON.stringify({ event_type: type, data, ...more });

const [broker, queues] = [await kafka(), await sqs()];
const good = await endpoint();
const shaky = await endpoint({ answer: [{ status: 503 }, { status: 500 }, {}] });
const hopeless = await endpoint({ answer: { status: 400 } });
let release = () => {};
const slow = await endpoint();
let probed = () => {};
const probe = new Promise<void>((resolve) => (probed = resolve));
const broken = await endpoint({
  answer: (_request, number) => (number < 4 ? { status: 500 } : probe.then(() => ({}))),
});
/** Holds requests until they are released. */
const holdSlow = () => {
  const released = new Promise<void>((resolve) => (release = resolve));
  slow.answer(() => released.then(() => ({})));
};
const gateway = await production({ settings, agents: 0 });
const queue = queues.queue();
/** Shared by all later tests. */
let topic: string,
  slowId: string,
  brokenId: string,
  limitedId: string,
  agent: Awaited<ReturnType<typeof gateway.startAgent>>;
/** Series of `ELSEWHERE` that an agent has exposed above zero. */
const above = new Set<string>();
const look = async ({ port } = agent): Promise<Exposition> => {
  const at = await scrape(port);
  for (const name of ELSEWHERE) if (at.sum(name)! > 0) above.add(name);
  return at;
};
shows.after(async () => {
  release();
  probed();
  await gateway.close();
  for (const each of [good, shaky, hopeless, slow, broken]) await each.close();
  await queues.close();
  await broker.close();
});

async function receives(
  type: string,
  url: string,
  retries: number,
  more: object = {},
): Promise<string> {
  const { uid } = await gateway.api('POST', '/endpoints', {
    name: type,
    url,
    strategy: { type: 'linear', duration: 1, retry_count: retries },
    ...more,
  });
  await gateway.api('POST', '/subscriptions', {
    name: type,
    endpoint_id: uid,
    filter_config: { event_types: [type] },
  });
  return uid;
}

async function sqsSource(name: string, connection: object): Promise<string> {
  const pubSub = { type: 'sqs', workers: 1, sqs: connection };
  return (await gateway.api('POST', '/sources', { name, type: 'pub_sub', pub_sub: pubSub })).uid;
}

/** The three counters of a source, which must be consistent in every scrape. */
function ingested(
  at: Exposition,
  source: string,
): { total: number; success: number; error: number } {
  const of = (name: string) => at.sum(name, { source }) ?? 0;
  return {
    total: of('gateway_ingest_total'),
    success: of('gateway_ingest_success'),
    error: of('gateway_ingest_error'),
  };
}

shows(
  'every series that a process counts itself has a real value under a load of two sources, the API, a transform and bad endpoints',
  async () => {
    const goodId = await receives('good', good.url, 0);
    const shakyId = await receives('shaky', shaky.url, 3);
    await receives('hopeless', hopeless.url, 1);
    holdSlow();
    slowId = await receives('slow', slow.url, 0, { concurrency: 2, http_timeout: 60 });

    brokenId = await receives('broken', broken.url, 10);
    limitedId = await receives('limited', good.url, 0, { rate_limit: 1 });

    // Its signal is lost, so that the reconciler routes it.
    await gateway.api('POST', '/events', { event_type: 'unwanted', data: { way: 'lost signal' } });
    await until('its signal', () =>
      gateway.kv.client.exists(`gateway:${queueOf('create-event', testShard ?? DEFAULT_SHARD)}`),
    );
    await gateway.kv.client.flushdb();
    // Retention needs this table, and runs when the agent starts.
    await gateway.shard.rows('alter table quarantined_messages rename to away');
    agent = await gateway.startAgent();
    await until(
      'retention to fail',
      async () => (await look()).sum('gateway_retention_failures_total') === 1,
    );
    await gateway.shard.rows('alter table away rename to quarantined_messages');

    topic = await kafkaSource(gateway, broker, 2, {
      body_function: 'function transform(payload) { return payload.drop ? null : payload; }',
    });
    const { content: sources } = await gateway.api<{ content: { uid: string; name: string }[] }>(
      'GET',
      '/sources',
    );
    const kafkaId = sources.find(({ name }) => name === 'orders')?.uid ?? '';
    await broker.produce(topic, [
      ...Array.from({ length: 20 }, (_, n) => ({
        partition: n % 2,
        value: message('good', { n }),
      })),
      { partition: 0, value: '{"drop":true}' },
    ]);
    const sqsId = await sqsSource('shop', queues.connection(queue.name));
    await queues.send(queue, ['no json', message('shaky'), message('hopeless')]);
    await queues.send(queue, [message('good', {}, { idempotency_key: 'once' })]);
    await until('the first of two with one key', () => good.requests.length >= 21);
    await queues.send(queue, [message('good', {}, { idempotency_key: 'once' })]);
    await gateway.api('POST', '/events', {
      event_type: 'good',
      data: { way: 'api' },
      idempotency_key: 'twice',
    });
    await gateway.api('POST', '/events', {
      event_type: 'good',
      data: { way: 'api' },
      idempotency_key: 'twice',
    });
    const refused = gateway.api('POST', '/events', { data: {} });
    assert.match(
      await refused.then(
        () => '',
        ({ message }: Error) => message,
      ),
      'answered 422',
    );
    await queues.send(
      queue,
      // The maximum of in-flight and waiting deliveries: more would be returned to Postgres for a
      // while.
      Array.from({ length: 102 }, (_, n) => message('slow', { n })),
    );

    const wrong: string[] = [];
    const held = await until('the slow endpoint to be held back', async () => {
      const at = await look();
      for (const source of [kafkaId, sqsId]) {
        const { total, success, error } = ingested(at, source);
        if (total !== success + error)
          wrong.push(`${source}: ${total} is not ${success} and ${error}`);
      }
      return at.sum('gateway_endpoint_slow', { endpoint: slowId }) === 1 && at;
    });
    assert.equal(wrong, []);
    assert.ok(held.sum('gateway_deliveries_held', { state: 'under_way' })! >= 2);
    assert.ok(held.sum('gateway_deliveries_held', { state: 'waiting' })! >= 100);
    release();

    const counted = async () => {
      const at = await look();
      const over = (outcome: string) =>
        at.sum('gateway_delivery_attempt_count_count', { outcome }) ?? 0;
      const done =
        over('success') >= 125 && over('failure') === 1 && ingested(at, sqsId).total === 107;
      return done && (at.sum('gateway_events_recovered_total') ?? 0) >= 1 && at;
    };
    const all = await until('everything to be counted', counted, { withinMs: 60_000 });

    // Ingest: 20 accepted and 1 dropped from Kafka; 1 quarantined, 1 duplicate and 105 accepted
    // from the queue.
    assert.equal(ingested(all, kafkaId), { total: 21, success: 21, error: 0 });
    assert.equal(ingested(all, sqsId), { total: 107, success: 106, error: 1 });
    assert.is(all.sum('gateway_ingest_dropped_total', { source: kafkaId }), 1);
    assert.is(all.sum('gateway_ingest_duplicate_total', { source: sqsId }), 1);
    assert.equal(
      all
        .all('gateway_ingest_quarantined_total')
        .map(({ labels, value }) => [labels['source'], labels['reason'], value]),
      [[sqsId, 'not_json', 1]],
    );
    assert.is(all.sum('gateway_ingest_latency_count'), 125);
    assert.ok(all.sum('gateway_ingest_latency_sum')! > 0);

    // An endpoint that fails twice is observed once, with the whole wait.
    assert.is(all.sum('gateway_end_to_end_latency_count', { endpoint: shakyId }), 1);
    assert.ok(all.sum('gateway_end_to_end_latency_sum', { endpoint: shakyId })! >= 2);
    assert.is(all.sum('gateway_end_to_end_latency_bucket', { endpoint: shakyId, le: '1' }), 0);
    assert.is(
      all.sum('gateway_end_to_end_latency_count', { endpoint: goodId }),
      good.requests.length,
    );
    assert.is(all.sum('gateway_delivery_attempt_count_sum', { outcome: 'failure' }), 2);
    assert.is(all.sum('gateway_deliveries_attempted_total', { outcome: 'retry' }), 3);
    assert.is(all.sum('gateway_deliveries_attempted_total', { outcome: 'failure' }), 1);
    assert.is(
      all.sum('gateway_deliveries_attempted_total', { outcome: 'success' }),
      all.sum('gateway_end_to_end_latency_count'),
    );

    for (const step of ['throttle', 'transform', 'commit', 'route', 'wait', 'request', 'record']) {
      assert.ok(all.sum('gateway_step_duration_seconds_count', { step })! > 0, step);
      assert.ok(all.sum('gateway_step_duration_seconds_sum', { step })! > 0, step);
    }
    assert.ok(
      all.sum('gateway_step_duration_seconds_sum', { step: 'wait' })! > 1,
      'the deliveries of the slow endpoint waited',
    );
    assert.is(all.sum('gateway_batch_size_sum', { batch: 'transform' }), 21);
    assert.is(
      all.sum('gateway_batch_size_sum', { batch: 'record' }),
      all.sum('gateway_deliveries_attempted_total'),
    );
    for (const batch of ['commit', 'route'])
      assert.ok(all.sum('gateway_batch_size_sum', { batch })! >= 126, batch);
    assert.ok(all.sum('gateway_transform_duration_seconds_sum', { source: kafkaId })! > 0);
    assert.ok(all.sum('gateway_sandbox_processes')! > 0);
    assert.is(all.sum('gateway_clock_offset_seconds'), 0, 'agent and Postgres share a machine');

    // While nothing can be committed, a message remains at its broker.
    await gateway.shard.rows('begin');
    await gateway.shard.rows('lock table events in share mode');
    await broker.produce(topic, [{ partition: 0, value: message('nobody') }]);
    await until(
      'a lag',
      async () => (await look()).sum('gateway_source_lag_messages', { source: kafkaId }) === 1,
    );
    await gateway.shard.rows('rollback');

    const idle = await until('nothing to be held and nothing to be unread', async () => {
      const at = await look();
      const lags = at.all('gateway_source_lag_messages', { source: kafkaId });
      return (
        at.sum('gateway_deliveries_held') === 0 &&
        lags.length === 2 &&
        lags.every(({ value }) => value === 0) &&
        at
      );
    });
    assert.is(idle.all('gateway_endpoint_slow').length, 0, 'the endpoint is let through again');
    assert.is(
      idle.all('gateway_endpoint_breaker_state').length,
      0,
      'too few requests have failed for a breaker to open',
    );
    assert.is(idle.all('gateway_source_lag_messages', { source: sqsId, partition: '' }).length, 1);

    const server = await scrape(gateway.serverPort);
    for (const [name, at] of [
      ['agent', idle],
      ['server', server],
    ] as const) {
      assert.is(at.sum('gateway_build_info', { process: name, node: process.version }), 1);
      for (const series of [
        'process_cpu_seconds_total',
        'process_resident_memory_bytes',
        'nodejs_heap_size_used_bytes',
      ])
        assert.ok(at.sum(series)! > 0, `${series} of the ${name}`);
      const age = Date.now() / 1000 - at.sum('process_start_time_seconds')!;
      assert.ok(age > 0 && age < 3600, `the ${name} started ${age} s ago`);
      const utilization = at.sum('nodejs_eventloop_utilization')!;
      assert.ok(utilization > 0 && utilization <= 1, `the ${name} is busy for ${utilization}`);
      assert.equal(
        at.all('nodejs_eventloop_lag_seconds').map(({ labels }) => labels['percentile']),
        ['50', '99', '100'],
      );
      assert.ok(
        at.sum('gateway_pool_connections', { state: 'busy' })! +
          at.sum('gateway_pool_connections', { state: 'idle' })! >
          0,
        name,
      );
      assert.is(at.sum('gateway_pool_connections', { state: 'waiting' }), 0);
    }

    // The server counts events of the API; a refused request is no event.
    assert.equal(ingested(server, 'api'), { total: 3, success: 3, error: 0 });
    assert.is(server.sum('gateway_ingest_duplicate_total', { source: 'api' }), 1);
    assert.is(server.sum('gateway_ingest_latency_count'), 2);
    const route = '/api/v1/projects/:project_id/events';
    assert.is(
      server.sum('gateway_api_requests_total', { method: 'POST', route, status: '201' }),
      2,
    );
    assert.is(
      server.sum('gateway_api_requests_total', { method: 'POST', route, status: '422' }),
      1,
    );
    assert.is(server.sum('gateway_api_request_duration_seconds_count', { route }), 4);
  },
);

shows(
  'a breaker that failed deliveries open is 2, 1 while its probe is under way, and gone when that succeeds',
  async () => {
    const breaker = (at: Exposition, series: string) =>
      at.sum(`gateway_endpoint_breaker_${series}`, { endpoint: brokenId });
    const stateIs = (state: number | undefined) =>
      until(
        `the breaker to be ${state}`,
        async () => breaker(await look(), 'state') === state,
      ).then(() => look());
    const postponed = (endpoint: string, reason: string) =>
      until(`deliveries postponed by ${reason}`, async () => {
        return (await look()).sum('gateway_deliveries_postponed_total', { endpoint, reason })! > 0;
      });
    await queues.send(queue, Array<string>(4).fill(message('broken')));
    await stateIs(2);
    // Counted once KV has answered, possibly after the state is exposed.
    await until('its trip to be counted', async () => breaker(await look(), 'trips_total') === 1);
    await stateIs(1);
    // More than wait in memory for the outcome of a probe.
    await queues.send(queue, Array<string>(10).fill(message('broken')));
    await postponed(brokenId, 'breaker');
    assert.is(broken.requests.length, 5, 'nothing is sent but the probe');
    probed();
    await stateIs(undefined);
    assert.is(breaker(await look(), 'trips_total'), 1);
    await queues.send(queue, Array<string>(4).fill(message('limited')));
    await postponed(limitedId, 'rate_limit');
  },
);

shows(
  'an agent takes over from one that died, drops old days, and shows how wrong its clock is and that a sample failed',
  async () => {
    const { shard } = gateway;
    const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);
    await shard.rows('select ensure_day($1::date)', [daysAgo(40).toISOString().slice(0, 10)]);
    const old = [daysAgo(40), daysAgo(400)].map((at) => ({
      value: message('good'),
      timestamp: String(at.getTime()),
    }));
    await broker.produce(topic, old);
    const finished = `select from event_deliveries where occurred_at < now() - interval '39 days' and status = 'success'`;
    await until('both to be recorded', async () => (await shard.rows(finished)).length === 2);
    await shard.rows('update events set accepted_at = occurred_at');
    await shard.rows('update event_deliveries set created_at = occurred_at');

    holdSlow();
    await queues.send(
      queue,
      Array.from({ length: 150 }, (_, n) => message('slow', { n })),
    );
    await until('deliveries postponed by slow', async () => {
      return (
        (await look()).sum('gateway_deliveries_postponed_total', {
          endpoint: slowId,
          reason: 'slow',
        })! > 0
      );
    });
    await agent.process.kill();
    gateway.agents.splice(gateway.agents.indexOf(agent), 1);
    await shard.rows('update agents set expires_at = now()');
    const [end = 0] = await broker.ends(topic);
    await broker.produce(
      topic,
      Array.from({ length: 3 }, (_, n) => ({ partition: 0, value: message('good', { n }) })),
    );
    await broker.trim(topic, 0, end + 2);

    const behind = 'const { now } = Date; Date.now = () => now() - 3_600_000;';
    agent = await gateway.startAgent([], {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(behind)}`,
    });
    await shard.rows('alter table metric_samples rename to away');
    await until(
      'a failed sample',
      async () =>
        (await look()).sum('gateway_metrics_sample_failures_total', { sample: 'postgres' })! > 0,
    );
    await shard.rows('alter table away rename to metric_samples');
    const at = await until('the other series', async () => {
      const at = await look();
      return ELSEWHERE.every((name) => above.has(name)) && at;
    }).catch((error: Error) => {
      const missing = ELSEWHERE.filter((name) => !above.has(name));
      throw new Error(`${error.message}; not above zero: ${missing.join(', ')}`);
    });
    assert.ok(Math.abs(at.sum('gateway_clock_offset_seconds')! - 3600) < 60);
    assert.ok(at.sum('gateway_deliveries_recovered_total')! >= 2, 'those that were under way');
    assert.is(at.sum('gateway_retention_partitions_dropped_total'), 1);
    assert.is(
      at.sum('gateway_retention_rows_deleted_total'),
      2,
      'the event of long ago and its delivery',
    );
  },
);

shows.run();
