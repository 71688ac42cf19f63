import { compileFilter, type Filter } from '@gateway/core/events';
import {
  DEFAULT_SIGNATURE,
  DEFAULT_STRATEGY,
  type CircuitBreakerConfig,
  type EndpointAuthentication,
  type EndpointRecord,
  type ProjectRecord,
  type SignatureConfig,
  type Strategy,
  type SubscriptionRecord,
} from '@gateway/store/config';

export interface Endpoint {
  readonly projectId: string;
  readonly id: string;
  readonly url: string;
  readonly ownerId: string | null;
  readonly status: EndpointRecord['status'];
  readonly statusReason: string | null;
  /** Opened on the first delivery: most endpoints are idle. */
  readonly sealedSecrets: EndpointRecord['secrets'];
  readonly sealedAuthentication: EndpointAuthentication | null;
  readonly timeoutMs: number;
  readonly concurrency: number | null;
  readonly strategy: Strategy;
  readonly signature: SignatureConfig;
  readonly limit: Limit | null;
  readonly circuitBreaker: CircuitBreakerConfig | undefined;
}

export interface Limit {
  readonly perSecond: number;
  readonly burst: number;
}

export interface Subscription {
  readonly id: string;
  readonly endpointId: string;
  readonly eventTypes: readonly string[];
  readonly body: Filter | null;
  readonly headers: Filter | null;
}

export interface Project {
  readonly id: string;
  readonly type: ProjectRecord['type'];
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly endpointsOfOwner: ReadonlyMap<string, readonly Endpoint[]>;
  readonly subscriptions: readonly Subscription[];
  /** Matching subscriptions by event type; filled on first use. */
  readonly subscriptionsOfType: Map<string, readonly Subscription[]>;
}

/** A project as routing uses it. @param onInvalid gets each subscription whose filter does not compile: it matches nothing, which is safer than everything */
export function projectOf(
  record: ProjectRecord,
  endpointRows: readonly EndpointRecord[],
  subscriptionRows: readonly SubscriptionRecord[],
  onInvalid: (row: SubscriptionRecord, error: unknown) => void,
): Project {
  const endpoints = endpointRows.map((row) => endpointOf(row, record));
  const endpointsOfOwner = groupBy(endpoints, ({ ownerId }) => ownerId);
  endpointsOfOwner.delete(null);
  const subscriptions = subscriptionRows.flatMap((row) => {
    try {
      return [subscriptionOf(row)];
    } catch (error) {
      onInvalid(row, error);
      return [];
    }
  });
  return {
    id: record.id,
    type: record.type,
    endpoints: new Map(endpoints.map((endpoint) => [endpoint.id, endpoint])),
    endpointsOfOwner: endpointsOfOwner as Map<string, Endpoint[]>,
    subscriptions,
    subscriptionsOfType: new Map(),
  };
}

function subscriptionOf(row: SubscriptionRecord): Subscription {
  const { body = {}, headers = {} } = row.filter ?? {};
  const filterOf = (filter: Readonly<Record<string, unknown>>) => (Object.keys(filter).length > 0 ? compileFilter(filter) : null);
  return {
    id: row.id,
    endpointId: row.endpoint_id,
    eventTypes: row.event_types,
    body: filterOf(body),
    headers: filterOf(lowerNames(headers)),
  };
}

function endpointOf(row: EndpointRecord, project: ProjectRecord): Endpoint {
  return {
    projectId: row.project_id,
    id: row.id,
    url: row.url,
    ownerId: row.owner_id,
    status: row.status,
    statusReason: row.status_reason,
    sealedSecrets: row.secrets,
    sealedAuthentication: row.authentication,
    timeoutMs: row.timeout_ms,
    concurrency: row.concurrency,
    strategy: row.strategy ?? project.config.strategy ?? DEFAULT_STRATEGY,
    signature: project.config.signature ?? DEFAULT_SIGNATURE,
    limit: limitOf(row, project),
    circuitBreaker: project.config.circuit_breaker,
  };
}

/** The burst in parts of the limit. A larger one doubles the rate of the first seconds; with a smaller one few agents reach the limit. */
const BURST_SHARE = 0.1;

function limitOf({ rate_limit: count, rate_limit_duration: seconds }: EndpointRecord, { config }: ProjectRecord): Limit | null {
  const limit = count === null ? config.ratelimit : { count, duration: seconds ?? 1 };
  if (!limit || limit.count === 0) return null;
  return { perSecond: limit.count / limit.duration, burst: Math.max(1, Math.ceil(limit.count * BURST_SHARE)) };
}

function groupBy<Row, Key>(rows: readonly Row[], keyOf: (row: Row) => Key): Map<Key, Row[]> {
  const groups = new Map<Key, Row[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return groups;
}

/** A filter on headers with lower-case names, like those of events. */
export function lowerNames(filter: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(filter).map(([name, operand]) => [
      name.toLowerCase(),
      Array.isArray(operand) && (name === '$or' || name === '$and')
        ? operand.map((one) => lowerNames(one as Record<string, unknown>))
        : operand,
    ]),
  );
}
