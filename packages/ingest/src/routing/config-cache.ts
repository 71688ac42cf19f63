import type { Log } from '@gateway/core/logging';
import {
  failAgain,
  inSlices,
  oneAtATime,
  type OngoingFailure,
  TokenBuckets,
} from '@gateway/core/process';
import {
  type ActiveSubscription,
  NO_CHANGE,
  readChanges,
  readConfigVersion,
  readProjects,
  type ProjectTexts,
  type ReadProject,
  type PausableSource,
} from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';
import { ConfigNotifications } from './config-notifications.js';
import { projectOf, type Endpoint, type Project } from './project.js';

/** The maximum number of changed projects whose ids are read together. */
const PAGE = 4_000;
const PART = 100;
/** The statements that read them: Postgres works on one while this process parses another. */
const READERS = 2;
/**
 * The maximum JSON bytes of one project, and of all projects that a reader has in memory at once. A
 * project with 100,000 subscriptions has half as much.
 */
export const PROJECT_BYTES_MAX = 64 * 1024 * 1024;

/**
 * The part of a project's event-loop share available for reading it, because its configuration may
 * change continually.
 */
const READ_PART = 1 / 8;
const READ_BURST_MS = 200;

/**
 * The maximum age of the configuration for routing: longer than the interval of version queries,
 * which detect changes.
 */
const CONFIG_AGE_MAX_MS = 3_000;

/** The interval of version queries where Postgres cannot notify (`database.pooled`). */
const POLL_MS = 500;

interface LoadedProject {
  readonly project: Project;
  readonly sources: readonly PausableSource[];
}

export interface IntakeConfig extends Pick<ConfigCache, 'isCurrent' | 'refresh' | 'invalidate'> {
  readonly projects: Pick<ConfigCache['projects'], 'get'>;
}

/**
 * The configuration in memory, so that routing and sending never query Postgres. Refreshed on
 * notifications, and periodically in case one was lost.
 */
export class ConfigCache {
  readonly #projects = new Map<string, Project>();
  readonly #sources = new Map<
    string,
    { readonly sources: readonly PausableSource[]; readonly readAtMs: number }
  >();
  readonly #skipped = new Map<string, string>();
  /** Changed projects over their read pace, to be loaded later. */
  readonly #postponed = new Set<string>();
  readonly #readPace: TokenBuckets;
  /**
   * When the configuration was last known to be up to date, except for the projects in
   * `#changedSinceMs`.
   */
  #currentAtMs = -Infinity;
  #version = 0n;
  readonly #changedSinceMs = new Map<string, number>();
  sources: readonly PausableSource[] = [];
  /** Projects with an unreadable filter. Events that need subscriptions wait for another agent. */
  unroutable: readonly string[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #notifications: ConfigNotifications;
  #place = NO_CHANGE;
  #hasRead = false;
  #timer: NodeJS.Timeout | undefined;
  #postponedTimer: NodeJS.Timeout | undefined;
  #closed = false;
  failing: OngoingFailure | null = null;

  constructor(
    private readonly database: Database,
    private readonly options: {
      readonly intervalMs: number;
      readonly log: Log;
      /** The `limits.event_loop_ms` setting. 0 means no limit. */
      readonly eventLoopMs: number;
      /** The interval of version queries. Without them, the configuration soon counts as old. */
      readonly verifyMs?: number;
      /** Loads only the projects with rows in these shards. By default, all. */
      readonly shards?: readonly string[] | undefined;
    },
  ) {
    this.#notifications = new ConfigNotifications(database);
    this.#readPace = new TokenBuckets(options.eventLoopMs * READ_PART, READ_BURST_MS);
  }

  get projects(): ReadonlyMap<string, Project> {
    return this.#projects;
  }

  /** Projects whose last change could not be loaded, with the reasons. */
  get skipped(): ReadonlyMap<string, string> {
    return this.#skipped;
  }

  get unloaded(): readonly string[] {
    return [...this.#skipped.keys()].filter((id) => !this.#projects.has(id));
  }

  /**
   * Whether events of the project may be routed: it has no unloaded change older than
   * `CONFIG_AGE_MAX_MS`. Without a project, applies to the configuration as a whole.
   */
  isCurrent(projectId?: string): boolean {
    const nowMs = performance.now();
    const sinceMs =
      (projectId === undefined ? undefined : this.#changedSinceMs.get(projectId)) ??
      this.#currentAtMs;
    return Math.min(sinceMs, this.#currentAtMs) > nowMs - CONFIG_AGE_MAX_MS;
  }

  /** Projects with an unloaded change older than `CONFIG_AGE_MAX_MS`. Their events wait. */
  get outdated(): readonly string[] {
    return [...this.#changedSinceMs.keys()].filter((id) => !this.isCurrent(id));
  }

  isBehind(projectId: string): boolean {
    return (
      this.#changedSinceMs.has(projectId) || this.#skipped.has(projectId) || this.failing !== null
    );
  }

  /** Reads everything and follows changes. Rejects if Postgres is unreachable. */
  async start(): Promise<void> {
    await this.refresh();
    this.on('gateway_config', () => void this.refresh());
    await this.#notifications.start();
    // Read again, because notifications sent before this connection listened were missed.
    await this.refresh();
    const { intervalMs } = this.options;
    const verifyMs = this.database.canListen ? this.options.verifyMs : POLL_MS;
    this.#timer = setInterval(() => void this.refresh(), intervalMs);
    if (verifyMs !== undefined) void this.#verify(verifyMs);
  }

  async #verify(everyMs: number): Promise<void> {
    while (!this.#closed) {
      const askedAtMs = performance.now();
      const version = await readConfigVersion(this.database.pool).catch(() => undefined);
      if (version === this.#version) this.#currentAtMs = Math.max(this.#currentAtMs, askedAtMs);
      else if (version !== undefined && !this.#closed) void this.refresh();
      await new Promise((resolve) => setTimeout(resolve, everyMs).unref());
    }
  }

  /**
   * Calls the listener synchronously after each change, before anything is sent with the new
   * configuration. Returns a function that removes the listener.
   */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  *inShard(shard: string): Generator<Project> {
    for (const project of this.#projects.values()) if (project.shard === shard) yield project;
  }

  /**
   * Sets a channel's listener. Call before `start`. An empty payload means that notifications may
   * have been missed.
   */
  on(channel: string, listener: (payload: string) => void): void {
    this.#notifications.on(channel, listener);
  }

  endpoint(projectId: string, endpointId: string): Endpoint | undefined {
    return this.projects.get(projectId)?.endpoints.get(endpointId);
  }

  /**
   * Leaves the deliveries of an endpoint to other agents until its configuration changes.
   *
   * @param reason why this agent cannot read the endpoint, as a clause
   */
  markUnreadable(endpoint: Endpoint, reason: string): void {
    endpoint.unreadable = reason;
    this.projects.get(endpoint.projectId)?.unreadable.add(endpoint);
  }

  /**
   * Returns the version of the subscription's function, null if it has none, or undefined if the
   * subscription is disabled or deleted.
   */
  functionVersion(projectId: string, subscriptionId: string): string | null | undefined {
    return this.projects.get(projectId)?.functionVersions.get(subscriptionId);
  }

  /** Whether the project accepts the event type. False only for unknown types that it rejects. */
  accepts(projectId: string, eventType: string): boolean {
    return this.projects.get(projectId)?.eventTypes?.has(eventType) ?? true;
  }

  /**
   * Reads the configuration after this process has changed the project. Its events stay pending
   * until the change is loaded.
   */
  async invalidate(projectId: string): Promise<void> {
    this.#changedSinceMs.set(projectId, -Infinity);
    await this.refresh();
    // Unless postponed or failed, the read has loaded the change or found none.
    const isPostponed = this.#postponed.has(projectId) || this.failing !== null;
    if (!isPostponed && this.#changedSinceMs.get(projectId) === -Infinity)
      this.#changedSinceMs.delete(projectId);
  }

  /** Reads changes. After `start`, never rejects: a failure keeps the cache and sets `failing`. */
  readonly refresh = oneAtATime(() => this.#read());

  /** Stops following changes. Resolves when the running read has ended; never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#postponedTimer);
    await this.#notifications.close();
    await this.refresh().catch(() => undefined);
  }

  async #read(): Promise<void> {
    if (this.#closed) return;
    try {
      await this.#readChanges();
      this.failing = null;
    } catch (error) {
      if (!this.#hasRead) throw error;
      this.failing = failAgain(this.failing, error);
      this.options.log.warn({ error }, 'Could not read the configuration; using the cached one.');
    }
    if (this.#hasRead) return;
    this.#hasRead = true;
    this.#tell();
  }

  #tell(): void {
    this.sources = [...this.#sources.values()].flatMap(({ sources, readAtMs }) =>
      sources.map((source) => asOfNow(source, readAtMs)),
    );
    this.unroutable = [...this.#projects.values()].flatMap(({ id, unreadableFilter }) =>
      unreadableFilter === undefined ? [] : id,
    );
    for (const listener of this.#listeners) listener();
  }

  async #readChanges(): Promise<void> {
    const { pool } = this.database;
    // A restored database has an older version: everything is read again, and missing projects are
    // dropped.
    const version = await readConfigVersion(pool);
    const isRestored = version < BigInt(this.#place.version);
    let place = isRestored ? NO_CHANGE : this.#place;
    const found = new Set<string>();
    for (;;) {
      const askedAtMs = performance.now();
      const changes = await readChanges(pool, place, PAGE);
      const last = changes.at(-1);
      for (const { id } of changes)
        if (!this.#changedSinceMs.has(id)) this.#changedSinceMs.set(id, this.#currentAtMs);
      if (changes.length < PAGE) {
        this.#currentAtMs = askedAtMs;
        // The changes can be newer than the version, which was read before them.
        const newest = BigInt((last ?? place).version);
        this.#version = newest > version ? newest : version;
      }
      if (!last) break;
      await this.#loadChanged(changes.map(({ id }) => id));
      place = last;
      if (isRestored) for (const { id } of changes) found.add(id);
      else this.#place = place;
    }
    if (!isRestored) return this.#loadChanged([...this.#postponed]);
    for (const held of [this.#projects, this.#sources, this.#skipped, this.#changedSinceMs])
      for (const id of [...held.keys()]) if (!found.has(id)) held.delete(id);
    this.#place = place;
    this.#tell();
  }

  async #loadChanged(ids: readonly string[]): Promise<void> {
    const due = ids.filter((id) => !this.#readPace.isOver(id));
    for (const id of ids) this.#postponed.add(id);
    const parts = Array.from({ length: Math.ceil(due.length / PART) }, (_, k) =>
      due.slice(k * PART, (k + 1) * PART),
    ).values();
    const readParts = async () => {
      for (const part of parts) await this.#load(part);
    };
    const ended = await Promise.allSettled(Array.from({ length: READERS }, readParts));
    // Thrown when all have ended: a read that goes on could overwrite what the next one finds.
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
    for (const id of due) this.#postponed.delete(id);
    clearTimeout(this.#postponedTimer);
    if (this.#postponed.size > 0 && !this.#closed) {
      const waitMs = Math.min(...[...this.#postponed].map((id) => this.#readPace.waitMs(id)));
      this.#postponedTimer = setTimeout(() => void this.refresh(), Math.ceil(waitMs));
    }
  }

  /** Loads projects together, or one by one if a statement fails. */
  async #load(ids: readonly string[]): Promise<void> {
    const { pool } = this.database;
    for (let left = ids; left.length > 0;) {
      let read: readonly ReadProject[];
      try {
        read = await readProjects(pool, left, PROJECT_BYTES_MAX, this.options.shards);
      } catch (error) {
        // Throws if the statement fails even without a project: Postgres is down or does not accept
        // it.
        await readProjects(pool, [NO_CHANGE.id], PROJECT_BYTES_MAX);
        if (left.length > 1) for (const id of left) await this.#load([id]);
        else this.#skip(left[0]!, reasonOf(error));
        return;
      }
      const readAtMs = performance.now();
      const made = new Map<string, LoadedProject | null>();
      for (const one of read) made.set(one.id, await this.#make(one));
      // Applied synchronously, so that nothing is sent in between.
      for (const [id, loaded] of made) this.#keep(id, loaded, readAtMs);
      if (this.#hasRead) this.#tell();
      left = left.slice(read.length);
    }
  }

  /** Parses a project in slices. Resolves with null if it is deleted or cannot be loaded. */
  async #make({ id, texts, bytes }: ReadProject): Promise<LoadedProject | null> {
    if (!texts) {
      if (bytes > 0)
        this.#skip(id, `it has ${bytes} bytes of JSON, more than ${PROJECT_BYTES_MAX}`);
      else this.#skipped.delete(id);
      return null;
    }
    try {
      return await inSlices(load(texts, this.#projects.get(id), this.#onInvalid), (ms) =>
        this.#readPace.add(id, ms),
      );
    } catch (error) {
      this.#skip(id, reasonOf(error));
      return null;
    }
  }

  /**
   * Applies a loaded project, or removes a deleted one. A project that cannot be loaded keeps its
   * last version.
   */
  #keep(id: string, loaded: LoadedProject | null, readAtMs: number): void {
    if (!loaded) {
      if (!this.#skipped.has(id))
        for (const held of [this.#projects, this.#sources, this.#readPace, this.#changedSinceMs])
          held.delete(id);
      return;
    }
    this.#changedSinceMs.delete(id);
    this.#projects.set(id, loaded.project);
    if (loaded.sources.length > 0) this.#sources.set(id, { sources: loaded.sources, readAtMs });
    else this.#sources.delete(id);
    if (this.#skipped.delete(id))
      this.options.log.info({ project_id: id }, 'Loaded a project that was skipped before.');
  }

  #skip(id: string, reason: string): void {
    this.#skipped.set(id, reason);
    this.options.log.error(
      { project_id: id, reason },
      'A project cannot be loaded. Until it is changed, what was loaded of it before stays in use; otherwise its events and deliveries wait.',
    );
  }

  readonly #onInvalid = ({ id, project_id }: ActiveSubscription, error: unknown) =>
    this.options.log.error(
      { subscription_id: id, project_id, error },
      'A subscription has a filter that this agent cannot read; events of its project that subscriptions decide on wait for another agent, or until it is changed.',
    );
}

function* load(
  texts: ProjectTexts,
  ...given: [Project | undefined, (row: ActiveSubscription, error: unknown) => void]
): Generator<void, LoadedProject> {
  const project = yield* projectOf(texts, ...given);
  const sources: PausableSource[] = [];
  for (const text of texts.sources) {
    sources.push(JSON.parse(text) as PausableSource);
    yield;
  }
  return { project, sources };
}

function asOfNow(source: PausableSource, readAtMs: number): PausableSource {
  const { resumes_in_ms: ms } = source;
  return ms === null ? source : { ...source, resumes_in_ms: ms - (performance.now() - readAtMs) };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
