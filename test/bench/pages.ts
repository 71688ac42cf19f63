// Measures the API calls of each page of the dashboard, in a project with many deliveries and
// endpoints. Prints the median and the p95 of each call. Run: npm run bench -- pages
// [--deliveries 1000000] [--endpoints 10000] [--calls 20]
import os from 'node:os';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { countRequests } from '#agent/flow-control/breaker-record';
import { encodeValue } from '#store/kv/versions';
import { makeProject, startApi, type Api } from '../server/api.js';
import { median, ms, round } from './figures.js';

const { values } = parseArgs({
  options: {
    deliveries: { type: 'string', default: '1000000' },
    endpoints: { type: 'string', default: '10000' },
    calls: { type: 'string', default: '20' },
  },
});
const deliveries = Number(values.deliveries);
const endpoints = Number(values.endpoints);
const calls = Number(values.calls);
/** Calls that are slower than this are marked. */
const SLOW_MS = 100;
const DAYS = 30;

const api = await startApi({ file: { kv: { type: 'in-memory' } } });
try {
  const { id, path, key } = await makeProject(api, { name: 'Orders' });
  const startedAtMs = performance.now();
  await fill(api, id);
  const { rows } = await api.db.pool.query<{ server_version: string }>('show server_version');
  console.log(
    `node ${process.version}, Postgres ${rows[0]?.server_version ?? ''}, ${os.cpus().length} cores; ${round(deliveries)} deliveries in ${DAYS} days to ${round(endpoints)} endpoints, filled in ${round((performance.now() - startedAtMs) / 1000)} s`,
  );
  console.log(`\n| Page | Call | Median | p95 |\n|---|---|---|---|`);
  for (const [page, call, query] of await callsOf(api, path)) await measure(page, call, query, key);

  async function measure(page: string, call: string, query: string, key: string): Promise<void> {
    const times: number[] = [];
    // The first calls make the plans and fill the caches.
    for (let k = -6; k < calls; k++) {
      const beganAtMs = performance.now();
      const { status, text } = await api.call('GET', path + query, undefined, { key });
      if (status !== 200) throw new Error(`${query}: ${status} ${text}`);
      if (k >= 0) times.push(performance.now() - beganAtMs);
    }
    const sorted = times.sort((a, b) => a - b);
    const p95 = sorted[Math.floor((sorted.length - 1) * 0.95)]!;
    const middle = median(sorted, (it) => it);
    console.log(
      `| ${page} | ${call} | ${middle > SLOW_MS ? `**${ms(middle)}**` : ms(middle)} | ${ms(p95)} |`,
    );
  }
} finally {
  await api.close();
}

type Call = readonly [page: string, call: string, query: string];

/** Returns the calls of the pages. */
async function callsOf({ call }: Api, path: string): Promise<readonly Call[]> {
  const first = async (query: string) => (await call('GET', path + query)).body.data.content[0];
  const delivery = await first('/eventdeliveries?status=failure&perPage=1');
  const deep = (await call('GET', `${path}/eventdeliveries?perPage=1&endDate=${daysAgo(DAYS / 2)}`))
    .body.data;
  const page = await call('GET', `${path}/endpoints?perPage=100`);
  const ids = page.body.data.content.map(({ uid }: { uid: string }) => `endpointId=${uid}`);
  const log = 'perPage=50';
  return [
    ['Overview', 'health', '/health'],
    ['', 'summary', '/summary'],
    ['', 'activity, 1 h', `/activity?startDate=${daysAgo(1 / 24)}`],
    ['', 'activity, 24 h', `/activity?startDate=${daysAgo(1)}`],
    ['', 'activity, 7 d', `/activity?startDate=${daysAgo(7)}`],
    ['', 'open issues', '/issues?state=open&perPage=5'],
    ['Deliveries', 'all', `/eventdeliveries?${log}`],
    ['', 'from the middle', `/eventdeliveries?${log}&next_page_cursor=${deep.content[0].uid}`],
    ['', 'oldest first', `/eventdeliveries?${log}&sort=ASC`],
    ['', 'of a status', `/eventdeliveries?${log}&status=failure`],
    [
      '',
      'of an endpoint and a status',
      `/eventdeliveries?${log}&endpointId=${delivery.endpoint_id}&status=failure`,
    ],
    ['', 'of an event type', `/eventdeliveries?${log}&event_type=order.paid`],
    ['', 'start of an id', `/eventdeliveries?${log}&query=${delivery.uid.slice(0, 8)}`],
    ['Delivery', 'the delivery', `/eventdeliveries/${delivery.uid}`],
    ['', 'its event', `/eventdeliveries/${delivery.uid}/event`],
    ['', 'its attempts', `/eventdeliveries/${delivery.uid}/deliveryattempts`],
    ['Events', 'all', `/events?${log}`],
    ['', 'of a status', `/events?${log}&status=processed`],
    ['', 'without a recipient', `/events?${log}&outcome=no_subscription`],
    ['', 'of an event type', `/events?${log}&event_type=order.paid`],
    ['', 'search: `data.order.total < 100`', `/events?${log}&search=data.order.total%3C100`],
    ['', 'search: a page of what is nowhere', `/events?${log}&search=zzz42`],
    ['Event', 'the event', `/events/${delivery.event_id}`],
    ['', 'its deliveries', `/eventdeliveries?eventId=${delivery.event_id}`],
    ['', 'why it was routed so', `/events/${delivery.event_id}/explain`],
    ['Endpoints', 'all', `/endpoints?${log}`],
    ['', 'a part of the name', `/endpoints?${log}&q=endpoint-99`],
    ['', 'by name', `/endpoints?${log}&sortBy=name&sort=ASC`],
    ['', 'by failures', `/endpoints?${log}&sortBy=failures`],
    ['', 'by last request', `/endpoints?${log}&sortBy=last_request`],
    ['', 'with an open breaker', `/endpoints?${log}&circuitBreaker=open`],
    ['', 'requests of 100', `/activity/endpoints?${ids.join('&')}&startDate=${daysAgo(1)}`],
    ['Issues', 'open', `/issues?${log}&state=open`],
    ['', 'by failures', `/issues?${log}&state=open&sortBy=failures`],
    ['Quarantine', 'quarantined', `/quarantine?${log}&status=quarantined`],
    ['', 'of a reason', `/quarantine?${log}&code=not_json`],
    ['Subscriptions', 'all', `/subscriptions?${log}`],
  ];
}

function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString();
}

/**
 * Inserts endpoints, and deliveries with their events and attempts, evenly over thirty days. One
 * endpoint in ten fails, one has an open breaker and a backlog, and all had a request just now.
 */
async function fill({ db, kv, call }: Api, projectId: string): Promise<void> {
  // Without the timeouts of the pool.
  const client = new pg.Client({ connectionString: db.url });
  await client.connect();
  const sql = (text: string, ...more: unknown[]) => client.query(text, [projectId, ...more]);
  await call('POST', `/projects/${projectId}/endpoints`, {
    name: 'endpoint-0',
    url: 'https://example.com/hooks',
  });
  await client.query(
    `select ensure_day((now() at time zone 'UTC')::date - n) from generate_series(-1, ${DAYS + 1}) n`,
  );
  const idAt = (at: string, n: string) =>
    `(lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint), 12, '0') || '70008' || lpad(to_hex(${n}), 15, '0'))::uuid`;
  await sql(
    `insert into endpoints (project_id, id, name, url, owner_id, description, secrets, timeout_ms, created_at)
     select project_id, ${idAt(`now() - n * interval '1 second'`, 'n')}, 'endpoint-' || n, url || '/' || n, 'owner-' || n % 1000, description, secrets, timeout_ms, now()
     from endpoints, generate_series(1, $2::int - 1) n where project_id = $1`,
    endpoints,
  );
  await client.query(
    `create unlogged table made as
     select n, at, ${idAt('at', 'n')} as id, e.id as endpoint_id, e.k % 10 = 0 and n / ${endpoints} % 2 = 0 as fails, case n % 3 when 0 then 'order.paid' else 'order.created' end as type
     from (select n, date_trunc('milliseconds', now() - n * (interval '${DAYS} days' / ${deliveries})) as at from generate_series(1, ${deliveries}) n) m
     join (select id, row_number() over (order by id) - 1 as k from endpoints where project_id = '${projectId}') e on e.k = n % ${endpoints}`,
  );
  await sql(
    `insert into events (project_id, id, occurred_at, accepted_at, coordinates, event_type, status, outcome, headers, data)
     select $1::uuid, id, at, at, 'api', type, case when n % 50 = 0 then 'failed' else 'processed' end::event_status, case when n % 50 = 0 then 'no_subscription' else 'routed' end, '{}',
       '{"order":{"id":' || n || ',"total":' || n % 1000 || ',"note":"' || repeat('a', 200) || '"}}' from made`,
  );
  await sql(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, event_type, attempts, reason)
     select $1::uuid, id, at, id, endpoint_id, case when fails then 'failure' else 'success' end::event_delivery_status, type, 1, case when fails then 'No retry is left after attempt 1. It answered 503.' end from made`,
  );
  await sql(
    `insert into delivery_attempts (project_id, id, occurred_at, event_delivery_id, endpoint_id, requested_at, duration_ms, number, http_status, error_class, error, url)
     select $1::uuid, id, at, id, endpoint_id, at + interval '20 milliseconds', n % 200, 1, case when fails then 503 else 200 end, case when fails then 'status' end, case when fails then 'It answered 503.' end, 'https://example.com/hooks' from made`,
  );
  for (const [endpoint, step] of [
    ['endpoint_id', '10 minutes'],
    [`'00000000-0000-0000-0000-000000000000'::uuid`, '1 minute'],
  ])
    await sql(
      `insert into activity (project_id, endpoint_id, at, kind, status, n)
       select $1::uuid, ${endpoint}, date_bin('${step}', at, 'epoch'), kind, case when fails then 'failure' else 'success' end, count(*)
       from made, (values ('delivery'), ('attempt')) k(kind) where at > now() - interval '7 days' group by 1, 2, 3, 4, 5`,
    );
  await sql(
    `insert into activity (project_id, endpoint_id, at, kind, status, n)
     select $1::uuid, id, date_bin('10 minutes', now(), 'epoch'), 'attempt', status, 5 from (select id, row_number() over (order by id) - 1 as k from endpoints where project_id = $1) e,
       (values ('success'), ('failure')) s(status) where status = 'success' or k % 10 = 0
     on conflict (project_id, endpoint_id, at, kind, status) do update set n = activity.n + excluded.n`,
  );
  const { rows } = await client.query<{ id: string }>(
    'select id from endpoints where project_id = $1 order by id limit 1',
    [projectId],
  );
  await sql(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, event_type, next_attempt_at, attempts, reason)
     select $1::uuid, ${idAt('at', `n + 1000000000`)}, at, id, $2, 'scheduled', type, now() + interval '1 hour', 0, 'It waits.' from made where n <= 10000`,
    rows[0]!.id,
  );
  const record = countRequests(
    undefined,
    { projectId, requests: 10, failures: 10 },
    {
      threshold: 0.5,
      minimumRequests: 10,
      windowMs: 60_000,
      openMs: 3_600_000,
      openMaxMs: 3_600_000,
    },
    Date.now(),
  );
  await kv
    .map('breakers')
    .change([{ field: rows[0]!.id, from: undefined, to: encodeValue('breaker', record) }]);
  await sql(
    `insert into issues (project_id, endpoint_id, kind, id, first_seen_at, last_seen_at, failures, event_delivery_id, http_status, error)
     select $1::uuid, e.id, kind, ${idAt('now()', 'k * 10 + j')}, now() - k * interval '1 minute', now(), k, e.id, 503, 'It answered 503.'
     from (select id, row_number() over (order by id) - 1 as k from endpoints where project_id = $1) e, (values (1, 'http_503'), (2, 'timeout')) v(j, kind) where k % 10 = 0`,
  );
  await sql(
    `insert into quarantined_messages (project_id, id, source_id, occurred_at, coordinates, code, reason, headers, raw)
     select $1::uuid, id, '11111111-1111-7111-8111-111111111111', at, 'orders/0/' || n, case n % 2 when 0 then 'not_json' else 'no_event_type' end, 'It is not JSON.', '{}', 'x' from made where n <= 100000`,
  );
  await client.query('drop table made');
  await client.query('vacuum analyze');
  await client.end();
}
