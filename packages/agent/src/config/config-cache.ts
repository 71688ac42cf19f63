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
import type { Log } from '@gateway/core/logging';
import { backoffMs } from '@gateway/core/process';
import { compileFilter, type Filter } from '@gateway/core/events';

/** An endpoint as deliveries use it. */
export interface Endpoint {
  readonly projectId: string;
  readonly id: string;
  readonly url: string;
  readonly ownerId: string | null;
  readonly status: EndpointRecord['status'];
  readonly statusReason: string | null;
  /** Opened on the first delivery: most endpoints of a large store are idle. */
  readonly sealedSecrets: EndpointRecord['secrets'];
  readonly sealedAuthentication: EndpointAuthentication | null;
  readonly timeoutMs: number;
  readonly concurrency: number | null;
  readonly strategy: Strategy;
  readonly signature: SignatureConfig;
  /** Null: as many requests as there are deliveries. */
  readonly limit: Limit | null;
  /** What its project says of circuit breakers. */
  readonly circuitBreaker: CircuitBreakerConfig | undefined;
}

/** A rate limit as a bucket of tokens, one for each request. */
export interface Limit {
  readonly perSecond: number;
  /** Requests that may come at once after a pause. */
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
  /** Subscriptions whose event types match, by event type; filled as types are seen. */
  readonly subscriptionsOfType: Map<string, readonly Subscription[]>;
}

/**
 * Projects, endpoints, subscriptions and sources in memory: routing and sending never ask Postgres. Read anew when a write notifies, and when
 * the version has changed at an interval, in case a notification was lost with its connection.
 */
export class ConfigCache {
  projects: ReadonlyMap<string, Project> = new Map();
  sources: readonly PausableSource[] = [];
  readonly #database: Database;
  readonly #log: Log;
  readonly #intervalMs: number;
  readonly #listeners: (() => void)[] = [];
  readonly #channels = new Map<string, (payload: string) => void>();
  #version = '';
  #reading: Promise<void> | undefined;
  /** The read that follows the one under way, until it begins. */
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #client: Awaited<ReturnType<Database['connect']>> | undefined;
  #closed = false;
  /** Since when the store could not be read; null when the last read succeeded. */
  failingSince: Date | null = null;

  constructor(database: Database, { intervalMs, log }: { intervalMs: number; log: Log }) {
    this.#database = database;
    this.#intervalMs = intervalMs;
    this.#log = log;
  }

  /** Reads everything once and begins to follow. Throws when Postgres does not answer. */
  async start(): Promise<void> {
    await this.refresh();
    this.on('gateway_config', () => void this.refresh());
    await this.#listen();
    this.#timer = setInterval(() => void this.refresh(), this.#intervalMs);
  }

  /** Calls back after every change of the store. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Calls back on a Postgres notification with its payload; with an empty one when some may have been missed. Register before `start`. */
  on(channel: string, listener: (payload: string) => void): void {
    this.#channels.set(channel, listener);
  }

  endpoint(projectId: string, endpointId: string): Endpoint | undefined {
    return this.projects.get(projectId)?.endpoints.get(endpointId);
  }

  /** Reads the store anew if it has changed. Does not reject: the store stays as it was and the failure is kept in `failingSince`. */
  refresh(): Promise<void> {
    // A read that began before the change may have missed it, so another follows it: one, for all who ask before it begins.
    return (this.#next ??= (this.#reading ?? Promise.resolve()).then(() => {
      this.#next = undefined;
      return (this.#reading = this.#read());
    }));
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#client?.end().catch(() => undefined);
    await (this.#next ?? this.#reading)?.catch(() => undefined);
  }

  async #read(): Promise<void> {
    if (this.#closed) return;
    try {
      if (this.#version !== '' && (await readConfigVersion(this.#database.pool)) === this.#version) {
        this.failingSince = null;
        return;
      }
      const snapshot = await readSnapshot(this.#database.pool);
      this.#replace(snapshot);
      this.failingSince = null;
    } catch (error) {
      if (this.#version === '') throw error;
      this.failingSince ??= new Date();
      this.#log.warn({ error }, 'The store could not be read; routing goes on with what is in memory.');
    }
  }

  #replace(snapshot: Snapshot): void {
    this.#version = snapshot.version;
    const [endpoints, subscriptions] = [byProject(snapshot.endpoints), byProject(snapshot.subscriptions)];
    const broken = ({ id, project_id }: SubscriptionRecord, error: unknown) =>
      this.#log.error(
        { subscription_id: id, project_id, error },
        'A subscription has a filter that cannot be used; it matches nothing until it is changed.',
      );
    this.projects = new Map(
      snapshot.projects.map((record) => [
        record.id,
        projectOf(record, endpoints.get(record.id) ?? [], subscriptions.get(record.id) ?? [], broken),
      ]),
    );
    this.sources = snapshot.sources;
    for (const listener of this.#listeners) listener();
  }

  /** Follows notifications on a connection of its own; a lost one is opened again, with a full read since some may have been missed. */
  async #listen(failures = 0): Promise<void> {
    if (this.#closed) return;
    let client;
    try {
      client = await this.#database.connect();
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
      // Its end, which opens another one, is on its way.
      void client.end().catch(() => undefined);
      if (failures === 0) throw error;
      return;
    }
    // What was notified before this connection listened.
    if (failures === 0) await this.refresh();
    else for (const listener of this.#channels.values()) listener('');
  }

  async #listenAgain(failures: number): Promise<void> {
    if (this.#closed) return;
    await new Promise((resolve) => setTimeout(resolve, backoffMs(failures)).unref());
    await this.#listen(failures);
  }
}

/**
 * A project as routing uses it, of its records.
 *
 * @param onBroken is told of each subscription whose filter cannot be compiled. It matches nothing: sending what was meant to be held back would be worse
 */
export function projectOf(
  record: ProjectRecord,
  endpointRows: readonly EndpointRecord[],
  subscriptionRows: readonly SubscriptionRecord[],
  onBroken: (row: SubscriptionRecord, error: unknown) => void,
): Project {
  const endpoints = new Map<string, Endpoint>();
  const endpointsOfOwner = new Map<string, Endpoint[]>();
  for (const row of endpointRows) {
    const endpoint = endpointOf(row, record);
    endpoints.set(row.id, endpoint);
    if (row.owner_id === null) continue;
    const owned = endpointsOfOwner.get(row.owner_id);
    if (owned) owned.push(endpoint);
    else endpointsOfOwner.set(row.owner_id, [endpoint]);
  }
  const subscriptions = subscriptionRows.flatMap((row) => {
    try {
      return [subscriptionOf(row)];
    } catch (error) {
      onBroken(row, error);
      return [];
    }
  });
  return { id: record.id, type: record.type, endpoints, endpointsOfOwner, subscriptions, subscriptionsOfType: new Map() };
}

function subscriptionOf(row: SubscriptionRecord): Subscription {
  const { body, headers } = row.filter ?? {};
  return {
    id: row.id,
    endpointId: row.endpoint_id,
    eventTypes: row.event_types,
    body: body && Object.keys(body).length > 0 ? compileFilter(body) : null,
    headers: headers && Object.keys(headers).length > 0 ? compileFilter(lowerNames(headers)) : null,
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

/** A tenth of a limit may come at once: with more, the first seconds would see twice what the limit says, with less, few agents would reach it. */
const BURST_SHARE = 0.1;

function limitOf({ rate_limit: count, rate_limit_duration: seconds }: EndpointRecord, { config }: ProjectRecord): Limit | null {
  const limit = count === null ? config.ratelimit : { count, duration: seconds ?? 1 };
  if (!limit || limit.count === 0) return null;
  return { perSecond: limit.count / limit.duration, burst: Math.max(1, Math.ceil(limit.count * BURST_SHARE)) };
}

function byProject<Row extends { readonly project_id: string }>(rows: readonly Row[]): Map<string, Row[]> {
  const grouped = new Map<string, Row[]>();
  for (const row of rows) {
    const group = grouped.get(row.project_id);
    if (group) group.push(row);
    else grouped.set(row.project_id, [row]);
  }
  return grouped;
}

/** A filter on headers with the names in lower case, as headers travel. */
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
