import type { Pool } from 'pg';
import type { EndpointRecord, ProjectRecord, SubscriptionRecord } from './snapshot.js';
import { SOURCE_COLUMNS, type SourceRow } from './sources.js';

/** A subscription, perhaps deleted, to explain why it matched. */
export interface NamedSubscription extends SubscriptionRecord {
  readonly name: string;
  readonly updated_at: Date;
  readonly deleted_at: Date | null;
}

/** An endpoint without its secrets. */
export type NamedEndpoint = EndpointRecord & { readonly name: string };

/** The config that routes the events of a project, with names. */
export interface RoutingRecords {
  readonly project: ProjectRecord & { readonly deleted_at: Date | null };
  readonly endpoints: readonly NamedEndpoint[];
  readonly subscriptions: readonly NamedSubscription[];
}

/**
 * The endpoints and subscriptions of a project as of one moment; undefined when there is no such project. Reads the project's rows by primary key. No lock.
 *
 * @param deletedSince includes subscriptions deleted since then
 */
export async function readRouting(pool: Pool, projectId: string, deletedSince: Date | null = null): Promise<RoutingRecords | undefined> {
  type Row = Omit<RoutingRecords['project'], 'deleted_at'> & {
    deleted_at: Date | null;
    endpoints: NamedEndpoint[];
    subscriptions: (Omit<NamedSubscription, 'updated_at' | 'deleted_at'> & { updated_at: string; deleted_at: string | null })[];
  };
  const { rows } = await pool.query<Row>({
    name: 'read-routing',
    text: `select p.id, p.name, p.type, p.config, p.deleted_at,
             (select coalesce(json_agg(e order by e.id), '[]') from (
                select project_id, id, name, url, owner_id, status, status_reason, '[]'::json as secrets, null as authentication, timeout_ms, concurrency, strategy, rate_limit, rate_limit_duration
                from endpoints where project_id = p.id and deleted_at is null) e) as endpoints,
             (select coalesce(json_agg(s order by s.id), '[]') from (
                select project_id, id, name, endpoint_id, event_types, filter, updated_at, deleted_at
                from subscriptions where project_id = p.id and (deleted_at is null or deleted_at >= $2)) s) as subscriptions
           from projects p where p.id = $1`,
    values: [projectId, deletedSince],
  });
  const [row] = rows;
  if (!row) return undefined;
  const { endpoints, subscriptions, ...project } = row;
  const dated = subscriptions.map((it) => ({
    ...it,
    updated_at: new Date(it.updated_at),
    deleted_at: it.deleted_at === null ? null : new Date(it.deleted_at),
  }));
  return { project, endpoints, subscriptions: dated };
}

/** A source of any project by its id; undefined when it or its project is deleted. One index probe per project. No lock. */
export async function findSourceAnywhere(pool: Pool, id: string): Promise<SourceRow | undefined> {
  const { rows } = await pool.query<SourceRow>({
    name: 'find-source-anywhere',
    text: `select ${SOURCE_COLUMNS.map((name) => `s.${name}`).join(', ')}
           from sources s where s.project_id = any (array(select id from projects where deleted_at is null)) and s.id = $1 and s.deleted_at is null`,
    values: [id],
  });
  return rows[0];
}
