import type pg from 'pg';
import { newId } from '@gateway/core/events';
import { factsText, type NotificationFacts } from './notifications.js';

/** Retry policy: `linear` waits the same time, `exponential` doubles it up to `max_seconds`. */
export interface Strategy {
  readonly type: 'linear' | 'exponential';
  readonly duration: number;
  readonly retry_count: number;
  readonly max_seconds?: number;
}

/** The plain HMAC header beside the Standard Webhooks signature. */
export interface SignatureConfig {
  readonly header: string;
  readonly hash: 'SHA256' | 'SHA512';
  readonly encoding: 'hex' | 'base64';
}

/** At most `count` requests to an endpoint in `duration` seconds, by all agents together. */
export interface RateLimit {
  readonly count: number;
  readonly duration: number;
}

/** When the circuit breaker of an endpoint opens. Missing values default to the settings of the instance. */
export interface CircuitBreakerConfig {
  /** Percentage of failed requests; 0: never opens. */
  readonly failure_threshold?: number;
  readonly minimum_request_count?: number;
  /** Minutes over which requests are counted. */
  readonly observability_window?: number;
  readonly error_timeout?: number;
}

export interface ProjectConfig {
  readonly strategy?: Strategy;
  readonly signature?: SignatureConfig;
  readonly ratelimit?: RateLimit | null;
  readonly circuit_breaker?: CircuitBreakerConfig;
  /** Days that finished events are kept; default: `retention.days`. */
  readonly retention?: { readonly days: number };
}

export const DEFAULT_STRATEGY: Strategy = { type: 'exponential', duration: 10, retry_count: 10, max_seconds: 7200 };
export const DEFAULT_SIGNATURE: SignatureConfig = { header: 'X-Gateway-Signature', hash: 'SHA256', encoding: 'hex' };

export interface ProjectRecord {
  readonly id: string;
  readonly name: string;
  readonly type: 'outgoing' | 'incoming';
  readonly config: ProjectConfig;
}

export interface SecretRecord {
  readonly id: string;
  readonly value: string;
  readonly created_at: string;
  readonly expires_at: string | null;
}

/** How requests authenticate to the endpoint; the values are sealed. */
export type EndpointAuthentication =
  | { readonly type: 'api_key'; readonly api_key: { readonly header_name: string; readonly header_value: string } }
  | { readonly type: 'basic'; readonly basic: { readonly username: string; readonly password: string } }
  | { readonly type: 'bearer'; readonly bearer: { readonly token: string } };

export interface EndpointRecord {
  readonly project_id: string;
  readonly id: string;
  readonly url: string;
  readonly owner_id: string | null;
  readonly status: 'active' | 'inactive' | 'paused';
  readonly status_reason: string | null;
  readonly secrets: readonly SecretRecord[];
  readonly authentication: EndpointAuthentication | null;
  readonly timeout_ms: number;
  readonly concurrency: number | null;
  readonly strategy: Strategy | null;
  /** Requests in `rate_limit_duration`; 0: no limit; null: the project's. */
  readonly rate_limit: number | null;
  /** Seconds; null: one. */
  readonly rate_limit_duration: number | null;
}

export interface SubscriptionFilter {
  readonly body?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, unknown>>;
}

export interface SubscriptionRecord {
  readonly project_id: string;
  readonly id: string;
  readonly endpoint_id: string;
  readonly event_types: readonly string[];
  readonly filter: SubscriptionFilter | null;
}

export interface SourceRecord {
  readonly project_id: string;
  readonly id: string;
  readonly name: string;
  /** `{ type, workers, [type]: connection }`, secret fields of the connection sealed. */
  readonly pub_sub: { readonly type: string; readonly workers?: number } & Readonly<Record<string, unknown>>;
  readonly body_function: string | null;
  readonly is_disabled: boolean;
}

export interface PausableSource extends SourceRecord {
  /** Consecutive pauses; a person's change resets it to 0. */
  readonly pauses: number;
  /** Milliseconds until it resumes, as of the snapshot, 0 or less when due; null when it is not paused. */
  readonly resumes_in_ms: number | null;
  readonly pause_reason: string | null;
}

export interface Snapshot {
  readonly version: string;
  readonly projects: readonly ProjectRecord[];
  readonly endpoints: readonly EndpointRecord[];
  readonly subscriptions: readonly SubscriptionRecord[];
  readonly sources: readonly PausableSource[];
}

/** A counter that every write to projects, endpoints, subscriptions and sources increments. */
export async function readConfigVersion(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ version: string }>({ name: 'config-version', text: 'select version from config_version' });
  return rows[0]!.version;
}

/** All rows that are not deleted, in one statement and so of one moment. No lock. */
export async function readSnapshot(pool: pg.Pool): Promise<Snapshot> {
  const list = (columns: string, table: string) =>
    `(select coalesce(json_agg(r), '[]') from (select ${columns} from ${table} t join live p on p.id = ${table === 'projects' ? 't.id' : 't.project_id'} where t.deleted_at is null) r)`;
  const { rows } = await pool.query<Snapshot>({
    name: 'read-snapshot',
    text: `with live as (select id from projects where deleted_at is null)
           select (select version from config_version) as version,
             ${list('t.id, t.name, t.type, t.config', 'projects')} as projects,
             ${list('t.project_id, t.id, t.url, t.owner_id, t.status, t.status_reason, t.secrets, t.authentication, t.timeout_ms, t.concurrency, t.strategy, t.rate_limit, t.rate_limit_duration', 'endpoints')} as endpoints,
             ${list('t.project_id, t.id, t.endpoint_id, t.event_types, t.filter', 'subscriptions')} as subscriptions,
             ${list('t.project_id, t.id, t.name, t.pub_sub, t.body_function, t.is_disabled, t.pauses, t.pause_reason, extract(epoch from t.resumes_at - now()) * 1000 as resumes_in_ms', 'sources')} as sources`,
  });
  return rows[0]!;
}

/** Deactivates an endpoint after its response 410, with a notification if `facts` are given; false when it was not active. Lock: its row. */
export async function deactivateEndpoint(
  pool: pg.Pool,
  projectId: string,
  id: string,
  reason: string,
  facts: NotificationFacts | null = null,
): Promise<boolean> {
  const { rows } = await pool.query(
    `with e as (
       update endpoints set status = 'inactive', status_reason = $3, updated_at = now() where project_id = $1 and id = $2 and status = 'active' returning 1
     ),
     n as (
       insert into notifications (id, kind, project_id, subject, facts, ended_at)
       select $4, 'endpoint_disabled', $1, $2::text, $5::jsonb, now() from e where $5::jsonb is not null
     )
     select from e`,
    [projectId, id, reason, newId(), facts && factsText(facts)],
  );
  return rows.length > 0;
}

/** A subscription, perhaps deleted, to explain why it matched. */
export interface NamedSubscription extends SubscriptionRecord {
  readonly name: string;
  readonly updated_at: Date;
  readonly deleted_at: Date | null;
}

export type NamedEndpoint = EndpointRecord & { readonly name: string };

/** The config that routes the events of a project, with names. */
export interface RoutingRecords {
  readonly project: ProjectRecord & { readonly deleted_at: Date | null };
  readonly endpoints: readonly NamedEndpoint[];
  readonly subscriptions: readonly NamedSubscription[];
}

/** The endpoints and subscriptions of a project, those deleted since then included, as of one moment. Reads rows by primary key. No lock. */
export async function readRouting(pool: pg.Pool, projectId: string, deletedSince: Date | null = null): Promise<RoutingRecords | undefined> {
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
