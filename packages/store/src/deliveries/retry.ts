import { timeOfId } from '@gateway/core/events';
import { findLoggedEndpoints, type LoggedEndpoint } from '../config/endpoints.js';
import { endpointIdsOfOwner } from '../config/owners.js';
import { insertCountDeltas, unfinishedDeliveries } from '../counts/count-deltas.js';
import { idBound, progressAt, Values } from '../pagination/log-page.js';
import { opaque, opaqueUnless } from '../postgres/columns.js';
import type { Planes } from '../postgres/planes.js';
import { databaseTime } from '../postgres/server-facts.js';
import { repairKeys } from '../ordering/settle-keys.js';
import { placesAgain, UNLESS_WAITING } from '../events/turns.js';
import { notifyDue } from './agents.js';
import type { EventDeliveryStatus } from './claims.js';
import { ofEvent } from './delivery-log.js';
import { settleChanged } from './settle-deliveries.js';

export interface RetrySelection {
  readonly status: EventDeliveryStatus | readonly EventDeliveryStatus[];
  /** Only those that changed their state since. */
  readonly changedSince?: Date | undefined;
  /** `from` and `to` are broker times, inclusive. */
  readonly from: Date;
  readonly to?: Date | undefined;
  readonly after?: string | undefined;
  readonly projectId: string;
  readonly eventId?: string | undefined;
  readonly eventType?: string | undefined;
  readonly endpointId?: string | undefined;
  /** Excludes deleted endpoints. Not with the status `processing`. */
  readonly ownerId?: string | undefined;
}

/**
 * `due` is retried, `held` waits for its paused endpoint. The others are skipped: the endpoint is
 * `inactive` or `deleted`, a live agent holds the delivery (`sending`), or it is already due or
 * held (`waiting`).
 */
export type RetryOutcome = 'due' | 'held' | 'inactive' | 'deleted' | 'sending' | 'waiting';

export interface RetryTally {
  readonly endpointId: string;
  readonly endpointName: string | null;
  readonly outcome: RetryOutcome;
  readonly count: number;
}

export interface RetryStep {
  readonly tallies: readonly RetryTally[];
  /** By broker time, from 0 to 1. */
  readonly done: number;
  /** For another run, at the end of a page. Null when all are read. */
  readonly next?: string | null;
}

/** With a valid lease. Other agents' claims are void. */
const LIVING = `select id from agents where expires_at > now()`;
const SCAN = 10_000;
const BATCH = 1_000;

/**
 * In order of broker time; a dry run only counts. Each step is one commit. Skips deliveries changed
 * since the start, so that none is queued twice. One that waits for its next attempt keeps its
 * number of attempts.
 */
export async function* retryDeliveries(
  planes: Planes,
  selection: RetrySelection,
  { dryRun, dueInMs = 0 }: { dryRun: boolean; dueInMs?: number },
): AsyncGenerator<RetryStep, void, void> {
  const began = await databaseTime(planes.data);
  const { projectId, from, to } = selection;
  const toMs = to?.getTime() ?? Date.now();
  for (let { after } = selection, more = true; more;) {
    const page = await readPage(planes, { ...selection, began, after });
    const done = page.last === null ? 1 : progressAt(page.last, from.getTime(), toMs);
    more = page.scanned === SCAN;
    const next = more ? page.last : null;
    const step = (tallies: RetryTally[], isEnd: boolean): RetryStep => ({
      tallies,
      done: isEnd && !more ? 1 : done,
      ...(isEnd ? { next } : {}),
    });
    const wanted = page.groups.filter(({ outcome }) => outcome === 'due' || outcome === 'held');
    const counted = dryRun ? page.groups : page.groups.filter((group) => !wanted.includes(group));
    const names = new Map(wanted.map((group) => [group.endpointId, group.endpointName]));
    let states: RetryPage['endpoints'] = new Map(
      [...page.endpoints].filter(([id]) => names.has(id)),
    );
    const batches = dryRun ? [] : batchesOf(wanted);
    yield step(
      counted.map(({ ids, status: _, ...group }) => ({ ...group, count: ids.length })),
      batches.length === 0,
    );
    for (const [n, batch] of batches.entries()) {
      const changed = await requeue(planes, { ...batch, projectId, began, states, dueInMs });
      states = await settleChanged(planes, projectId, states);
      yield step(
        changed.map((it) => ({ ...it, endpointName: names.get(it.endpointId) ?? null })),
        n === batches.length - 1,
      );
    }
    after = page.last ?? undefined;
  }
}

interface RetryGroup extends Pick<RetryTally, 'endpointId' | 'endpointName' | 'outcome'> {
  readonly status: EventDeliveryStatus;
  readonly ids: readonly string[];
}

interface RetryPage {
  readonly scanned: number;
  readonly last: string | null;
  readonly endpoints: ReadonlyMap<string, LoggedEndpoint>;
  readonly groups: readonly RetryGroup[];
}

/** Each batch has one status. */
function batchesOf(groups: readonly RetryGroup[]): Pick<Requeue, 'status' | 'ids'>[] {
  return [...new Set(groups.map(({ status }) => status))].flatMap((status) => {
    const ids = groups.flatMap((it) => (it.status === status ? it.ids : [])).sort();
    return Array.from({ length: Math.ceil(ids.length / BATCH) }, (_, n) => ({
      status,
      ids: ids.slice(n * BATCH, (n + 1) * BATCH),
    }));
  });
}

/**
 * The next `SCAN` rows, grouped by endpoint. One bound of ids, which start with the broker time,
 * prunes partitions and positions the index scan. No lock.
 */
async function readPage(
  { control, data }: Planes,
  selection: RetrySelection & { readonly began: string },
): Promise<RetryPage> {
  const { from, to, projectId, eventId, endpointId, ownerId, eventType, began, after } = selection;
  const statuses = [selection.status].flat();
  const values = new Values();
  const project = values.add(projectId);
  const fromMs = Math.max(0, from.getTime());
  const wanted = `${values.add(statuses)}::event_delivery_status[]`;
  const scan = `(select ${values.add(SCAN)}::int)`;
  const rows = [
    `e.project_id = ${project}`,
    `e.occurred_at >= ${values.add(new Date(fromMs))}`,
    ...values.where(to, (it) => `e.occurred_at <= ${it}`),
    ...values.where(endpointId, (it) => `e.endpoint_id = ${it}::uuid`),
    ...values.where(eventType, (it) => `e.event_type = ${it}`),
    ...(eventId === undefined ? [] : ofEvent(eventId, values)),
  ];
  const first = `${values.add(after ?? idBound(fromMs, '0'))}::uuid`;
  const selected = [...rows, `e.id ${after === undefined ? '>=' : '>'} ${first}`];
  // Changes since a time may be a few of all rows, so the index on the endpoint is scanned instead
  // of the project's ids.
  const among =
    ownerId !== undefined
      ? await endpointIdsOfOwner(control, projectId, ownerId)
      : endpointId !== undefined && selection.changedSince && !statuses.includes('processing')
        ? [endpointId]
        : undefined;
  const source =
    among === undefined
      ? `event_deliveries e where ${selected.join(' and ')}`
      : ofEndpoints(values.add(among), {
          selected: eventId === undefined ? rows : selected,
          wanted,
          first,
          after,
          scan,
        });
  const hit = [
    `e.status = any (${wanted}) and e.updated_at <= ${values.add(began)}::timestamptz`,
    ...values.where(selection.changedSince, (it) => `e.updated_at >= ${it}`),
  ].join(' and ');
  const { rows: found } = await data.query<
    Pick<RetryPage, 'scanned' | 'last'> & (FoundGroup | { readonly ids: null })
  >(
    `with page as materialized (
       select e.id, e.endpoint_id, e.status, e.next_attempt_at, ${hit} as hit, e.status = 'processing' and e.claimed_by in (${LIVING}) as is_sending
       from ${source}
       order by e.id limit ${scan}
     ),
     g as materialized (
       select endpoint_id, status, next_attempt_at <= now() as is_due, is_sending, array_agg(id::text) as ids from page where hit group by 1, 2, 3, 4
     )
     select l.scanned, l.last, g.endpoint_id as "endpointId", g.status::text as status, g.is_due as "isDue", g.is_sending as "isSending", g.ids
     from (select count(*)::int as scanned, (select id from page order by id desc limit 1) as last from page) l
     left join g on true`,
    values.list,
  );
  const { scanned, last } = found[0]!;
  const groups = found.flatMap((group) => (group.ids === null ? [] : group));
  const endpointIds = groups.map(({ endpointId }) => endpointId);
  const endpoints = await findLoggedEndpoints(control, projectId, endpointIds);
  return {
    scanned,
    last,
    endpoints,
    groups: groups.map((group): RetryGroup => {
      const { endpointId, status, ids } = group;
      const endpoint = endpoints.get(endpointId);
      const outcome = outcomeOf(group, endpoint?.status ?? 'deleted');
      return { endpointId, endpointName: endpoint?.name ?? null, status, outcome, ids };
    }),
  };
}

interface FoundGroup extends Pick<RetryGroup, 'endpointId' | 'status' | 'ids'> {
  readonly isDue: boolean | null;
  readonly isSending: boolean;
}

function outcomeOf(
  { status, isDue, isSending }: FoundGroup,
  endpoint: LoggedEndpoint['status'],
): RetryOutcome {
  if (endpoint === 'deleted' || endpoint === 'inactive') return endpoint;
  if (isSending) return 'sending';
  const isHeld = endpoint === 'paused';
  if ((status === 'scheduled' || status === 'retry') && (isHeld || isDue)) return 'waiting';
  return isHeld ? 'held' : 'due';
}

/** Row comparisons leave the index on endpoint, status and id as the only usable one. */
function ofEndpoints(
  endpoints: string,
  it: {
    readonly selected: readonly string[];
    readonly wanted: string;
    readonly first: string;
    readonly after: string | undefined;
    readonly scan: string;
  },
): string {
  const conditions = [
    ...it.selected,
    `e.status <> 'processing'`,
    `(e.endpoint_id, e.status, e.id) ${it.after === undefined ? '>=' : '>'} (v.value, s.value, ${it.first})`,
    `e.endpoint_id <= v.value and e.status <= s.value`,
  ];
  return `unnest(${endpoints}::uuid[]) v(value) cross join unnest(${it.wanted}) s(value) cross join lateral (
         select * from event_deliveries e where ${conditions.join(' and ')} order by e.endpoint_id, e.status, e.id limit ${it.scan}) e`;
}

/*
 * Locks: the changed rows, by primary key in the few partitions of the batch, skipping locked rows.
 * Citus refuses `now()` within a case.
 */
const REQUEUE = `
  with living as materialized (${LIVING}),
  w as materialized (
    select d.id from event_deliveries d
    where d.project_id = $1 and d.id = any ($3::uuid[]) and d.occurred_at between $4 and $5
      and d.status = $6::event_delivery_status and d.updated_at <= $7::timestamptz
      and ${opaque('d.endpoint_id in (select unnest($2::uuid[]))')}
      and ${opaqueUnless('d.claimed_by in (select id from living)')}
    for update of d skip locked
  ),
  changed as (
    update event_deliveries d set status = case when d.status = 'retry' or (d.status = 'processing' and d.attempts > 0) then 'retry'::event_delivery_status else 'scheduled' end,
      claimed_by = null, recovered = d.recovered + case when d.status = 'processing' then 1 else 0 end,
      next_attempt_at = greatest($9::timestamptz, now() + $8::float8 * interval '1 millisecond') + ${UNLESS_WAITING}, reason = null, updated_at = now()
    where d.project_id = $1 and d.id = any ($3::uuid[]) and d.occurred_at between $4 and $5 and ${opaque('d.id in (select id from w)')}
    returning d.project_id, d.endpoint_id, d.source_id, d.event_type, d.id, d.occurred_at, d.order_key, d.next_attempt_at
  ),
  ${placesAgain('changed')},
  counted as (${insertCountDeltas(unfinishedDeliveries('(select *, $6::event_delivery_status as status from changed) d'))})
  select endpoint_id as "endpointId", count(*)::int as count, array_agg(distinct order_key) filter (where order_key is not null) as keys from changed group by 1`;

interface Requeue {
  readonly projectId: string;
  readonly status: EventDeliveryStatus;
  readonly began: string;
  readonly ids: readonly string[];
  readonly states: ReadonlyMap<string, LoggedEndpoint>;
  readonly dueInMs: number;
}

/**
 * Holds those of endpoints that are paused in `states`. Leaves those of inactive, deleted and other
 * endpoints.
 */
async function requeue(
  { control, data }: Planes,
  { projectId, status, began, ids, states, dueInMs }: Requeue,
): Promise<{ endpointId: string; outcome: 'due' | 'held'; count: number }[]> {
  const requeued = [];
  for (const [outcome, endpointStatus] of [
    ['due', 'active'],
    ['held', 'paused'],
  ] as const) {
    const endpointIds = [...states].flatMap(([id, it]) => (it.status === endpointStatus ? id : []));
    if (endpointIds.length === 0) continue;
    const { rows } = await data.query<{ endpointId: string; count: number; keys: string[] | null }>(
      {
        name: 'requeue-deliveries',
        text: REQUEUE,
        values: [
          projectId,
          endpointIds,
          ids,
          new Date(timeOfId(ids[0]!)),
          new Date(timeOfId(ids.at(-1)!)),
          status,
          began,
          dueInMs,
          outcome === 'held' ? 'infinity' : null,
        ],
      },
    );
    const keys = rows.flatMap(({ endpointId, keys }) =>
      (keys ?? []).map((orderKey) => ({ projectId, endpointId, orderKey })),
    );
    if (keys.length > 0) await repairKeys(data, keys);
    if (rows.length > 0 && outcome === 'due') await notifyDue(control, [projectId]);
    requeued.push(...rows.map(({ endpointId, count }) => ({ endpointId, count, outcome })));
  }
  return requeued;
}
