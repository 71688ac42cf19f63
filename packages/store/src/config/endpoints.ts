import type { Knex } from 'knex';
import type { Pool } from 'pg';
import { newId } from '@gateway/core/events';
import { factsText, heard, waiting, type NotificationFacts } from './notifications.js';
import type { OwnerShare } from './owners.js';
import type { Strategy } from './projects.js';
import {
  column,
  countOf,
  givenNumber,
  projectTable,
  type Among,
  type FieldsOf,
  type RecordOf,
  type RowOf,
} from './soft-deletes.js';
import { sortableNumber, type PageRequest, type PageResult } from '../pagination/page.js';
import { deleteSubscriptionsOf } from './subscriptions.js';

export interface SecretRecord {
  readonly id: string;
  readonly value: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  /** A key that signs while the secret does, if the endpoint has signatures with keys. */
  readonly ed25519?: {
    /** Raw, in base64. */
    readonly public_key: string;
    /** PKCS #8 in base64, sealed. */
    readonly private_key: string;
  };
}

/** The first has an HMAC of the body alone beside it. */
export const SIGNATURE_SCHEMES = ['hmac', 'ed25519', 'rfc9421-hmac', 'rfc9421-ed25519'] as const;
export type SignatureScheme = (typeof SIGNATURE_SCHEMES)[number];

export interface EndpointHeader {
  readonly name: string;
  /** Sealed. */
  readonly value: string;
  /** Parts of the message take their place in the value. */
  readonly is_template?: boolean;
}

/** Secrets are sealed. */
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
  | { readonly type: 'oauth2'; readonly oauth2: OAuth2ClientCredentials }
  /** Requests go to this URL; that of the endpoint says only where. */
  | { readonly type: 'secret_url'; readonly secret_url: { readonly url: string } };

/** Services whose messages the gateway makes of events. */
export const SERVICE_FORMATS = ['slack', 'teams', 'pagerduty', 'opsgenie'] as const;
export type ServiceFormat = (typeof SERVICE_FORMATS)[number];
export type CloudEventsFormat = 'cloudevents' | 'cloudevents_binary';
export const ENDPOINT_FORMATS = [
  ...SERVICE_FORMATS,
  'cloudevents',
  'cloudevents_binary',
] as const satisfies readonly (ServiceFormat | CloudEventsFormat)[];
export type EndpointFormat = (typeof ENDPOINT_FORMATS)[number];

export function isServiceFormat(format: EndpointFormat | null): format is ServiceFormat {
  return (SERVICE_FORMATS as readonly (string | null)[]).includes(format);
}

export interface EndpointBatch {
  readonly max_events: number;
  readonly max_bytes: number;
  readonly max_wait_ms: number;
}

export interface OAuth2ClientCredentials {
  readonly url: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly client_auth?: 'basic' | 'post';
  readonly scope?: string;
  readonly audience?: string;
}

export interface StoredClientCertificate {
  /** PEM, leaf first. */
  readonly client_cert: string;
  /** PEM, sealed. */
  readonly client_key: string;
  readonly expires_at: string;
}

/** Agents keep these columns in memory. */
export const endpointRecord = {
  url: column<string>({ isSearched: true }),
  owner_id: column<string | null>({ isSearched: true }),
  status: column<'active' | 'inactive' | 'paused'>(),
  status_reason: column<string | null>(),
  secrets: column<readonly SecretRecord[]>({ isJson: true }),
  authentication: column<EndpointAuthentication | null>({ isJson: true }),
  mtls_client_cert: column<StoredClientCertificate | null>({ isJson: true }),
  /** Null sends the data of the event. */
  format: column<EndpointFormat | null>(),
  /** Null is `hmac`. */
  signatures: column<readonly SignatureScheme[] | null>({ isJson: true }),
  /** Null is `webhook`. */
  signature_prefix: column<string | null>(),
  headers: column<readonly EndpointHeader[] | null>({ isJson: true }),
  timeout_ms: column<number>(),
  concurrency: column<number | null>(),
  strategy: column<Strategy | null>({ isJson: true }),
  /** Requests per `rate_limit_duration`. 0 means unlimited; null applies the project's limit. */
  rate_limit: column<number | null>(),
  /** Seconds. Null means one. */
  rate_limit_duration: column<number | null>(),
  /** `message.key`, or a path that begins with `data.` or `headers.`. Null: not ordered. */
  ordering: column<string | null>(),
  /** Null means `park`. */
  ordering_failure: column<'park' | 'skip' | null>(),
  ordering_park_after_seconds: column<number | null>(),
  /** Null: each event has a request of its own. */
  batch: column<EndpointBatch | null>({ isJson: true }),
};
const columns = {
  name: column<string>({ isSearched: true }),
  description: column<string>(),
  ...endpointRecord,
};

export interface EndpointRecord extends RecordOf<typeof endpointRecord> {}
export interface EndpointRow extends RowOf<typeof columns> {}
export type EndpointFields = FieldsOf<
  EndpointRow,
  'name' | 'url' | 'secrets',
  'status' | 'status_reason'
>;

/**
 * Besides their creation. `failures` are those of the last day, and `last_request` is the ten
 * minutes of the newest one.
 */
export const ENDPOINT_SORTS = {
  name: 'lower(name)',
  failures: sortableNumber(givenNumber('endpoints')),
  last_request: sortableNumber(givenNumber('endpoints')),
};

const OF_LAST_DAY = `from activity a where a.project_id = $1 and a.endpoint_id = u.id and a.at >= now() - interval '1 day' and a.kind = 'attempt'`;
/** Each with the number of an endpoint `u.id`. */
const ACTIVITY_SORTS = {
  failures: `select sum(a.n)::float8 as n ${OF_LAST_DAY} and a.status = 'failure'`,
  last_request: `select extract(epoch from max(a.at))::float8 as n ${OF_LAST_DAY}`,
} as const satisfies Partial<Record<keyof typeof ENDPOINT_SORTS, string>>;

const { rows, ...table } = projectTable<EndpointRow, EndpointFields>(
  'endpoints',
  columns,
  ENDPOINT_SORTS,
);
export const { find: findEndpoint, update: updateEndpoint } = table;

/** An order by activity first reads it for all endpoints of the project. */
export async function listEndpoints(
  { knex, data }: { readonly knex: Knex; readonly data: Pool },
  projectId: string,
  where: Parameters<typeof table.list>[2],
  page: PageRequest,
  search?: string,
  among?: Among,
): Promise<PageResult<EndpointRow>> {
  const activity = ACTIVITY_SORTS[page.by as keyof typeof ACTIVITY_SORTS] as string | undefined;
  if (activity === undefined) return table.list(knex, projectId, where, page, search, among);
  const ids = await endpointIds(knex, projectId);
  const { rows: found } = await data.query<{ id: string; n: number | null }>(
    `select u.id, l.n from unnest($2::uuid[]) u(id) cross join lateral (${activity}) l where l.n is not null`,
    [projectId, ids],
  );
  const numbers = Object.fromEntries(found.map(({ id, n }) => [id, n!]));
  return table.list(knex, projectId, where, page, search, among, numbers);
}

/** At most `limits.endpoints_per_project`. */
export function endpointIds(knex: Knex, projectId: string): Promise<string[]> {
  return knex('endpoints')
    .where({ project_id: projectId })
    .whereNull('deleted_at')
    .pluck<string[]>('id');
}

export interface LoggedEndpoint extends Pick<EndpointRow, 'id' | 'name' | 'url' | 'status_reason'> {
  readonly status: EndpointRow['status'] | 'deleted';
}

/** Including deleted ones. Reads by primary key, without a lock. */
export async function findLoggedEndpoints(
  pool: Pool,
  projectId: string,
  ids: Iterable<string>,
): Promise<ReadonlyMap<string, LoggedEndpoint>> {
  const unique = [...new Set(ids)];
  if (unique.length === 0) return new Map();
  const { rows } = await pool.query<LoggedEndpoint>({
    name: 'find-logged-endpoints',
    text: `select id, name, url, case when deleted_at is null then status::text else 'deleted' end as status, status_reason
           from endpoints where project_id = $1 and id = any ($2::uuid[])`,
    values: [projectId, unique],
  });
  return new Map(rows.map((row) => [row.id, row]));
}

/** Without an `endpointId`, an endpoint of the owner. One index probe, no lock. */
export async function hasTarget(
  pool: Pool,
  {
    projectId,
    endpointId,
    ownerId,
  }: {
    readonly projectId: string;
    readonly endpointId: string | null;
    readonly ownerId: string | null;
  },
): Promise<boolean> {
  const [column, value] =
    endpointId === null ? (['owner_id', ownerId] as const) : (['id', endpointId] as const);
  const { rowCount } = await pool.query({
    name: `has-target-${column}`,
    text: `select from endpoints where project_id = $1 and ${column} = $2 and deleted_at is null limit 1`,
    values: [projectId, value],
  });
  return rowCount === 1;
}

/**
 * @throws GatewayError `project_full` if the project has `max` endpoints or the owner has
 *   `share.max`
 */
export function insertEndpoint(
  knex: Knex,
  projectId: string,
  fields: Parameters<typeof table.insert>[2],
  max?: number,
  share?: OwnerShare,
): Promise<EndpointRow> {
  const ofOwner = share && {
    where: { owner_id: share.ownerId },
    things: 'endpoints of this owner',
    max: share.max,
    setting: 'limits.endpoints_per_owner',
  };
  return table.insert(knex, projectId, fields, max, ofOwner);
}

export function countClientCertificates(knex: Knex, projectId: string): Promise<number> {
  const stored = knex('endpoints').where({ project_id: projectId, deleted_at: null });
  return countOf(stored.whereNotNull('mtls_client_cert'));
}

/** Deliveries are unaffected. Activation ends the notification that it is disabled. */
export function setEndpointStatus(
  knex: Knex,
  projectId: string,
  id: string,
  { status, reason }: { status: EndpointRow['status']; reason: string | null },
): Promise<EndpointRow | undefined> {
  return knex.transaction(async (trx) => {
    const where = { project_id: projectId, id };
    const row = await rows.update(trx, where, { status, status_reason: reason });
    if (row?.status === 'active')
      await trx('notifications')
        .where({ kind: 'endpoint_disabled', subject: id, ended_at: null })
        .update({ ended_at: trx.fn.now() });
    return row;
  });
}

/**
 * False unless it is active. `facts` add a notification; without `isMailed`, only operational events
 * tell of it. Locks the endpoint's row.
 */
export async function deactivateEndpoint(
  pool: Pool,
  projectId: string,
  id: string,
  reason: string,
  facts: NotificationFacts | null = null,
  isMailed = true,
): Promise<boolean> {
  const { rows } = await pool.query(
    `with e as (
       update endpoints set status = 'inactive', status_reason = $3, updated_at = now() where project_id = $1 and id = $2 and status = 'active' returning 1
     ),
     n as (
       insert into notifications (id, kind, project_id, subject, facts, status, next_attempt_at)
       select $4, 'endpoint_disabled', $1, $2::text, $5::jsonb, ${waiting('$6')} from e where $5::jsonb is not null and ${heard('$6', '$1', '= $1')}
       on conflict (kind, subject) where ended_at is null
       do update set facts = excluded.facts, created_at = now(), status = excluded.status, next_attempt_at = excluded.next_attempt_at, sent_at = null
     )
     select from e`,
    [projectId, id, reason, newId(), facts && factsText(facts), isMailed],
  );
  return rows.length > 0;
}

/** Also its subscriptions. */
export function deleteEndpoint(knex: Knex, projectId: string, id: string): Promise<boolean> {
  return knex.transaction(async (trx) => {
    await deleteSubscriptionsOf(trx, projectId, id);
    return rows.delete(trx, { project_id: projectId, id });
  });
}
