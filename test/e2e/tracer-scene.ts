import crypto from 'node:crypto';
import { endpoint } from '../support/endpoint.js';
import { gateway as start, type Ending, type GatewayProcess } from '../support/gateway.js';
import { freePort } from '../support/ports.js';
import { production, type Production } from '../support/production.js';
import { sqs, type QueueMessage } from '../support/sqs.js';
import { until } from '../support/until.js';
import { producer, type Producer } from './traced.js';

const SECRET = 'planted-secret';
const PAYLOAD = 'planted-payload';

/** A gateway with a traced server, and traceable work for its agents. */
export interface TracerScene {
  readonly gateway: Production;
  /**
   * Texts that must not reach any tracing back end: payloads, header values, URLs and responses of
   * endpoints, and secrets.
   */
  readonly planted: readonly string[];
  /** The trace of the delivered message. */
  readonly paid: Producer;
  /** The trace of a message with an unsampled producer. */
  readonly quiet: Producer;
  readonly source: string;
  /** URL of the queue's server. */
  readonly queues: string;
  /** URL of the endpoint that answers with success. */
  readonly endpoint: string;
  readonly failingEndpoint: string;
  /**
   * Starts an agent with these flags, variables and settings, and waits until it is ready; end it
   * with `finish`.
   */
  agent(options?: {
    flags?: readonly string[];
    env?: Readonly<Record<string, string>>;
    tracer?: object;
  }): Promise<GatewayProcess>;
  /** Sends SIGTERM; measures the time to exit. */
  finish(agent: GatewayProcess): Promise<Ending & { seconds: number }>;
  /**
   * Makes an agent read four messages: two are delivered, one is quarantined, and one's endpoint
   * fails. Call it once, while an agent runs.
   */
  work(): Promise<void>;
  /**
   * Makes agents read messages of new traces from a new queue, and waits until `delivered` are
   * delivered and `failed` have failed.
   */
  read(delivered: number, failed: number): Promise<void>;
  /** Creates an event over the API, and waits for its delivery. */
  deliver(): Promise<void>;
  /**
   * Registers a back end to be closed with the scene: one left open by a failed test would keep its
   * file from ending.
   */
  closing<BackEnd extends { close(): void | Promise<void> }>(
    backEnd: Promise<BackEnd>,
  ): Promise<BackEnd>;
  close(): Promise<void>;
}

/**
 * @param options.tracer the server's setting `tracer`
 * @param options.settings of all processes
 */
export async function tracerScene({
  tracer,
  settings = {},
}: {
  tracer: object;
  settings?: object;
}): Promise<TracerScene> {
  const encryptionKey = crypto.randomBytes(32).toString('base64');
  const queues = await sqs();
  const receiver = await endpoint();
  const failing = await endpoint({ answer: { status: 500, body: PAYLOAD } });
  const gateway = await production({
    agents: 0,
    settings: { encryption_key: encryptionKey, ...settings, tracer },
  });
  const strategy = { type: 'linear', duration: 600, retry_count: 1 };
  const authentication = {
    type: 'api_key',
    api_key: { header_name: 'x-key', header_value: SECRET },
  };
  const made = async (url: string, type: string) => {
    const { uid } = await gateway.api('POST', '/endpoints', {
      name: type,
      url: `${url}/${SECRET}?token=${SECRET}`,
      strategy,
      authentication,
    });
    await gateway.api('POST', '/subscriptions', {
      name: type,
      endpoint_id: uid,
      filter_config: { event_types: [type] },
    });
    return uid;
  };
  await made(receiver.url, 'order.paid');
  const failingEndpoint = await made(failing.url, 'order.failed');
  const source = async () => {
    const queue = queues.queue();
    const { uid } = await gateway.api('POST', '/sources', {
      name: queue.name,
      type: 'pub_sub',
      pub_sub: { type: 'sqs', workers: 1, sqs: queues.connection(queue.name) },
    });
    return {
      uid,
      send: (messages: readonly (string | QueueMessage)[]) => queues.send(queue, messages),
    };
  };
  const orders = await source();
  const agents: GatewayProcess[] = [];
  const backEnds: { close(): void | Promise<void> }[] = [];
  const [paid, quiet] = [producer(), producer({ sampled: false })];
  const message = (type: string, attributes: Record<string, string> = {}) => ({
    body: JSON.stringify({
      event_type: type,
      data: { card: PAYLOAD },
      custom_headers: { 'x-own': SECRET },
    }),
    attributes: { ...attributes, authorization: SECRET },
  });
  const deliver = async () => {
    const before = receiver.requests.length;
    await gateway.api('POST', '/events', { event_type: 'order.paid', data: { card: PAYLOAD } });
    await receiver.received(before + 1);
  };
  return {
    gateway,
    planted: [SECRET, PAYLOAD, encryptionKey, queues.secretKey],
    paid,
    quiet,
    source: orders.uid,
    queues: queues.endpoint,
    endpoint: receiver.url,
    failingEndpoint,
    deliver,
    agent: async ({ flags = [], env = {}, tracer: own } = {}) => {
      const port = await freePort();
      const config = {
        encryption_key: encryptionKey,
        database: gateway.database.connection,
        kv: gateway.kv.connection,
        server: { http: { bind: '127.0.0.1' } },
        delivery: { allowed_networks: ['127.0.0.0/8'] },
        source: { allowed_networks: ['127.0.0.0/8'] },
        instance_ingest_rate: 0,
        ...settings,
        ...(own ? { tracer: own } : {}),
      };
      const agent = start(['agent', '--port', String(port), ...flags], { config, env });
      agents.push(agent);
      await agent.healthy(port);
      return agent;
    },
    finish: async (agent) => {
      const startedAt = Date.now();
      const ending = await agent.terminate({ withinMs: 15_000 });
      return { ...ending, seconds: (Date.now() - startedAt) / 1000 };
    },
    work: async () => {
      await orders.send([
        message('order.paid', { traceparent: paid.traceparent }),
        message('order.paid', { traceparent: quiet.traceparent }),
        `{"event_type":"order.paid","data":{"card":"${PAYLOAD}","key":${SECRET}}`,
        message('order.failed'),
      ]);
      await receiver.received(2);
      await failing.received(1);
      await until('everything to be recorded', async () => {
        const rows = (table: string) => gateway.database.rows(`select from ${table}`);
        return (
          (await rows('delivery_attempts')).length >= 3 &&
          (await rows('quarantined_messages')).length === 1
        );
      });
    },
    read: async (delivered, failed) => {
      const [received, refused] = [
        receiver.requests.length + delivered,
        failing.requests.length + failed,
      ];
      const { send } = await source();
      await send(
        Array.from({ length: delivered + failed }, (_, at) =>
          message(at < failed ? 'order.failed' : 'order.paid'),
        ),
      );
      await Promise.all([receiver.received(received), failing.received(refused)]);
    },
    closing: async (opening) => {
      const backEnd = await opening;
      backEnds.push(backEnd);
      return backEnd;
    },
    close: async () => {
      await Promise.all(agents.map((agent) => agent.kill()));
      await Promise.all(backEnds.map(async (backEnd) => backEnd.close()));
      await gateway.close();
      await Promise.all([receiver.close(), failing.close(), queues.close()]);
    },
  };
}
