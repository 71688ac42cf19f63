import type { SeriesName } from '#core/metrics/series';
import { endpoint } from '../support/endpoint.js';
import { kafka } from '../support/kafka.js';
import { kafkaSource, production, type Created, type Production } from '../support/production.js';
import { sqs } from '../support/sqs.js';

export const TOKEN = 'only-for-scrapers';

/** Series that remain zero under this load: `e2e/series` tests each above zero. */
export const ELSEWHERE: readonly SeriesName[] = [
  'gateway_clock_offset_seconds',
  'gateway_source_lag_messages',
  'gateway_source_lost_messages_total',
  'gateway_events_recovered_total',
  'gateway_deliveries_recovered_total',
  'gateway_metrics_sample_failures_total',
  'gateway_retention_partitions_dropped_total',
  'gateway_retention_rows_deleted_total',
  'gateway_retention_failures_total',
];

const transform = `function transform(payload) {
  if (payload.drop) return null;
  if (payload.spoilt) throw new Error('spoilt');
  const { type, endpoint, key, ...data } = payload;
  return { event_type: type, data, ...(endpoint ? { endpoint_id: endpoint } : {}), ...(key ? { idempotency_key: key } : {}) };
}`;

/** Enough to open the breaker of their endpoint; more would wait for it for minutes. */
const HOPELESS_WAVES = 6;

const spinning = 'function transform() { for (;;); }';

/** A gateway with metrics that require a token, and work of every kind for its agents. */
export interface Watched {
  readonly gateway: Production;
  /** Starts two agents, and fills the queue of an endpoint that never answers. */
  startAgents(): Promise<void>;
  /** Sends a few messages and events of every kind, different ones each time. */
  work(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts it without agents: a topic, a queue with a transform function and one with a function that
 * never ends, and endpoints that answer, fail sometimes, always fail, and never answer.
 */
export async function watched(): Promise<Watched> {
  const settings = {
    enable_feature_flag: ['pullmetrics'],
    // Opens soon for the failing endpoint, and probes often.
    circuit_breaker: {
      minimum_request_count: 4,
      failure_threshold: 90,
      error_timeout: 2,
      max_error_timeout: 2,
    },
    // Pauses the source with the endless function, for longer than the test.
    transform: { deadline_ms: 250, pause_overruns: 2, pause_seconds: 600 },
    metrics: {
      enabled: true,
      metrics_backend: 'pullmetrics',
      bearer_token: TOKEN,
      // So few that one series exceeds it and is folded.
      max_label_sets: 8,
      pullmetrics_metrics: { sample_time: 1 },
    },
  };
  const [broker, queues, good, shaky, hopeless, silent] = await Promise.all([
    kafka(),
    sqs(),
    endpoint(),
    endpoint({ answer: (_request, number) => ({ status: number % 2 === 0 ? 503 : 200 }) }),
    endpoint({ answer: { status: 500 } }),
    endpoint({ answer: { hang: true } }),
  ]);
  const close = async (gateway?: Production) => {
    // A hanging request ends with its endpoint, so that agents need not wait for it.
    await Promise.all([good, shaky, hopeless, silent].map((receiver) => receiver.close()));
    await gateway?.close();
    await queues.close();
    await broker.close();
  };
  const gateway = await production({ settings, agents: 0 }).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  try {
    const receives = async (
      type: string,
      url: string,
      retries: number,
      more: object = {},
    ): Promise<string> => {
      const strategy = { type: 'linear', duration: 1, retry_count: retries };
      const { uid } = await gateway.api('POST', '/endpoints', {
        name: type,
        url,
        strategy,
        ...more,
      });
      await gateway.api('POST', '/subscriptions', {
        name: type,
        endpoint_id: uid,
        filter_config: { event_types: [type] },
      });
      return uid;
    };
    await receives('good', good.url, 0);
    await receives('shaky', shaky.url, 3);
    await receives('hopeless', hopeless.url, 1);
    const silentId = await receives('silent', silent.url, 0, { concurrency: 1, http_timeout: 60 });
    const queueOf = async (name: string, bodyFunction: string) => {
      const queue = queues.queue();
      await gateway.api<Created>('POST', '/sources', {
        name,
        type: 'pub_sub',
        pub_sub: { type: 'sqs', workers: 1, sqs: queues.connection(queue.name) },
        body_function: bodyFunction,
      });
      return (messages: readonly object[]) =>
        queues.send(
          queue,
          messages.map((message) => JSON.stringify(message)),
        );
    };
    await kafkaSource(gateway, broker, 1);
    const send = await queueOf('orders', transform);
    const spin = await queueOf('spinning', spinning);
    const startAgents = async () => {
      await Promise.all([gateway.startAgent(), gateway.startAgent()]);
      await spin(Array.from({ length: 4 }, (_, n) => ({ n })));
      // More than agents hold for such a slow endpoint.
      await send(
        Array.from({ length: 250 }, (_, n) => ({ type: 'silent', endpoint: silentId, n })),
      );
    };
    let wave = 0;
    const work = async () => {
      const key = `key-${++wave}`;
      await send([
        ...['good', 'good', 'shaky', ...(wave <= HOPELESS_WAVES ? ['hopeless'] : [])].map(
          (type, n) => ({ type, wave, n }),
        ),
        { type: 'good', key },
        { type: 'good', key },
        { drop: true },
        { spoilt: true },
      ]);
      // The server routes the first event, the queues the second.
      for (const type of ['good', 'unwanted'])
        await gateway.api('POST', '/events', { event_type: type, data: { wave } });
      if (wave <= HOPELESS_WAVES)
        await fetch(`http://127.0.0.1:${gateway.serverPort}/api/v1/projects`, {
          headers: { authorization: 'Bearer wrong' },
        });
    };
    return { gateway, startAgents, work, close: () => close(gateway) };
  } catch (error) {
    await close(gateway);
    throw error;
  }
}
