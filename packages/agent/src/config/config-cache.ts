import { compileFilter, type Filter } from '@gateway/core/events';
import type { Log } from '@gateway/core/logging';
import { backoffMs } from '@gateway/core/process';
import {
  DEFAULT_SIGNATURE,
  DEFAULT_STRATEGY,
  readConfigVersion,
  readSnapshot,
  type CircuitBreakerConfig,
  type EndpointAuthentication,
  type EndpointRecord,
  type ProjectRecord,
  type SignatureConfig,
  type Snapshot,
  type PausableSource,
  type Strategy,
  type SubscriptionRecord,
} from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';
import { failAgain, type Failing } from '../model/failing.js';

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

/** The configuration in memory, so that routing and sending never ask Postgres. Refreshed on notifications, and at an interval in case one was lost. */
export class ConfigCache {
  projects: ReadonlyMap<string, Project> = new Map();
  sources: readonly PausableSource[] = [];
  readonly #listeners: (() => void)[] = [];
  readonly #channels = new Map<string, (payload: string) => void>();
  #version = '';
  #reading: Promise<void> | undefined;
  /** A read that has not started yet: it follows the running one. */
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #client: Awaited<ReturnType<Database['connect']>> | undefined;
  #closed = false;
  /** Null when the last read succeeded. */
  failing: Failing | null = null;

  constructor(
    private readonly database: Database,
    private readonly options: { readonly intervalMs: number; readonly log: Log },
  ) {}

  /** Reads everything and starts to follow changes. Throws when Postgres does not answer. */
  async start(): Promise<void> {
    await this.refresh();
    this.on('gateway_config', () => void this.refresh());
    await this.#listen();
    this.#timer = setInterval(() => void this.refresh(), this.options.intervalMs);
  }

  /** Calls back after each read that found a change, `start` included. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Calls back with the payload of a Postgres notification, empty when some may have been missed. Register before `start`. */
  on(channel: string, listener: (payload: string) => void): void {
    this.#channels.set(channel, listener);
  }

  /** Returns undefined when the project or the endpoint is not in the cache. */
  endpoint(projectId: string, endpointId: string): Endpoint | undefined {
    return this.projects.get(projectId)?.endpoints.get(endpointId);
  }

  /** Reads changes. Does not reject after `start`: the cache stays as it was, and `failing` is set. */
  refresh(): Promise<void> {
    // A running read may have missed the change, so another one follows, shared by all callers until it starts.
    return (this.#next ??= (this.#reading ?? Promise.resolve()).then(() => {
      this.#next = undefined;
      return (this.#reading = this.#read());
    }));
  }

  /** Follows no more changes, and resolves when the running read has ended. Never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#client?.end().catch(() => undefined);
    await (this.#next ?? this.#reading)?.catch(() => undefined);
  }

  async #read(): Promise<void> {
    if (this.#closed) return;
    try {
      const { pool } = this.database;
      const isCurrent = this.#version !== '' && (await readConfigVersion(pool)) === this.#version;
      if (!isCurrent) this.#replace(await readSnapshot(pool));
      this.failing = null;
    } catch (error) {
      if (this.#version === '') throw error;
      this.failing = failAgain(this.failing, error);
      this.options.log.warn({ error }, 'The configuration could not be read; the cached one stays in use.');
    }
  }

  #replace(snapshot: Snapshot): void {
    this.#version = snapshot.version;
    const endpoints = groupBy(snapshot.endpoints, (row) => row.project_id);
    const subscriptions = groupBy(snapshot.subscriptions, (row) => row.project_id);
    const onInvalid = ({ id, project_id }: SubscriptionRecord, error: unknown) =>
      this.options.log.error(
        { subscription_id: id, project_id, error },
        'A subscription has a filter that cannot be used; it matches nothing until it is changed.',
      );
    const projects = snapshot.projects.map((record) =>
      projectOf(record, endpoints.get(record.id) ?? [], subscriptions.get(record.id) ?? [], onInvalid),
    );
    this.projects = new Map(projects.map((project) => [project.id, project]));
    this.sources = snapshot.sources;
    for (const listener of this.#listeners) listener();
  }

  /** Follows notifications on a connection of its own. Reconnects when it is lost, and then assumes that notifications were missed. */
  async #listen(failures = 0): Promise<void> {
    if (this.#closed) return;
    let client;
    try {
      client = await this.database.connect();
    } catch (error) {
      if (failures === 0) throw error;
      await this.#listenAgain(failures + 1);
      return;
    }
    this.#client = client;
    client.on('notification', ({ channel, payload }) => this.#channels.get(channel)?.(payload ?? ''));
    client.once('end', () => void this.#listenAgain(1));
    try {
      if (this.#closed) await client.end();
      else for (const channel of this.#channels.keys()) await client.query(`listen ${channel}`);
    } catch (error) {
      void client.end().catch(() => undefined);
      if (failures === 0) throw error;
      return;
    }
    // Notifications before this connection listened were missed.
    if (failures === 0) await this.refresh();
    else for (const listener of this.#channels.values()) listener('');
  }

  async #listenAgain(failures: number): Promise<void> {
    if (this.#closed) return;
    await new Promise((resolve) => setTimeout(resolve, backoffMs(failures)).unref());
    await this.#listen(failures);
  }
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

/** Secrets that are tried: a single one that cannot be opened must not stop the agent. */
const TRIED_MAX = 20;

/** Throws the error of `open` when the key opens no stored secret, as the old key after `gateway utils secrets rotate`. */
export function requireKey(projects: Iterable<Project>, open: (sealed: string) => string): void {
  const secrets = [...projects].flatMap(({ endpoints }) => [...endpoints.values()].flatMap((it) => it.sealedSecrets.slice(0, 1)));
  let failure: unknown;
  for (const { value } of secrets.slice(0, TRIED_MAX)) {
    try {
      open(value);
      return;
    } catch (error) {
      failure = error;
    }
  }
  if (failure) throw failure as Error;
}
