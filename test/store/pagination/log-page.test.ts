// deadline: 300 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Pool } from 'pg';
import { idBound } from '#store/pagination/log-page';
import type { PageRequest, PageResult } from '#store/pagination/page';
import { listEventDeliveries, type EventDeliveryFilter } from '#store/deliveries/delivery-log';
import { retryDeliveries } from '#store/deliveries/retry';
import { listEvents, type EventFilter } from '#store/events/event-log';
import type { Planes } from '#store/postgres/planes';
import { listQuarantinedMessages, type QuarantineFilter } from '#store/quarantine/messages';
import { makeEndpoint, makeProject, makeSource } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const lists = suite('store/pagination/log-page');

const db = await migratedDatabase();
lists.after(async () => {
  await db.close();
  const slowest = timings.sort((one, other) => other.ms - one.ms);
  for (const { what, ms } of [
    ...slowest.slice(0, 5),
    ...slowest.slice(Math.floor(slowest.length / 2)).slice(0, 1),
  ])
    process.stdout.write(`${ms.toFixed(1)} ms ${what}\n`);
});

/**
 * Enough rows that reading all of them is noticeable. The plans are the same for 1,000,000, which
 * take two minutes: LIST_ROWS=1000000.
 */
const ROWS = Number(process.env['LIST_ROWS'] ?? 50_000);
const START_MS = Date.parse('2026-03-01');
const first: PageRequest = { perPage: 20, direction: 'next', sort: 'DESC' };
/** The page after nine tenths of the rows. */
const deep: PageRequest = { ...first, cursor: idBound(START_MS + ROWS / 10, '0') };

/** Each filter alone matches at least a third of the rows; many pairs match none. */
let projectId: string;
const sources: string[] = [];
const endpoints: string[] = [];

lists.before(async () => {
  ({ id: projectId } = await makeProject(db));
  for (const name of ['a', 'b']) {
    endpoints.push((await makeEndpoint(db, projectId, { name, owner_id: `owner of ${name}` })).id);
    sources.push(await makeSource(db, projectId, name));
  }
  const id = `(lpad(to_hex($2::bigint + n), 12, '0') || '7' || lpad(to_hex(n), 19, '0'))::uuid, timestamptz 'epoch' + ($2::bigint + n) * interval '1 millisecond'`;
  const client = await db.connect();
  try {
    await client.query(
      `insert into events (project_id, id, occurred_at, source_id, coordinates, event_type, idempotency_key, status, outcome, headers, data)
       select $1, ${id}, case n % 3 when 0 then $3::uuid when 1 then $4::uuid end, 'c', case n % 2 when 0 then 'even' else 'odd' end,
              case when n % 1000 = 0 then 'k' || n end, (case n % 2 when 0 then 'failed' else 'processed' end)::event_status, 'routed', '{}', '{}'
       from generate_series(1, ${ROWS}) n`,
      [projectId, START_MS, ...sources],
    );
    await client.query(
      `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, event_type)
       select $1, ${id}, $1, case n % 2 when 0 then $3::uuid else $4::uuid end, (case n % 2 when 0 then 'failure' else 'success' end)::event_delivery_status,
              case n % 3 when 0 then 'third' else 'other' end
       from generate_series(1, ${ROWS}) n`,
      [projectId, START_MS, ...endpoints],
    );
    await client.query(`insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, claimed_by)
       select project_id, gen_random_uuid(), occurred_at, event_id, endpoint_id, 'processing', 1 from event_deliveries limit 3`);
    await client.query(
      `insert into quarantined_messages (project_id, id, occurred_at, source_id, coordinates, code, reason, headers, raw, status)
       select $1, ${id}, case n % 2 when 0 then $3::uuid else $4::uuid end, 'c', case n % 2 when 0 then 'even' else 'odd' end, '', '{}', '',
              (case n % 2 when 0 then 'discarded' else 'quarantined' end)::quarantine_status
       from generate_series(1, ${ROWS}) n`,
      [projectId, START_MS, ...sources],
    );
    await client.query('analyze events, event_deliveries, quarantined_messages');
  } finally {
    await client.end();
  }
});

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Shared Hit Blocks'?: number;
  readonly 'Shared Read Blocks'?: number;
  readonly Plans?: readonly Plan[];
}

/** The rows of the large tables that a list reads, and their scans without an index condition. */
async function lookedAt(
  list: (planes: Planes) => Promise<PageResult<unknown>>,
): Promise<{ rows: number; blocks: number; unbounded: string[]; content: number }> {
  const seen = { rows: 0, blocks: 0, unbounded: [] as string[], content: 0 };
  const visit = (plan: Plan): void => {
    if (/^(event|quarantined)/.test(plan['Relation Name'] ?? '')) {
      seen.rows +=
        (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops'];
      if (!/Index/.test(plan['Node Type']))
        seen.unbounded.push(`${plan['Node Type']} on ${plan['Relation Name']}`);
    }
    plan.Plans?.forEach(visit);
  };
  const query = async (text: string, values: unknown[]) => {
    const { rows } = await db.pool.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      `explain (analyze, buffers, timing off, format json) ${text}`,
      values,
    );
    const plan = rows[0]!['QUERY PLAN'][0].Plan;
    // Index entries that a scan skips are not counted as rows.
    seen.blocks += plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!;
    visit(plan);
    return db.pool.query(text, values);
  };
  seen.content = (
    await list({ control: db.pool, data: { query } as unknown as Pool })
  ).content.length;
  return seen;
}

/** All combinations of filter values, undefined for none. */
function combinations<Filter extends object>(choices: {
  readonly [Name in keyof Filter]: readonly Filter[Name][];
}): Filter[] {
  return Object.entries<readonly unknown[]>(choices).reduce<object[]>(
    (all, [name, values]) =>
      all.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  ) as Filter[];
}

/**
 * A page has 20 rows; each group, of 3 sources and 3 statuses, yields 21 at most, and joins look up
 * each again.
 */
const ROWS_MAX = 9 * 21 + 4 * 21;

/** Milliseconds of each list, the best of three. */
const timings: { readonly what: string; readonly ms: number }[] = [];

async function time(what: string, list: () => Promise<unknown>): Promise<void> {
  let best = Infinity;
  for (let k = 0; k < 3; k++) {
    const startedAtMs = performance.now();
    await list();
    best = Math.min(best, performance.now() - startedAtMs);
  }
  timings.push({ what, ms: best });
}

/** A row costs one block at most, and a group or join the depth of its index. */
const BLOCKS_MAX = ROWS_MAX + 9 * 4 + 4 * 21 * 3;

async function assertCheap<Filter extends object>(
  filters: readonly Filter[],
  list: (planes: Planes, filter: Filter, page: PageRequest) => Promise<PageResult<unknown>>,
): Promise<void> {
  for (const filter of filters) {
    for (const [what, page] of Object.entries({
      first,
      last: { ...first, sort: 'ASC' as const },
      deep,
    })) {
      const { rows, blocks, unbounded } = await lookedAt((planes) => list(planes, filter, page));
      if (process.env['LIST_ROWS'])
        await time(`${what} ${JSON.stringify(filter)}`, () => list(db.planes, filter, page));
      assert.equal(
        [
          rows <= ROWS_MAX ? 'few rows' : `${rows} rows`,
          blocks <= BLOCKS_MAX ? 'few blocks' : `${blocks} blocks`,
          ...unbounded,
        ],
        ['few rows', 'few blocks'],
        `${what} page with ${JSON.stringify(filter)}`,
      );
    }
  }
}

lists(
  'events: each combination of filters answers its first page, and one far behind, by an index',
  async () => {
    const filters = combinations<EventFilter>({
      status: [undefined, 'pending', 'processed', 'failed'],
      eventType: [undefined, 'even', 'odd', 'none'],
      sourceId: [undefined, ...sources],
      idempotencyKey: [undefined, 'k1000'],
      from: [undefined, new Date(START_MS + ROWS / 200)],
    });
    await assertCheap(filters, (planes, filter, page) =>
      listEvents(planes, projectId, filter, page),
    );
    assert.is(
      (await listEvents(db.planes, projectId, { eventType: 'odd', status: 'failed' }, first))
        .content.length,
      0,
    );
    assert.is(
      (await listEvents(db.planes, projectId, { eventType: 'even', status: 'failed' }, deep))
        .content.length,
      20,
    );
  },
);

lists(
  'deliveries: each combination of filters answers its first page, and one far behind, by an index',
  async () => {
    const filters = combinations<EventDeliveryFilter>({
      statuses: [
        undefined,
        ['success'],
        ['failure'],
        ['processing'],
        ['scheduled', 'retry', 'discarded'],
        ['processing', 'success'],
      ],
      endpointId: [undefined, ...endpoints],
      eventId: [undefined, idBound(START_MS + 70, '0')],
      eventType: [undefined, 'third'],
      to: [undefined, new Date(START_MS + ROWS - ROWS / 200)],
    });
    await assertCheap(
      filters.filter(({ eventId, endpointId, eventType }) => eventId ?? !(endpointId && eventType)),
      (planes, filter, page) => listEventDeliveries(planes, projectId, filter, page),
    );
    const listed = async (filter: EventDeliveryFilter) =>
      (await listEventDeliveries(db.planes, projectId, filter, first)).content;
    assert.is((await listed({ statuses: ['processing'] })).length, 3);
    assert.is((await listed({ statuses: ['success'], endpointId: endpoints[0] })).length, 0);
    assert.equal(
      [
        ...new Set(
          (await listed({ statuses: ['failure'], eventType: 'third' })).map(({ status }) => status),
        ),
      ],
      ['failure'],
    );
    const unserved = listed({ endpointId: endpoints[0], eventType: 'third' });
    assert.match(String(await unserved.catch((error: unknown) => error)), /no index/);
  },
);

lists('deliveries: those of an owner are found by the index of its endpoints', async () => {
  const ownerId = 'owner of a';
  const filters = combinations<EventDeliveryFilter>({
    statuses: [undefined, ['success'], ['failure'], ['processing', 'success']],
    ownerId: [ownerId, 'nobody'],
    endpointId: [undefined, ...endpoints],
    eventId: [undefined, idBound(START_MS + 70, '0')],
    to: [undefined, new Date(START_MS + ROWS - ROWS / 200)],
  });
  await assertCheap(filters, (planes, filter, page) =>
    listEventDeliveries(planes, projectId, filter, page),
  );
  const listed = async (filter: EventDeliveryFilter) =>
    (await listEventDeliveries(db.planes, projectId, { ownerId, ...filter }, first)).content;
  assert.equal([...new Set((await listed({})).map(({ endpoint_id: id }) => id))], [endpoints[0]]);
  assert.equal(
    [
      (await listed({ endpointId: endpoints[1] })).length,
      (await listed({ endpointId: endpoints[0] })).length,
    ],
    [0, 20],
  );
  const unserved = listed({ eventType: 'third' });
  assert.match(String(await unserved.catch((error: unknown) => error)), /no index/);
});

lists(
  'deliveries: a batch of an owner reads the deliveries of its endpoints with the wanted status, and no others',
  async () => {
    const counted = async (status: 'success' | 'failure') => {
      let count = 0;
      const selection = {
        status,
        ownerId: 'owner of a',
        from: new Date(0),
        projectId,
      };
      const seen = await lookedAt(async (planes) => {
        for await (const { tallies } of retryDeliveries(planes, selection, { dryRun: true }))
          for (const tally of tallies) count += tally.count;
        return { content: [] } as unknown as PageResult<unknown>;
      });
      return { ...seen, count };
    };
    const [none, all] = [await counted('success'), await counted('failure')];
    assert.equal([none.count, none.rows, none.unbounded], [0, 0, []]);
    assert.equal([all.count, all.unbounded], [ROWS / 2, []]);
  },
);

lists(
  'quarantine: each combination of filters answers its first page, and one far behind, by an index',
  async () => {
    const filters = combinations<QuarantineFilter>({
      status: [undefined, 'quarantined', 'replayed', 'discarded'],
      sourceId: [undefined, ...sources],
      code: [undefined, 'even', 'none'],
    });
    await assertCheap(filters, (planes, filter, page) =>
      listQuarantinedMessages(planes, projectId, filter, page),
    );
    assert.is(
      (
        await listQuarantinedMessages(
          db.planes,
          projectId,
          { code: 'odd', status: 'discarded' },
          first,
        )
      ).content.length,
      0,
    );
    assert.is(
      (
        await listQuarantinedMessages(
          db.planes,
          projectId,
          { code: 'odd', sourceId: sources[1] },
          deep,
        )
      ).content.length,
      20,
    );
  },
);

lists(
  'the start of an id finds those that begin with it, beside other filters as well',
  async () => {
    const { content } = await listEvents(db.planes, projectId, {}, first);
    const { id } = content[7]!;
    const found = async (filter: EventFilter) =>
      (await listEvents(db.planes, projectId, filter, first)).content.map((it) => it.id);
    assert.equal(await found({ idPrefix: id }), [id]);
    assert.equal(
      await found({
        idPrefix: id.replaceAll('-', '').slice(0, 12).toUpperCase(),
        status: content[7]!.status,
      }),
      [id],
    );
    assert.equal(await found({ idPrefix: id, from: new Date(START_MS + ROWS + 1) }), []);
    assert.is((await found({ idPrefix: id.slice(0, 8) })).length, 20);
    await assertCheap<EventFilter>(
      [{ idPrefix: id.slice(0, 8) }, { idPrefix: id.slice(0, 9), eventType: 'odd' }],
      (planes, filter, page) => listEvents(planes, projectId, filter, page),
    );
  },
);

lists.run();
