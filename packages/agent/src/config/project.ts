import { routedProject, type RoutedProject } from '@gateway/core/routing';
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

export interface Project extends RoutedProject<Endpoint> {
  readonly id: string;
  readonly type: ProjectRecord['type'];
}

/** A project as routing and sending use it. @param onInvalid gets each subscription whose filter does not compile */
export function projectOf(
  record: ProjectRecord,
  endpoints: readonly EndpointRecord[],
  subscriptions: readonly SubscriptionRecord[],
  onInvalid: (row: SubscriptionRecord, error: unknown) => void,
): Project {
  const routed = routedProject(
    endpoints.map((row) => endpointOf(row, record)),
    subscriptions,
    onInvalid,
  );
  return { id: record.id, type: record.type, ...routed };
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
