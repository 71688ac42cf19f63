import type { Pool } from 'pg';
import type { EndpointRecord, ProjectRecord, SubscriptionRecord } from './snapshot.js';
import { SOURCE_COLUMNS, type SourceRow } from './sources.js';

/** A subscription for whoever asks why it matched: also one that was deleted lately. */
export interface NamedSubscription extends SubscriptionRecord {
  readonly name: string;
  readonly updated_at: Date;
  readonly deleted_at: Date | null;
}

/** An endpoint for whoever asks what an event would meet, without its secrets; one that is deleted is left out. */
export type NamedEndpoint = EndpointRecord & { readonly name: string };

/** What decides where the events of a project go, with the names that people gave. */
export interface RoutingRecords {
  readonly project: ProjectRecord & { readonly deleted_at: Date | null };
  readonly endpoints: readonly NamedEndpoint[];
  readonly subscriptions: readonly NamedSubscription[];
}

/**
 * The endpoints and subscriptions of one project as of one moment; undefined when there is no such project. Cost: the rows of the project, by the first column of
 * their primary keys. No lock.
 *
 * @param deletedSince subscriptions that were deleted at this time or later are in it too; without it none is
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
  return {
    project,
    endpoints,
    subscriptions: subscriptions.map((it) => ({
      ...it,
      updated_at: new Date(it.updated_at),
      deleted_at: it.deleted_at === null ? null : new Date(it.deleted_at),
    })),
  };
}

/** A source by its id alone; undefined when there is none, or its project is deleted. Cost: one index probe per project. */
export async function findSourceAnywhere(pool: Pool, id: string): Promise<SourceRow | undefined> {
  const { rows } = await pool.query<SourceRow>({
    name: 'find-source-anywhere',
    text: `select ${SOURCE_COLUMNS.map((name) => `s.${name}`).join(', ')}
           from sources s where s.project_id = any (array(select id from projects where deleted_at is null)) and s.id = $1 and s.deleted_at is null`,
    values: [id],
  });
  return rows[0];
}
