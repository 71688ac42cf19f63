import type { Pool } from 'pg';
import type { RoutingRule } from '@gateway/core/routing';
import type { EndpointRow } from './endpoints.js';
import type { ProjectRecord } from './projects.js';
import type { SubscriptionRow } from './subscriptions.js';

const NAMED_ENDPOINT = ['id', 'name', 'url', 'owner_id', 'status', 'status_reason'] as const;
const NAMED_SUBSCRIPTION = [
  ...(['project_id', 'id', 'name', 'endpoint_id', 'event_types', 'filter'] as const),
  ...(['is_disabled', 'updated_at'] as const),
] as const;
const ENDPOINT = NAMED_ENDPOINT.join(', ');
const SUBSCRIPTION = [...NAMED_SUBSCRIPTION, 'deleted_at'].join(', ');

export type NamedEndpoint = Pick<EndpointRow, (typeof NAMED_ENDPOINT)[number]>;

export interface NamedSubscription extends Pick<
  SubscriptionRow,
  (typeof NAMED_SUBSCRIPTION)[number]
> {
  readonly deleted_at: Date | null;
}

export interface RoutingRecords {
  readonly project: ProjectRecord & { readonly deleted_at: Date | null };
  readonly endpoints: readonly NamedEndpoint[];
  readonly subscriptions: readonly NamedSubscription[];
}

type RoutingRow = Omit<RoutingRecords['project'], 'deleted_at'> & {
  deleted_at: Date | null;
  endpoints: NamedEndpoint[];
  subscriptions: (Omit<NamedSubscription, 'updated_at' | 'deleted_at'> & {
    updated_at: string;
    deleted_at: string | null;
  })[];
};

/** Consistent. Reads by primary key, without a lock. */
export async function readRouting(
  pool: Pool,
  projectId: string,
): Promise<RoutingRecords | undefined> {
  const { rows } = await pool.query<RoutingRow>({
    name: 'read-routing',
    text: `select p.id, p.name, p.type, p.config, p.deleted_at,
             (select coalesce(json_agg(e order by e.id), '[]') from (
                select ${ENDPOINT} from endpoints where project_id = p.id and deleted_at is null) e) as endpoints,
             (select coalesce(json_agg(s order by s.id), '[]') from (
                select ${SUBSCRIPTION} from subscriptions where project_id = p.id and deleted_at is null) s) as subscriptions
           from projects p where p.id = $1`,
    values: [projectId],
  });
  return rows[0] && recordsOf(rows[0]);
}

export interface RoutingPart extends RoutingRecords {
  readonly subscriptionCount: number;
  readonly isWhole: boolean;
  readonly endpointCount: number;
}

export interface RoutingPartOptions {
  readonly projectId: string;
  readonly eventType: string;
  readonly rule: RoutingRule;
  readonly endpointId: string | null;
  readonly ownerId: string | null;
  readonly deletedSince: Date;
  readonly ofEndpoint: string | null;
  readonly max: number;
  readonly othersMax: number;
}

/**
 * The subscriptions that can match an event type, some others, and the endpoints of both. For other
 * routing rules, the targeted endpoints instead or, if the target is unknown, others as
 * suggestions. Scans the project's subscriptions or endpoints. No lock.
 */
export async function readRoutingPart(
  pool: Pool,
  options: RoutingPartOptions,
): Promise<RoutingPart | undefined> {
  const {
    projectId,
    eventType,
    rule,
    endpointId,
    ownerId,
    deletedSince,
    ofEndpoint,
    max,
    othersMax,
  } = options;
  const first = (condition: string, limit: string) =>
    `(select * from (select ${SUBSCRIPTION} from wanted where ${condition} order by id limit ${limit}) s)`;
  const { rows } = await pool.query<
    RoutingRow & { subscription_count: number; matching_count: number; endpoint_count: number }
  >({
    name: 'read-routing-part',
    text: `with wanted as materialized (
             select ${SUBSCRIPTION}, event_types && $2 as may_match from subscriptions
             where $7::text = 'subscriptions' and project_id = $1 and (deleted_at is null or deleted_at >= $3) and ($4::uuid is null or endpoint_id = $4)
           ),
           s as materialized (select * from ${first('may_match', '$5::int')} a union all select * from ${first('not may_match', '$6::int')} b),
           named as materialized (
             select ${ENDPOINT} from endpoints
             where project_id = $1 and deleted_at is null
               and case $7::text when 'broadcast' then true when 'endpoint_id' then id = $8::uuid when 'owner_id' then owner_id = $9 else false end
           ),
           e as (
             select * from (select * from named order by id limit $5::int) n
             union
             select ${ENDPOINT} from endpoints where project_id = $1 and deleted_at is null and id = any (array(select distinct endpoint_id from s))
             union
             select * from (select ${ENDPOINT} from endpoints where project_id = $1 and deleted_at is null
                            and $7 in ('endpoint_id', 'owner_id') and not exists (select from named) order by id limit $5::int) candidates
           )
           select p.id, p.name, p.type, p.config, p.deleted_at,
                  (select coalesce(json_agg(e order by e.id), '[]') from e) as endpoints,
                  (select coalesce(json_agg(s order by s.id), '[]') from s) as subscriptions,
                  (select count(*) from wanted)::int as subscription_count,
                  (select count(*) from wanted where may_match)::int as matching_count,
                  (select count(*) from named)::int as endpoint_count
           from projects p where p.id = $1`,
    values: [
      projectId,
      patternsOf(eventType),
      deletedSince,
      ofEndpoint,
      max,
      othersMax,
      rule,
      endpointId,
      ownerId,
    ],
  });
  const [row] = rows;
  if (!row) return undefined;
  const {
    subscription_count: subscriptionCount,
    matching_count: matching,
    endpoint_count: endpointCount,
    ...read
  } = row;
  return { ...recordsOf(read), subscriptionCount, isWhole: matching <= max, endpointCount };
}

/** `*`, `a.*` and `a.b` for `a.b`. */
function patternsOf(eventType: string): string[] {
  return [
    '*',
    eventType,
    ...Array.from(eventType.matchAll(/\./g), ({ index }) => `${eventType.slice(0, index)}.*`),
  ];
}

function recordsOf({ endpoints, subscriptions, ...project }: RoutingRow): RoutingRecords {
  const dated = subscriptions.map((it) => ({
    ...it,
    updated_at: new Date(it.updated_at),
    deleted_at: it.deleted_at === null ? null : new Date(it.deleted_at),
  }));
  return { project, endpoints, subscriptions: dated };
}
