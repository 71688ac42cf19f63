import { hash } from 'node:crypto';
import { isSealed } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import type { Rate } from '@gateway/core/process';
import {
  routedOf,
  routedSubscription,
  type RoutedProject,
  type RoutedSubscription,
} from '@gateway/core/routing';
import {
  DEFAULT_SIGNATURE,
  DEFAULT_STRATEGY,
  ENDPOINT_FORMATS,
  isServiceFormat,
  SIGNATURE_SCHEMES,
  type ActiveSubscription,
  type CircuitBreakerConfig,
  type EndpointRecord,
  type ProjectRecord,
  type RoutedProjectRecord,
  type ProjectTexts,
  type SignatureConfig,
  type Strategy,
} from '@gateway/store/config';

/**
 * A stored endpoint with its project's defaults. Its secrets stay encrypted until they are used.
 */
export interface Endpoint extends Omit<
  CamelCased<EndpointRecord>,
  'strategy' | 'rateLimit' | 'rateLimitDuration'
> {
  readonly strategy: Strategy;
  readonly signature: SignatureConfig;
  readonly limit: Rate | null;
  readonly circuitBreaker: CircuitBreakerConfig | undefined;
  /**
   * Why this agent cannot read the endpoint, or null. Other agents deliver to an unreadable
   * endpoint, such as one saved by a newer release.
   */
  unreadable: string | null;
}

type CamelCased<Row> = { readonly [Column in keyof Row as Camel<Column & string>]: Row[Column] };
type Camel<Column extends string> = Column extends `${infer Head}_${infer Rest}`
  ? `${Head}${Capitalize<Camel<Rest>>}`
  : Column;

interface Subscription extends RoutedSubscription {
  readonly functionVersion: string | null;
  readonly ordering: string | null;
}

export interface Project extends RoutedProject<Endpoint> {
  readonly id: string;
  readonly type: ProjectRecord['type'];
  readonly shard: string;
  /** Active subscriptions by the digest of their text. Empty if there are less than `REUSED_MIN`. */
  readonly subscriptionsOfText: ReadonlyMap<string, Subscription>;
  readonly functionVersions: ReadonlyMap<string, string | null>;
  /** The keys by which subscriptions order, in place of their endpoints. */
  readonly orderings: ReadonlyMap<string, string>;
  /** An endpoint or subscription orders: events keep their order up to the commit. */
  readonly isOrdered: boolean;
  readonly eventTypes?: ReadonlySet<string> | undefined;
  readonly unreadable: Set<Endpoint>;
  /**
   * The id of a subscription with an unreadable filter. Other agents then route the events that
   * subscriptions match.
   */
  readonly unreadableFilter: string | undefined;
}

/**
 * The number of subscriptions from which those with unchanged text are reused. Compiling fewer takes
 * a few milliseconds, but their digests would slow the start of an agent with many projects.
 */
const REUSED_MIN = 100;

/**
 * Builds a project for routing and sending. Yields after each record, because compiling a thousand
 * filters takes a tenth of a second. In a project with many, subscriptions with unchanged text are
 * reused from `before`. Throws if a text is not a valid record.
 *
 * @param onInvalid receives each subscription whose filter does not compile
 */
export function* projectOf(
  texts: ProjectTexts,
  before: Pick<Project, 'subscriptionsOfText'> | undefined,
  onInvalid: (row: ActiveSubscription, error: unknown) => void,
): Generator<void, Project> {
  const record = JSON.parse(texts.project[0]!) as RoutedProjectRecord;
  const endpoints: Endpoint[] = [];
  for (const text of texts.endpoints) {
    endpoints.push(endpointOf(JSON.parse(text) as EndpointRecord, record));
    yield;
  }
  const active: Subscription[] = [];
  const subscriptionsOfText = new Map<string, Subscription>();
  let unreadableFilter: string | undefined;
  const invalid = (row: ActiveSubscription, error: unknown) => {
    unreadableFilter = row.id;
    onInvalid(row, error);
  };
  const isReusing = texts.subscriptions.length >= REUSED_MIN;
  for (const text of texts.subscriptions) {
    const digest = isReusing ? hash('sha256', text, 'base64') : '';
    const made =
      before?.subscriptionsOfText.get(digest) ??
      subscriptionOf(JSON.parse(text) as ActiveSubscription, invalid);
    if (made) active.push(made);
    if (made && isReusing) subscriptionsOfText.set(digest, made);
    yield;
  }
  const routed = routedOf(endpoints, active);
  const eventTypes =
    record.config.unknown_event_types === 'reject' ? new Set(texts.event_types) : undefined;
  const functionVersions = new Map(active.map(({ id, functionVersion }) => [id, functionVersion]));
  const orderings = new Map(
    active.flatMap(({ id, ordering }) => (ordering === null ? [] : [[id, ordering] as const])),
  );
  const unreadable = new Set(endpoints.filter((endpoint) => endpoint.unreadable));
  const { id, type, shard } = record;
  return {
    id,
    type,
    shard,
    eventTypes,
    subscriptionsOfText,
    functionVersions,
    orderings,
    isOrdered: orderings.size > 0 || endpoints.some(({ ordering }) => ordering !== null),
    unreadable,
    unreadableFilter,
    ...routed,
  };
}

function subscriptionOf(
  row: ActiveSubscription,
  onInvalid: (row: ActiveSubscription, error: unknown) => void,
): Subscription | undefined {
  const routed = routedSubscription(row, onInvalid);
  return (
    routed && {
      ...routed,
      functionVersion: row.function_version,
      ordering: row.ordering ?? null,
    }
  );
}

/**
 * The columns are listed explicitly, because objects built in a loop take twice the memory, and
 * reading one of their fields takes a hundred times longer.
 */
function endpointOf(row: EndpointRecord, { config }: ProjectRecord): Endpoint {
  const { rate_limit: count, rate_limit_duration: seconds } = row;
  const endpoint: Endpoint = {
    projectId: row.project_id,
    id: row.id,
    url: row.url,
    ownerId: row.owner_id,
    status: row.status,
    statusReason: row.status_reason,
    secrets: row.secrets,
    authentication: row.authentication,
    mtlsClientCert: row.mtls_client_cert,
    format: row.format,
    signatures: row.signatures,
    signaturePrefix: row.signature_prefix,
    headers: row.headers,
    timeoutMs: row.timeout_ms,
    concurrency: row.concurrency,
    strategy: row.strategy ?? config.strategy ?? DEFAULT_STRATEGY,
    signature: config.signature ?? DEFAULT_SIGNATURE,
    limit: limitOf(
      count !== null
        ? { count, duration: seconds ?? 1 }
        : isServiceFormat(row.format)
          ? ONE_A_SECOND
          : config.ratelimit,
    ),
    circuitBreaker: config.circuit_breaker,
    ordering: row.ordering ?? null,
    orderingFailure: row.ordering_failure ?? null,
    orderingParkAfterSeconds: row.ordering_park_after_seconds ?? null,
    batch: row.batch ?? null,
    unreadable: null,
  };
  endpoint.unreadable = whyUnreadable(endpoint);
  return endpoint;
}

/** Slack takes one message a second. */
const ONE_A_SECOND = { count: 1, duration: 1 };

export function whyNotOpened(error: unknown): string {
  return error instanceof GatewayError
    ? error.message
    : 'its secrets have a form that this version does not know';
}

/**
 * Values known to this version. A newer release may have saved others, which make the endpoint
 * unreadable: a guess would send requests that it rejects, or lose deliveries.
 */
const KNOWN = {
  status: ['active', 'inactive', 'paused'],
  authentication: ['api_key', 'basic', 'bearer', 'oauth2', 'secret_url'],
  format: ENDPOINT_FORMATS,
  strategy: ['linear', 'exponential'],
  'signature hash': ['SHA256', 'SHA512'],
  'signature encoding': ['hex', 'base64'],
  signature: SIGNATURE_SCHEMES,
} as const;

function whyUnreadable({
  status,
  strategy,
  signature,
  secrets,
  authentication,
  mtlsClientCert: certificate,
  format,
  signatures,
  headers,
}: Endpoint): string | null {
  const values: { readonly [Name in keyof typeof KNOWN]: string | undefined } = {
    status,
    authentication: authentication?.type,
    format: format ?? undefined,
    strategy: strategy.type,
    'signature hash': signature.hash,
    'signature encoding': signature.encoding,
    signature: signatures?.find((scheme) => !SIGNATURE_SCHEMES.includes(scheme)),
  };
  for (const [name, value] of Object.entries(values)) {
    const known: readonly string[] = KNOWN[name as keyof typeof KNOWN];
    if (value !== undefined && !known.includes(value))
      return `its ${name} ${JSON.stringify(value)} is not known to this version`;
  }
  // Only the format is checked here. The first delivery shows whether the key decrypts the secrets.
  const sealed = [
    ...secrets.flatMap(({ value, ed25519 }) => [value, ...(ed25519 ? [ed25519.private_key] : [])]),
    ...(headers ?? []).map(({ value }) => value),
    ...(certificate ? [certificate.client_key] : []),
  ];
  return sealed.every((text) => typeof text === 'string' && isSealed(text))
    ? null
    : 'a secret is sealed in a way that this version does not know';
}

/**
 * The burst as a share of the limit. A larger one would double the rate in the first seconds; with
 * a smaller one, a small number of agents could not reach the limit.
 */
const BURST_SHARE = 0.1;

function limitOf(limit: ProjectRecord['config']['ratelimit']): Rate | null {
  if (!limit || limit.count === 0) return null;
  return {
    perSecond: limit.count / limit.duration,
    burst: Math.max(1, Math.ceil(limit.count * BURST_SHARE)),
  };
}
