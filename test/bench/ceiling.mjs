// @ts-check
// The upper bound for the gateway: the minimum of a durable happy path, handwritten in one process.
// Kafka → one statement that inserts a batch of events and deliveries, unique by coordinates →
// signed requests → one statement that records a batch → offsets, committed only after the insert.
// No routing, retries, transform, quarantine, plugins, leases, metrics or KV. Environment: BROKERS,
// TOPIC, GROUP, RECEIVER (URL), DATABASE_URL.
import { Kafka, logLevel } from 'kafkajs';
import { createHmac, randomUUID } from 'node:crypto';
import pg from 'pg';
import { Agent } from 'undici';

const { BROKERS = '', TOPIC = '', GROUP = '', RECEIVER = '', DATABASE_URL = '' } = process.env;
const CONNECTIONS = 100;
const BATCH = 500;
const STATEMENTS = 3;
const OUTSTANDING_MAX = 6_000;
const RECORD_EVERY_MS = 5;
const COMMIT_EVERY_MS = 100;

// Several processes may start at once.
const schema = `
  select pg_advisory_xact_lock(1);
  create table if not exists events (
    id uuid primary key, source_id text not null, part int not null, pos bigint not null, event_type text not null, data jsonb not null,
    created_at timestamptz not null default now(), unique (source_id, part, pos));
  create table if not exists deliveries (
    id uuid primary key, event_id uuid not null, endpoint_id text not null, status text not null, attempts int not null default 0,
    created_at timestamptz not null default now(), updated_at timestamptz not null default now());
  create index if not exists deliveries_event on deliveries (event_id);
  create index if not exists deliveries_endpoint on deliveries (endpoint_id, created_at desc);
  create table if not exists attempts (
    id uuid primary key, delivery_id uuid not null, http_status int, headers jsonb, body text, duration_ms int,
    created_at timestamptz not null default now());
  create index if not exists attempts_delivery on attempts (delivery_id);`;

const columns = (/** @type {number} */ count, from = 1) =>
  Array.from({ length: count }, (_, k) => `string_to_array($${from + k}, E'\\x1e')`).join(', ');

const insert = `
  with u as materialized (select * from unnest(${columns(6)}) as u(event, part, pos, type, data, delivery)),
  e as (insert into events (id, source_id, part, pos, event_type, data)
        select event::uuid, 'ceiling', part::int, pos::bigint, type, data::jsonb from u on conflict do nothing returning id),
  d as (insert into deliveries (id, event_id, endpoint_id, status)
        select delivery::uuid, event::uuid, 'receiver', 'processing' from u join e on e.id = u.event::uuid returning 1)
  select array(select id::text from e) as ids from (select count(*) from d) c`;

const record = `
  with a as (insert into attempts (id, delivery_id, http_status, headers, body, duration_ms)
             select * from unnest($1::uuid[], $2::uuid[], $3::int[], $4::jsonb[], $5::text[], $6::int[]))
  update deliveries d set status = u.status, attempts = attempts + 1, updated_at = now()
  from unnest($2::uuid[], $7::text[]) u(id, status) where d.id = u.id`;

const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 2 * STATEMENTS });
await pool.query(schema);

/**
 * @typedef {{ event: string, delivery: string, part: number, pos: string, type: string, data:
 * string }} Held
 */

// Delivery.
const { origin, pathname } = new URL(RECEIVER);
const agent = new Agent({ connections: CONNECTIONS, pipelining: 1 });
const key = Buffer.alloc(32, 7);
/** @type {Held[]} */
let waiting = [];
/** @type {[string, string, number, string, string, number, string][]} */
const done = [];
let underWay = 0;
let outstanding = 0;
let recording = 0;
/** @type {(() => void)[]} */
const roomWaiters = [];

function pump() {
  while (underWay < CONNECTIONS) {
    const next = waiting[head];
    if (!next) break;
    head++;
    send(next);
  }
  if (head > 4096) {
    waiting = waiting.slice(head);
    head = 0;
  }
}
let head = 0;

/** @param {Held} held */
function send(held) {
  underWay++;
  const beganMs = performance.now();
  const stamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', key)
    .update(`${held.delivery}.${stamp}.`)
    .update(held.data)
    .digest('base64');
  let status = 0;
  let body = '';
  /** @type {Record<string, string>} */
  const answer = {};
  const end = () => {
    underWay--;
    done.push([
      randomUUID(),
      held.delivery,
      status,
      JSON.stringify(answer),
      body,
      Math.round(performance.now() - beganMs),
      status === 200 ? 'success' : 'failure',
    ]);
    pump();
    if (done.length >= BATCH) flush();
  };
  agent.dispatch(
    {
      origin,
      path: pathname,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'webhook-id': held.delivery,
        'webhook-timestamp': stamp,
        'webhook-signature': `v1,${signature}`,
      },
      body: held.data,
    },
    {
      onConnect() {},
      onHeaders(code, raw) {
        status = code;
        for (let k = 0; k + 1 < raw.length; k += 2) answer[String(raw[k])] = String(raw[k + 1]);
        return true;
      },
      onData(chunk) {
        body += chunk.toString('utf8');
        return true;
      },
      onComplete: end,
      onError: end,
    },
  );
}

function flush() {
  while (done.length > 0 && recording < STATEMENTS) {
    const batch = done.splice(0, BATCH);
    const arrays = Array.from({ length: 7 }, (_, k) => batch.map((row) => row[k]));
    recording++;
    void pool.query({ name: 'record', text: record, values: arrays }).then(() => {
      recording--;
      outstanding -= batch.length;
      if (outstanding < OUTSTANDING_MAX) for (const wake of roomWaiters.splice(0)) wake();
    });
  }
}
setInterval(flush, RECORD_EVERY_MS);

// Ingest.
const kafka = new Kafka({ clientId: 'ceiling', brokers: [BROKERS], logLevel: logLevel.NOTHING });
const consumer = kafka.consumer({ groupId: GROUP, maxWaitTimeInMs: 20, minBytes: 1 });
await consumer.connect();
await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
/** @type {Map<number, string>} */
const settled = new Map();
const commit = async () => {
  const offsets = [...settled].map(([partition, offset]) => ({ topic: TOPIC, partition, offset }));
  settled.clear();
  // Fails while another process joins, which then reads the messages again and skips them.
  if (offsets.length > 0) await consumer.commitOffsets(offsets).catch(() => undefined);
};
const committing = setInterval(() => void commit(), COMMIT_EVERY_MS);

/** @param {Held[]} held */
async function store(held) {
  outstanding += held.length;
  const values = [
    held.map((h) => h.event),
    held.map((h) => h.part),
    held.map((h) => h.pos),
    held.map((h) => h.type),
    held.map((h) => h.data),
    held.map((h) => h.delivery),
  ];
  const { rows } = await pool.query({
    name: 'insert',
    text: insert,
    values: values.map((column) => column.join('\x1e')),
  });
  const ids = rows[0].ids.length === held.length ? null : new Set(rows[0].ids);
  const fresh = ids ? held.filter((h) => ids.has(h.event)) : held;
  outstanding -= held.length - fresh.length;
  waiting.push(...fresh);
  pump();
}

await consumer.run({
  autoCommit: false,
  eachBatchAutoResolve: false,
  partitionsConsumedConcurrently: STATEMENTS,
  eachBatch: async ({ batch, resolveOffset, heartbeat }) => {
    for (let from = 0; from < batch.messages.length; from += BATCH) {
      while (outstanding >= OUTSTANDING_MAX)
        await new Promise((resolve) => roomWaiters.push(() => resolve(undefined)));
      const slice = batch.messages.slice(from, from + BATCH);
      await store(
        slice.map(({ value, offset }) => {
          const { event_type: type, data } = JSON.parse(String(value));
          return {
            event: randomUUID(),
            delivery: randomUUID(),
            part: batch.partition,
            pos: offset,
            type,
            data: JSON.stringify(data),
          };
        }),
      );
      const last = /** @type {{ offset: string }} */ (slice.at(-1)).offset;
      resolveOffset(last);
      settled.set(batch.partition, String(BigInt(last) + 1n));
      await heartbeat();
    }
  },
});

process.on('SIGTERM', async () => {
  clearInterval(committing);
  consumer.pause([{ topic: TOPIC }]);
  while (outstanding > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  await commit();
  await consumer.disconnect();
  process.exit(0);
});
