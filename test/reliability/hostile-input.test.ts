// deadline: 240 s
import fs from 'node:fs';
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint, type Endpoint, type ReceivedRequest } from '../support/endpoint.js';
import {
  CANARY,
  FORGED,
  hostileMessages,
  MAX_BYTES,
  type HostileMessage,
  type Via,
} from '../support/hostile-messages.js';
import { kafka, type KafkaBroker } from '../support/kafka.js';
import { kafkaSource, production, subscribed, type Production } from '../support/production.js';
import { seed } from '../support/seed.js';
import { sqs, type Queues } from '../support/sqs.js';
import { until } from '../support/until.js';

const hostile = suite('reliability/hostile-input');

/**
 * The number of malformed messages: 2,500 in all, times TEST_SCALE, with a good message after every
 * tenth.
 */
const SCALE = Number(process.env['TEST_SCALE'] ?? 1);
const COUNTS: Readonly<Record<Via, number>> = {
  kafka: 1_000 * SCALE,
  sqs: 500 * SCALE,
  api: 1_000 * SCALE,
};
/** The first message number of each channel. */
const FROM: Readonly<Record<Via, number>> = { kafka: 0, sqs: 100_000, api: 200_000 };
const API_AT_A_TIME = 16;
const LOG_LINES_MAX = 100;
const PATIENCE = { withinMs: 120_000, everyMs: 100 };

let broker: KafkaBroker;
let queues: Queues;
let receiver: Endpoint;
let gateway: Production;
let webhook: Webhook;

hostile.before(async () => {
  console.log(`\n  seed ${seed} (TEST_SEED=${seed} makes the same messages)`);
  [broker, queues, receiver] = await Promise.all([kafka(), sqs(), endpoint()]);
  gateway = await production({
    settings: { ingest: { max_message_bytes: MAX_BYTES }, api_rate_limit: 0 },
  });
  webhook = new Webhook((await subscribed(gateway, receiver.url)).secret);
});

hostile.after(async () => {
  await gateway?.close();
  await Promise.all([receiver?.close(), queues?.close(), broker?.close()]);
});

function mixed(via: Via): HostileMessage[] {
  const count = COUNTS[via] + COUNTS[via] / 10;
  return hostileMessages(via, { seed, count, from: FROM[via] }).map((message, k) => {
    if (k % 11 !== 10) return message;
    const data = `{"n":${FROM[via] + k}}`;
    return {
      kind: 'good',
      body: Buffer.from(`{"event_type":"order.created","data":${data}}`),
      data,
    };
  });
}

function numberOf({ body }: ReceivedRequest): number {
  return Number(/"n":(\d+)/.exec(body.toString())?.[1]);
}

/**
 * Waits until every expected message has arrived, and checks every request: the exact bytes of
 * `data`, the signature, and no forged header.
 */
async function allDelivered(via: Via, messages: readonly HostileMessage[]): Promise<void> {
  const expected = new Map(
    messages.flatMap(({ data }, k) => (data === null ? [] : [[FROM[via] + k, data] as const])),
  );
  const mine: ReceivedRequest[] = [];
  let looked = 0;
  const all = () => {
    for (const request of receiver.requests.slice(looked))
      if (expected.has(numberOf(request))) mine.push(request);
    looked = receiver.requests.length;
    return mine.length >= expected.size;
  };
  await until(`${expected.size} deliveries of ${via}`, all, PATIENCE);
  const arrived = new Set<number>();
  for (const request of mine) {
    const n = numberOf(request);
    const { kind } = messages[n - FROM[via]]!;
    arrived.add(n);
    assert.is(request.body.toString(), expected.get(n), kind);
    assert.not.throws(() => webhook.verify(request.body, { ...request.headers }), kind);
    const names = request.rawHeaders
      .filter((_, k) => k % 2 === 0)
      .map((name) => name.toLowerCase());
    assert.is(
      new Set(names).size,
      names.length,
      `${kind}: a header stands twice in ${names.join(', ')}`,
    );
    for (const name of ['x-evil', 'te', 'trailer', 'upgrade', 'transfer-encoding', 'expect'])
      assert.not.ok(names.includes(name), `${kind}: ${name}`);
    assert.not.ok(request.rawHeaders.includes(FORGED), kind);
    if (kind === 'headers with names of JavaScript')
      for (const name of ['__proto__', 'constructor', 'tostring'])
        assert.ok(names.includes(name), name);
  }
  assert.is(arrived.size, expected.size);
}

/**
 * Waits until exactly the refusable messages are in quarantine, each with its bytes and a sentence.
 */
async function allQuarantined(source: string, messages: readonly HostileMessage[]): Promise<void> {
  const expected = messages.filter(({ data }) => data === null);
  const { rows: ask } = gateway.database;
  const [{ id } = { id: '' }] = await ask<{ id: string }>(
    'select id from sources where name = $1',
    [source],
  );
  const arrived = async () =>
    (
      await ask<{ n: number }>(
        'select count(*)::int as n from quarantined_messages where source_id = $1',
        [id],
      )
    )[0]!.n >= expected.length;
  await until(`${expected.length} messages in quarantine`, arrived, PATIENCE);
  const rows = await ask<{ raw: Buffer; code: string; reason: string }>(
    'select raw, code, reason from quarantined_messages where source_id = $1',
    [id],
  );
  const sorted = (bodies: readonly Buffer[]) =>
    bodies.map((body) => body.toString('base64')).sort();
  assert.equal(sorted(rows.map(({ raw }) => raw)), sorted(expected.map(({ body }) => body)));
  for (const { code, reason } of rows) {
    assert.match(reason, /^The (message|transform) [^]+\.$/);
    assert.is.not(code, 'database_refused', reason);
  }
}

interface Use {
  readonly rss: number;
  readonly handles: number;
}

/** Memory and open files of a process; 0 on systems without /proc. */
function use(pid: number): Use {
  if (!fs.existsSync(`/proc/${pid}/fd`)) return { rss: 0, handles: 0 };
  const rss =
    Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
  return { rss, handles: fs.readdirSync(`/proc/${pid}/fd`).length };
}

/** Fails if a gateway process grows during `work`, or ends. */
async function leakless(work: () => Promise<void>): Promise<void> {
  const watched = { agent: gateway.agents[0]!.process, server: gateway.server };
  const before = { agent: use(watched.agent.pid), server: use(watched.server.pid) };
  await work();
  for (const name of ['agent', 'server'] as const) {
    const after = use(watched[name].pid);
    console.log(
      `  ${name}: ${Math.round(before[name].rss / 1e6)} to ${Math.round(after.rss / 1e6)} MB, ${before[name].handles} to ${after.handles} handles`,
    );
    assert.ok(after.rss - before[name].rss < 200e6, `${name} grew`);
    // Connections are kept for a while, up to the concurrency of an endpoint, but not one per
    // message.
    assert.ok(after.handles - before[name].handles < 200, `${name} holds on to handles`);
  }
}

hostile(
  'malformed messages of a topic are quarantined, odd ones arrive unchanged, and none stands in the way of the good ones',
  async () => {
    const topic = await kafkaSource(gateway, broker, 2, { name: 'topic' });
    const messages = mixed('kafka');
    await leakless(async () => {
      const records = messages.map(({ body, headers }, k) => ({
        value: body.length === 0 && k % 2 ? null : body,
        ...(headers ? { headers } : {}),
      }));
      await broker.produce(topic, records);
      await allQuarantined('topic', messages);
      await allDelivered('kafka', messages);
    });
  },
);

hostile('the same of a queue', async () => {
  const queue = queues.queue();
  const pubSub = { type: 'sqs', workers: 2, sqs: queues.connection(queue.name) };
  await gateway.api('POST', '/sources', { name: 'queue', type: 'pub_sub', pub_sub: pubSub });
  const messages = mixed('sqs');
  await leakless(async () => {
    await queues.send(
      queue,
      messages.map(({ body }) => body.toString()),
    );
    await allQuarantined('queue', messages);
    await allDelivered('sqs', messages);
    await until('the queue to be empty', () => {
      const { ready, inFlight } = queues.depth(queue);
      return ready + inFlight === 0;
    });
  });
});

hostile('the API answers malformed requests with 4xx and a reason', async () => {
  const messages = mixed('api');
  const answers = new Map<string, number>();
  await leakless(async () => {
    let next = 0;
    const post = async () => {
      for (let k = next++; k < messages.length; k = next++) {
        const { kind, body, data } = messages[k]!;
        const response = await fetch(
          `http://127.0.0.1:${gateway.serverPort}/api/v1/projects/${gateway.projectId}/events`,
          {
            method: 'POST',
            headers: {
              authorization: `Bearer ${gateway.apiKey}`,
              'content-type': 'application/json',
            },
            body: new Uint8Array(body),
          },
        );
        const answer = (await response.json()) as {
          status: boolean;
          message: string;
          code?: string;
        };
        const told = `${kind}: ${response.status} ${answer.message}: ${body.toString().slice(0, 300)}`;
        answers.set(answer.code ?? 'created', (answers.get(answer.code ?? 'created') ?? 0) + 1);
        if (data === null) {
          assert.ok(response.status >= 400 && response.status < 500, told);
          assert.ok(answer.code && answer.message.length > 10, told);
        } else assert.is(response.status, 201, told);
      }
    };
    await Promise.all(Array.from({ length: API_AT_A_TIME }, post));
    await allDelivered('api', messages);
  });
  console.log(`  ${[...answers].map(([code, count]) => `${code} ${count}`).join(', ')}`);
});

hostile(
  'a transform function rounds what JavaScript rounds, and changes nothing else',
  async () => {
    const transformed = {
      body_function:
        'function transform(payload) { return { event_type: "transformed", data: payload }; }',
    };
    const topic = await kafkaSource(gateway, broker, 1, { name: 'transformed', ...transformed });
    const given = [
      '{"n":300001,"a":9007199254740993}',
      '{"n":300002,"a":1.10}',
      '{"n":300003,"a":"\\ud800\\u0000","__proto__":{"x":1},"b":9007199254740991}',
    ];
    await broker.produce(topic, given);
    const arrived = await until(
      'three deliveries',
      () => {
        const found = receiver.requests
          .filter((request) => numberOf(request) > 300_000)
          .map(({ body }) => body.toString());
        return found.length === given.length && found.sort();
      },
      PATIENCE,
    );
    assert.equal(arrived, [
      '{"n":300001,"a":9007199254740992}',
      '{"n":300002,"a":1.1}',
      '{"n":300003,"a":"\\ud800\\u0000","__proto__":{"x":1},"b":9007199254740991}',
    ]);
  },
);

hostile('the logs stay short and tell nothing of the content', () => {
  for (const { stdout, stderr } of [
    gateway.server,
    ...gateway.agents.map(({ process }) => process),
  ]) {
    const lines = (stdout + stderr).split('\n');
    assert.not.ok(lines.some((line) => line.includes(CANARY) || line.includes(FORGED)));
    assert.ok(lines.length < LOG_LINES_MAX, lines.slice(0, 5).join('\n'));
  }
});

hostile.run();
