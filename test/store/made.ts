import { eventDeliveryId, eventId, newId, timeOfId } from '#core/events/ids';
import { insertEndpoint, type EndpointRow, type EndpointRecord } from '#store/config/endpoints';
import {
  insertProject,
  type ProjectRow,
  type ProjectConfig,
  type ProjectRecord,
} from '#store/config/projects';
import { NO_CHANGE, readChanges, readProjects, type ProjectTexts } from '#store/config/snapshot';
import type { PausableSource } from '#store/config/sources';
import type { ActiveSubscription } from '#store/config/subscriptions';
import { insertOrganisation } from '#store/people/organisations';
import { readVerdicts } from '#store/events/verdicts';
import { acceptEvents, type NewEvent } from '#store/events/events';
import type { Database } from '#store/postgres/database';

/** Creates a project in a new organisation. */
export async function makeProject(
  db: Database,
  name = 'orders',
  config: ProjectConfig = {},
): Promise<ProjectRow> {
  const userId = newId();
  // No password: hashing takes most of a second.
  await db.knex('users').insert({
    id: userId,
    email: `${userId}@example.com`,
    first_name: 'a',
    last_name: 'b',
    password_hash: '',
  });
  const organisation = await insertOrganisation(db.knex, { name: 'Acme', userId });
  return insertProject(db.knex, organisation.id, { name, type: 'outgoing', config });
}

export function makeEndpoint(
  db: Database,
  projectId: string,
  fields: { name?: string; owner_id?: string } = {},
): Promise<EndpointRow> {
  const { name = 'shop', owner_id = null } = fields;
  const secrets = [
    { id: newId(), value: 'sealed', created_at: new Date().toISOString(), expires_at: null },
  ];
  return insertEndpoint(db.knex, projectId, {
    name,
    url: 'https://example.com/hooks',
    owner_id,
    description: '',
    secrets,
    authentication: null,
    timeout_ms: 10_000,
    concurrency: null,
    strategy: null,
  });
}

/** Inserts a source. Returns its id. */
export async function makeSource(
  db: Database,
  projectId: string,
  name = 'orders',
): Promise<string> {
  const id = newId();
  await db.pool.query(
    `insert into sources (project_id, id, name, type, pub_sub) values ($1, $2, $3, 'pub_sub', '{"type":"kafka"}')`,
    [projectId, id, name],
  );
  return id;
}

/** Inserts an event per given time, oldest first. Returns their ids. */
export async function makeEvents(
  db: Database,
  projectId: string,
  events: readonly {
    atMs: number;
    status?: string;
    eventType?: string;
    sourceId?: string;
    key?: string;
    data?: string;
  }[],
): Promise<string[]> {
  const ids = events.map(({ atMs, sourceId = '' }, n) => eventId(sourceId, `topic/0/${n}`, atMs));
  for (let n = 0; n < events.length; n++) {
    const {
      atMs,
      status = 'processed',
      eventType = 'order.paid',
      sourceId = null,
      key = null,
      data = '{"n":1}',
    } = events[n]!;
    await db.pool.query(
      `insert into events (project_id, id, occurred_at, source_id, coordinates, event_type, idempotency_key, status, outcome, headers, data)
       values ($1, $2, $3, $4, $5, $6, $7, $8::event_status, case when $8 = 'pending' then null else 'routed' end, '{"x-a":"b"}', $9)`,
      [projectId, ids[n], new Date(atMs), sourceId, `topic/0/${n}`, eventType, key, status, data],
    );
  }
  return ids;
}

/** Inserts a delivery of an event. Returns its id. */
export async function makeDelivery(
  db: Database,
  {
    projectId,
    eventId,
    endpointId,
    status = 'scheduled',
    attempts = 0,
  }: { projectId: string; eventId: string; endpointId: string; status?: string; attempts?: number },
): Promise<string> {
  const id = eventDeliveryId(eventId, endpointId, null);
  await db.pool.query(
    `with e as materialized (select occurred_at, id from events where project_id = $1 and id = $3)
     insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, attempts, claimed_by, next_attempt_at)
     select $1, $2, occurred_at, id, $4, $5::event_delivery_status, $6, case when $5 = 'processing' then 1 end, case when $5 in ('scheduled', 'retry') then now() end
     from e`,
    [projectId, id, eventId, endpointId, status, attempts],
  );
  return id;
}

/** The counter that every write of a project, endpoint, subscription or source raises. */
export async function readConfigVersion(pool: Database['pool']): Promise<string> {
  const { rows } = await pool.query<{ version: string }>('select version from config_version');
  return rows[0]!.version;
}

/** Raises every project's version, as if the notification were lost. */
export async function changeUntold({ pool }: Pick<Database, 'pool'>): Promise<void> {
  await pool.query(
    `with v as (update config_version set version = version + 1 returning version) update project_versions p set version = v.version from v`,
  );
}

/** The configuration of all projects as read by agents, and its version. */
export async function readSnapshot(pool: Database['pool']) {
  const changes = await readChanges(pool, NO_CHANGE, 1_000_000);
  const read = await readProjects(
    pool,
    changes.map(({ id }) => id),
    1_000_000_000,
  );
  const all = <Row>(part: keyof ProjectTexts) =>
    read.flatMap(({ texts }) => (texts?.[part] ?? []).map((text) => JSON.parse(text) as Row));
  return {
    version: changes.at(-1)?.version,
    projects: all<ProjectRecord>('project'),
    endpoints: all<EndpointRecord>('endpoints'),
    subscriptions: all<ActiveSubscription>('subscriptions'),
    sources: all<PausableSource>('sources'),
  };
}

export type Snapshot = Awaited<ReturnType<typeof readSnapshot>>;

export type MadeEvent = Pick<
  NewEvent,
  'projectId' | 'eventType' | 'messageType' | 'endpointId' | 'ownerId' | 'idempotencyKey' | 'data'
> & {
  readonly headers: Readonly<Record<string, string>>;
};

/** Commits one pending event like the API, also for a missing endpoint or owner. */
export async function createEvent(
  pool: Database['pool'],
  { headers, ...event }: MadeEvent,
  windowSeconds: number,
): Promise<{ id: string; duplicate: boolean }> {
  const id = newId();
  const made = {
    id,
    occurredAtMs: timeOfId(id),
    sourceId: null,
    coordinates: 'api',
    digest: null,
    status: 'pending',
    outcome: null,
  } as const;
  const events: NewEvent[] = [{ ...made, headers, notes: null, ...event }];
  const accepted = await acceptEvents(pool, {
    events,
    deliveries: [],
    agentId: 0,
    idempotencyWindowSeconds: windowSeconds,
  });
  if (accepted.created === 'all') return { id, duplicate: false };
  const verdict = (await readVerdicts(pool, events)).get(events[0]!)!;
  return { id: verdict.is === 'duplicate' ? verdict.id : id, duplicate: true };
}
