import type { Log } from '@gateway/core/logging';
import { failAgain, type OngoingFailure, inSlices, ProjectPace } from '@gateway/core/process';
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

/** Changed projects per statement. */
const PAGE = 200;
/** JSON text of one project, and of the projects per statement: it bounds the delay by parsing. */
export const PROJECT_BYTES_MAX = 16 * 1024 * 1024;

/** The part of a project's share of the event loop for reading it, as it may change all the time. */
const READ_PART = 1 / 8;
const READ_BURST_MS = 200;

/** Maximum age of the configuration for routing. It exceeds a heartbeat, which detects changes. */
const CONFIG_AGE_MAX_MS = 3_000;

interface LoadedProject {
  readonly project: Project;
  readonly sources: readonly PausableSource[];
}

/**
 * The configuration in memory: routing and sending never query Postgres. Refreshed on
 * notifications, and at an interval in case one was lost.
 */
export class ConfigCache {
  readonly #projects = new Map<string, Project>();
  readonly #sources = new Map<
    string,
    { readonly sources: readonly PausableSource[]; readonly readAtMs: number }
  >();
  readonly #skipped = new Map<string, string>();
  /** Changed projects that have exceeded their read pace. */
  readonly #postponed = new Set<string>();
  /** Counts the milliseconds of reading each project. */
  readonly #readPace: ProjectPace;
  /** When the configuration was the latest, except for the projects in `#changedSinceMs`. */
  #currentAtMs = -Infinity;
  #version = 0n;
  readonly #changedSinceMs = new Map<string, number>();
  sources: readonly PausableSource[] = [];
  /** Projects with an unreadable filter: events that need subscriptions wait for another agent. */
  unroutable: readonly string[] = [];
  readonly #listeners: (() => void)[] = [];
  readonly #notifications: ConfigNotifications;
  #place = NO_CHANGE;
  #hasRead = false;
  #reading: Promise<void> | undefined;
  /** A read that starts after the running one. */
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #postponedTimer: NodeJS.Timeout | undefined;
  #closed = false;
  /** Null when the last read succeeded. */
  failing: OngoingFailure | null = null;

  constructor(
    private readonly database: Database,
    private readonly options: {
      readonly intervalMs: number;
      readonly log: Log;
      /** `limits.event_loop_ms`; 0: reading is unlimited. */
      readonly eventLoopMs: number;
      /** Interval of version queries, for a process without a heartbeat that calls `seen`. */
      readonly verifyMs?: number;
    },
  ) {
    this.#notifications = new ConfigNotifications(database);
    const perSecond = options.eventLoopMs * READ_PART;
    this.#readPace = new ProjectPace(perSecond, perSecond && READ_BURST_MS / perSecond);
  }

  get projects(): ReadonlyMap<string, Project> {
    return this.#projects;
  }

  /** The projects whose last change could not be loaded, and why. */
  get skipped(): ReadonlyMap<string, string> {
    return this.#skipped;
  }

  /** Projects of which no version is loaded: their events wait. */
  get unloaded(): readonly string[] {
    return [...this.#skipped.keys()].filter((id) => !this.#projects.has(id));
  }

  /** Whether events of the project, or of any, may be routed: every unloaded change is recent. */
  isCurrent(projectId?: string): boolean {
    const nowMs = performance.now();
    const sinceMs =
      (projectId === undefined ? undefined : this.#changedSinceMs.get(projectId)) ??
      this.#currentAtMs;
    return Math.min(sinceMs, this.#currentAtMs) > nowMs - CONFIG_AGE_MAX_MS;
  }

  /** Projects with an unloaded change older than the bound: their events wait. */
  get outdated(): readonly string[] {
    return [...this.#changedSinceMs.keys()].filter((id) => !this.isCurrent(id));
  }

  /** Whether the project has a change that is not, or cannot be, loaded. */
  isBehind(projectId: string): boolean {
    return (
      this.#changedSinceMs.has(projectId) || this.#skipped.has(projectId) || this.failing !== null
    );
  }

  /** Reports the version in Postgres at a monotonic time. A different version starts a read. */
  seen(version: string, askedAtMs: number): void {
    if (BigInt(version) === this.#version)
      this.#currentAtMs = Math.max(this.#currentAtMs, askedAtMs);
    else void this.refresh();
  }

  /** Reads everything and starts to follow changes. Throws when Postgres does not answer. */
  async start(): Promise<void> {
    await this.refresh();
    this.on('gateway_config', () => void this.refresh());
    await this.#notifications.start();
    // Notifications before this connection listened were missed.
    await this.refresh();
    const { intervalMs, verifyMs } = this.options;
    this.#timer = setInterval(() => void this.refresh(), intervalMs);
    if (verifyMs !== undefined) void this.#verify(verifyMs);
  }

  async #verify(everyMs: number): Promise<void> {
    while (!this.#closed) {
      const askedAtMs = performance.now();
      const version = await readConfigVersion(this.database.pool).catch(() => undefined);
      if (version !== undefined && !this.#closed) this.seen(String(version), askedAtMs);
      await new Promise((resolve) => setTimeout(resolve, everyMs).unref());
    }
  }

  /** Calls back after each change, synchronously: before anything is sent with it. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** The payload is empty when notifications may have been missed. Register before `start`. */
  on(channel: string, listener: (payload: string) => void): void {
    this.#notifications.on(channel, listener);
  }

  endpoint(projectId: string, endpointId: string): Endpoint | undefined {
    return this.projects.get(projectId)?.endpoints.get(endpointId);
  }

  /**
   * Leaves the deliveries of an endpoint to other agents until its configuration changes.
   *
   * @param reason the rest of a sentence
   */
  markUnreadable(endpoint: Endpoint, reason: string): void {
    endpoint.unreadable = reason;
    this.projects.get(endpoint.projectId)?.unreadable.add(endpoint);
  }

  /** Null: the subscription has no function. Undefined: it is disabled or deleted. */
  functionVersion(projectId: string, subscriptionId: string): string | null | undefined {
    return this.projects.get(projectId)?.functionVersions.get(subscriptionId);
  }

  /** False for an unknown event type that the project rejects. */
  accepts(projectId: string, eventType: string): boolean {
    return this.projects.get(projectId)?.eventTypes?.has(eventType) ?? true;
  }

  /** Call this after changing the project here: its events remain pending until that is loaded. */
  async invalidate(projectId: string): Promise<void> {
    this.#changedSinceMs.set(projectId, -Infinity);
    await this.refresh();
    // The read found no change, or loaded it.
    const isPostponed = this.#postponed.has(projectId) || this.failing !== null;
    if (!isPostponed && this.#changedSinceMs.get(projectId) === -Infinity)
      this.#changedSinceMs.delete(projectId);
  }

  /** Reads changes. Does not reject after `start`: the cache is kept, and `failing` is set. */
  refresh(): Promise<void> {
    // A running read may have missed the change; callers share the next read until it starts.
    return (this.#next ??= (this.#reading ?? Promise.resolve()).then(() => {
      this.#next = undefined;
      return (this.#reading = this.#read());
    }));
  }

  /** Follows no more changes, and resolves when the running read has ended. Never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#postponedTimer);
    await this.#notifications.close();
    await (this.#next ?? this.#reading)?.catch(() => undefined);
  }

  async #read(): Promise<void> {
    if (this.#closed) return;
    try {
      await this.#readChanges();
      this.failing = null;
    } catch (error) {
      if (!this.#hasRead) throw error;
      this.failing = failAgain(this.failing, error);
      this.options.log.warn(
        { error },
        'The configuration could not be read; the cached one stays in use.',
      );
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
    // A restored database has an older version: everything is read again, missing projects dropped.
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
      if (changes.length < PAGE) [this.#currentAtMs, this.#version] = [askedAtMs, version];
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

  /** Loads projects within their read pace now, and the others later. */
  async #loadChanged(ids: readonly string[]): Promise<void> {
    const due = ids.filter((id) => !this.#readPace.isOver(id));
    for (const id of ids) this.#postponed.add(id);
    await this.#load(due);
    for (const id of due) this.#postponed.delete(id);
    clearTimeout(this.#postponedTimer);
    if (this.#postponed.size > 0 && !this.#closed) {
      const waitMs = Math.min(...[...this.#postponed].map((id) => this.#readPace.waitMs(id)));
      this.#postponedTimer = setTimeout(() => void this.refresh(), Math.ceil(waitMs));
    }
  }

  /** Loads projects together, or one by one when a statement fails. */
  async #load(ids: readonly string[]): Promise<void> {
    const { pool } = this.database;
    for (let left = ids; left.length > 0;) {
      let read: readonly ReadProject[];
      try {
        read = await readProjects(pool, left, PROJECT_BYTES_MAX);
      } catch (error) {
        // Throws when the statement fails without a project too: Postgres is down, or refuses it.
        await readProjects(pool, [NO_CHANGE.id], PROJECT_BYTES_MAX);
        if (left.length > 1) for (const id of left) await this.#load([id]);
        else this.#skip(left[0]!, reasonOf(error));
        return;
      }
      const readAtMs = performance.now();
      const made = new Map<string, LoadedProject | null>();
      for (const one of read) made.set(one.id, await this.#make(one));
      // Applied synchronously: nothing is sent in between.
      for (const [id, loaded] of made) this.#keep(id, loaded, readAtMs);
      if (this.#hasRead) this.#tell();
      left = left.slice(read.length);
    }
  }

  /** Parses a project in slices; null when it is deleted or cannot be loaded. */
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

  /** A project that cannot be loaded keeps its last version. */
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
      this.options.log.info({ project_id: id }, 'A project that was skipped is loaded again.');
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

/** Adjusts a paused source by the time since it was read. */
function asOfNow(source: PausableSource, readAtMs: number): PausableSource {
  const { resumes_in_ms: ms } = source;
  return ms === null ? source : { ...source, resumes_in_ms: ms - (performance.now() - readAtMs) };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
