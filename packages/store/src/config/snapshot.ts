import type pg from 'pg';
import { newId } from '@gateway/core/events';
import { factsText, type NotificationFacts } from './notifications.js';

/** `linear` repeats the delay, `exponential` doubles it up to `max_seconds`. */
export interface Strategy {
  readonly type: 'linear' | 'exponential';
  readonly duration: number;
  readonly retry_count: number;
  readonly max_seconds?: number;
}

/** The plain HMAC header next to the Standard Webhooks signature. */
export interface SignatureConfig {
  readonly header: string;
  readonly hash: 'SHA256' | 'SHA512';
  readonly encoding: 'hex' | 'base64';
}

/** `count` requests to an endpoint per `duration` seconds, across all agents. */
export interface RateLimit {
  readonly count: number;
  readonly duration: number;
}

/** Thresholds of a circuit breaker; missing values default to the instance's. */
export interface CircuitBreakerConfig {
  /** Percentage of failed requests. */
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
  /** Days to keep finished events; default: `retention.days`. */
  readonly retention?: { readonly days: number };
  /** Default: accept. */
  readonly unknown_event_types?: 'accept' | 'reject';
}

export const DEFAULT_STRATEGY: Strategy = {
  type: 'exponential',
  duration: 10,
  retry_count: 10,
  max_seconds: 7200,
};
export const DEFAULT_SIGNATURE: SignatureConfig = {
  header: 'X-Gateway-Signature',
  hash: 'SHA256',
  encoding: 'hex',
};

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

/** Authentication of requests; values are sealed. */
export type EndpointAuthentication =
  | {
      readonly type: 'api_key';
      readonly api_key: { readonly header_name: string; readonly header_value: string };
    }
  | {
      readonly type: 'basic';
      readonly basic: { readonly username: string; readonly password: string };
    }
  | { readonly type: 'bearer'; readonly bearer: { readonly token: string } }
  | { readonly type: 'oauth2'; readonly oauth2: OAuth2ClientCredentials };

export interface OAuth2ClientCredentials {
  readonly url: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly scope?: string;
  readonly audience?: string;
}

export interface StoredClientCertificate {
  /** PEM chain, leaf first. */
  readonly client_cert: string;
  /** PEM, sealed. */
  readonly client_key: string;
  readonly expires_at: string;
}

export interface EndpointRecord {
  readonly project_id: string;
  readonly id: string;
  readonly url: string;
  readonly owner_id: string | null;
  readonly status: 'active' | 'inactive' | 'paused';
  readonly status_reason: string | null;
  readonly secrets: readonly SecretRecord[];
  readonly authentication: EndpointAuthentication | null;
  readonly mtls_client_cert: StoredClientCertificate | null;
  readonly timeout_ms: number;
  readonly concurrency: number | null;
  readonly strategy: Strategy | null;
  /** Requests per `rate_limit_duration`; 0: unlimited; null: the project's limit. */
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

export interface ActiveSubscription extends SubscriptionRecord {
  /** Time of the last change; null without a function. */
  readonly function_version: string | null;
}

export interface SourceRecord {
  readonly project_id: string;
  readonly id: string;
  readonly name: string;
  /** `{ type, workers, [type]: connection }`, secret fields sealed. */
  readonly pub_sub: { readonly type: string; readonly workers?: number } & Readonly<
    Record<string, unknown>
  >;
  readonly body_function: string | null;
  readonly is_disabled: boolean;
  readonly keep_messages: boolean;
}

export interface PausableSource extends SourceRecord {
  /** Consecutive pauses; a person's change that ends the pause resets it. */
  readonly pauses: number;
  readonly is_paused: boolean;
  /**
   * Milliseconds until it resumes, as of the snapshot, 0 or less when due; null if it is not
   * paused, or paused by a person.
   */
  readonly resumes_in_ms: number | null;
  readonly pause_reason: string | null;
}

/**
 * A project's records, each as its own JSON text, which keeps each text short to parse: a
 * `ProjectRecord`, `EndpointRecord`s, `ActiveSubscription`s, `PausableSource`s, and names of event
 * types if unknown ones are rejected.
 */
export type ProjectTexts = Readonly<
  Record<'project' | 'endpoints' | 'subscriptions' | 'sources' | 'event_types', readonly string[]>
>;

/** A project and the counter value of its last write; also the page cursor of `readChanges`. */
export interface ProjectVersion {
  readonly id: string;
  readonly version: string;
}

export const NO_CHANGE: ProjectVersion = {
  id: '00000000-0000-0000-0000-000000000000',
  version: '0',
};

/**
 * Returns the projects changed after a cursor, including deleted projects, by last change. No lock.
 */
export async function readChanges(
  pool: pg.Pool,
  after: ProjectVersion,
  limit: number,
): Promise<ProjectVersion[]> {
  const { rows } = await pool.query<ProjectVersion>({
    name: 'read-changes',
    text: `select project_id as id, version from project_versions where (version, project_id) > ($1::bigint, $2::uuid) order by version, project_id limit $3`,
    values: [after.version, after.id, limit],
  });
  return rows;
}

/**
 * Returns the counter that every write to projects, endpoints, subscriptions and sources raises.
 */
export async function readConfigVersion(pool: pg.Pool): Promise<bigint> {
  const { rows } = await pool.query<{ version: string }>({
    name: 'config-version',
    text: 'select version from config_version',
  });
  return BigInt(rows[0]!.version);
}

export interface ReadProject {
  readonly id: string;
  /** Null: deleted, or larger than requested. */
  readonly texts: ProjectTexts | null;
  readonly bytes: number;
}

/**
 * Reads each project as of one moment, without deleted rows and disabled subscriptions: the first,
 * and more while all texts have at most `maxBytes`. One row per record: the driver parses a row of
 * megabytes in one go. No lock.
 */
export async function readProjects(
  pool: pg.Pool,
  ids: readonly string[],
  maxBytes: number,
): Promise<ReadProject[]> {
  const records = (part: keyof ProjectTexts, columns: string, condition = 'true') =>
    `select u.n, '${part}', row_to_json(r)::text
     from live u join lateral (select ${columns} from ${part} where project_id = u.id and deleted_at is null and ${condition}) r on true`;
  type Row = Pick<ReadProject, 'id' | 'bytes'> & {
    fits: boolean;
    part: keyof ProjectTexts | null;
    text: string;
  };
  const { rows } = await pool.query<Row>({
    name: 'read-projects',
    text: `with asked as (select * from unnest($1::uuid[]) with ordinality u(id, n)),
           live as (select asked.n, p.id, p.name, p.type, p.config from asked join projects p on p.id = asked.id and p.deleted_at is null),
           records(n, part, text) as materialized (
             select n, 'project', json_build_object('id', id, 'name', name, 'type', type, 'config', config)::text from live
             union all ${records('endpoints', 'project_id, id, url, owner_id, status, status_reason, secrets, authentication, mtls_client_cert, timeout_ms, concurrency, strategy, rate_limit, rate_limit_duration')}
             union all ${records('subscriptions', 'project_id, id, endpoint_id, event_types, filter, case when function is not null then updated_at end as function_version', 'not is_disabled')}
             union all ${records('sources', 'project_id, id, name, pub_sub, body_function, is_disabled, keep_messages, pauses, paused_at is not null as is_paused, pause_reason, extract(epoch from resumes_at - now()) * 1000 as resumes_in_ms')}
             union all select u.n, 'event_types', t.name from live u join event_types t on t.project_id = u.id and u.config ->> 'unknown_event_types' = 'reject'
           ),
           sized as (select n, sum(octet_length(text)) as bytes from records group by n),
           measured as (select id, n, coalesce(bytes, 0)::float8 as bytes, coalesce(sum(bytes) over (order by n), 0) <= $2::bigint as fits from asked left join sized using (n))
           select m.id, m.bytes, m.fits, r.part, r.text from measured m left join records r on r.n = m.n and m.fits order by m.n`,
    values: [ids, maxBytes],
  });
  const read: (ReadProject & { texts: Record<keyof ProjectTexts, string[]> | null })[] = [];
  for (const { id, bytes, fits, part, text } of rows) {
    if (read.at(-1)?.id !== id) {
      if (!fits && read.length > 0) break;
      read.push({
        id,
        bytes,
        texts: part && {
          project: [],
          endpoints: [],
          subscriptions: [],
          sources: [],
          event_types: [],
        },
      });
    }
    if (part) read.at(-1)!.texts![part].push(text);
  }
  return read;
}

/**
 * Deactivates an endpoint after a 410 response, with a notification if `facts` are given; false if
 * it was not active. Lock: its row.
 */
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

export interface NamedSubscription extends SubscriptionRecord {
  readonly name: string;
  readonly is_disabled: boolean;
  readonly updated_at: Date;
  readonly deleted_at: Date | null;
}

export type NamedEndpoint = Pick<
  EndpointRecord,
  'id' | 'url' | 'owner_id' | 'status' | 'status_reason'
> & { readonly name: string };

export interface RoutingRecords {
  readonly project: ProjectRecord & { readonly deleted_at: Date | null };
  readonly endpoints: readonly NamedEndpoint[];
  readonly subscriptions: readonly NamedSubscription[];
}
