import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import kafkajs, { type Producer } from 'kafkajs';
import { loopback } from '../support/ports.js';

export interface Order {
  readonly attack: string;
  readonly port: number;
  readonly key: string;
  readonly projectId: string;
  readonly brokers: readonly string[];
  /** The attacker's topic, with four partitions. */
  readonly topic: string;
  readonly neighbourId: string;
  /** The size relative to the long form. */
  readonly scale: number;
}

/**
 * Counts of responses by status and code, such as `422 project_full`, and of the attack's
 * observations.
 */
export type Evidence = Readonly<Record<string, number>>;

export interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  readonly data: { readonly uid: string; readonly [field: string]: unknown };
  readonly text: string;
}

const CONNECTIONS = 500;
const AT_A_TIME = 200;

export class Tenant {
  readonly evidence: Record<string, number> = {};
  readonly #dispatchers = new Map<string, Agent>();
  #producer: Promise<Producer> | undefined;

  constructor(
    readonly order: Order,
    readonly signal: AbortSignal,
  ) {}

  get isOver(): boolean {
    return this.signal.aborted;
  }

  count(what: string, by = 1): void {
    this.evidence[what] = (this.evidence[what] ?? 0) + by;
  }

  /**
   * Calls the management API; the path is relative to the project. Sends a string body unchanged.
   * Counts the response, and resolves for any status.
   */
  async call(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: unknown,
  ): Promise<Answer> {
    const { port, projectId } = this.order;
    return this.ask(method, `http://127.0.0.1:${port}/api/v1/projects/${projectId}${path}`, body);
  }

  /**
   * `call` for any URL and credentials, from one of several addresses: limits by address do not
   * affect the neighbour.
   */
  async ask(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    url: string,
    body?: unknown,
    {
      authorization = `Bearer ${this.order.key}`,
      address = '127.0.0.3',
    }: { authorization?: string; address?: string } = {},
  ): Promise<Answer> {
    try {
      const answer = await request(url, {
        method,
        dispatcher: this.#dispatcherAt(address),
        headers: {
          authorization,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await answer.body.text();
      const { code, data } = JSON.parse(text.startsWith('{') ? text : '{}') as {
        code?: string;
        data?: Answer['data'];
      };
      this.count(code === undefined ? String(answer.statusCode) : `${answer.statusCode} ${code}`);
      return { status: answer.statusCode, code, data: data ?? { uid: '' }, text };
    } catch (error) {
      this.count(`no answer: ${(error as { code?: string }).code ?? (error as Error).message}`);
      return { status: 0, code: undefined, data: { uid: '' }, text: '' };
    }
  }

  #dispatcherAt(localAddress: string): Agent {
    let dispatcher = this.#dispatchers.get(localAddress);
    if (!dispatcher) {
      dispatcher = new Agent({
        connections: CONNECTIONS,
        headersTimeout: 120_000,
        bodyTimeout: 120_000,
        localAddress,
      });
      this.#dispatchers.set(localAddress, dispatcher);
    }
    return dispatcher;
  }

  /**
   * Repeats a step until the attack is over.
   * @param perSecond Infinity for as fast as 200 concurrent steps allow
   */
  async repeat(perSecond: number, step: (n: number) => Promise<unknown>): Promise<void> {
    let n = 0;
    if (perSecond === Infinity) {
      const one = async () => {
        while (!this.isOver) await step(n++);
      };
      await Promise.all(Array.from({ length: AT_A_TIME }, one));
      return;
    }
    const running = new Set<Promise<unknown>>();
    const startedAtMs = performance.now();
    while (!this.isOver) {
      if (running.size < AT_A_TIME) {
        const one = step(n++).finally(() => running.delete(one));
        running.add(one);
      }
      await sleep(Math.max(0, startedAtMs + (n * 1000) / perSecond - performance.now()));
    }
    await Promise.all(running);
  }

  async endpoint(url: string, fields: object = {}): Promise<string> {
    return (await this.call('POST', '/endpoints', { name: 'e', url, ...fields })).data.uid;
  }

  async subscribe(endpointId: string, filterConfig: object = {}): Promise<Answer> {
    return this.call('POST', '/subscriptions', {
      name: 's',
      endpoint_id: endpointId,
      filter_config: filterConfig,
    });
  }

  async source(fields: object = {}): Promise<string> {
    const { brokers, topic: topicName } = this.order;
    const kafka = { brokers, topic_name: topicName, consumer_group_id: `attack-${topicName}` };
    return (
      await this.call('POST', '/sources', {
        name: 's',
        type: 'pub_sub',
        pub_sub: { type: 'kafka', kafka },
        ...fields,
      })
    ).data.uid;
  }

  async produce(messages: readonly string[]): Promise<void> {
    this.#producer ??= (async () => {
      const producer = new kafkajs.Kafka({
        brokers: [...this.order.brokers],
        logLevel: kafkajs.logLevel.NOTHING,
      }).producer();
      await producer.connect();
      return producer;
    })();
    await (
      await this.#producer
    ).send({ topic: this.order.topic, messages: messages.map((value) => ({ value })) });
    this.count('messages', messages.length);
  }

  /** Starts a server of the attacker. Returns its URL. */
  async listen(answer: http.RequestListener): Promise<string> {
    const server = http.createServer((incoming, response) => {
      this.count('requests to the attacker');
      answer(incoming, response);
    });
    return `http://127.0.0.1:${await loopback(server)}/`;
  }
}
