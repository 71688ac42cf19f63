import type { Config } from '@gateway/core/config';
import type { Log } from '@gateway/core/logging';
import type { Health } from '@gateway/core/process';
import {
  endNotifications,
  readOpenNotifications,
  raiseNotifications,
  type NewNotification,
  type NotificationFacts,
  type Raised,
} from '@gateway/store/config';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { Database } from '@gateway/store/postgres';
import type { Mailer } from './mailer.js';
import type { ConfigCache } from '../config/config-cache.js';
import { licenceNotification } from './licence.js';
import type { Trip } from '../flow-control/circuit-breakers.js';
import { Outbox } from './outbox.js';
import { UnreadSources, type NamedSource, type Unread } from './unread-sources.js';
import { Streaks, type Streak } from './failure-streaks.js';

export interface NotifierOptions {
  readonly config: Config;
  readonly database: Database;
  readonly store: ConfigCache;
  readonly log: Log;
  readonly health: Health;
  readonly agentId: () => number;
  /** Without one, what would be sent stands in the log alone. */
  readonly mailer: Mailer | undefined;
}

/** How a source stands with this agent. */
export type SourceState = 'reading' | 'failing' | 'stopped';

const TICK_MS = 500;
/** The database is asked with every so many ticks, and at once when there is something to tell. */
const LOOK_EVERY = 20;
const LICENCE_MS = 3_600_000;
/** How long closing waits for an e-mail that is being sent. An SMTP server that hangs must not hold up the end: another agent sends it again. */
const CLOSE_MS = 2_000;

/**
 * Tells people by e-mail what they have to know: an endpoint that was disabled or is failing, a source that is failing, a licence that ends.
 *
 * 1. The way of a message reports attempts and the states of sources, which are counted in memory.
 * 2. What is worth telling is a line of the log, and goes to the outbox in Postgres, which takes it once for all agents.
 * 3. Whichever agent comes first sends it.
 * 4. When an endpoint answers well again, or a source is read, whichever agent sees it says so there; only then it is told of again.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  readonly #streaks: Streaks;
  readonly #sources = new UnreadSources();
  /** Sources that are known to be failing, with whether the agent that said so lives. */
  #failingSources = new Map<string, boolean>();
  readonly #readAgain = new Set<string>();
  readonly #outbox: Outbox | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ticking: Promise<void> | undefined;
  #ticks = 0;
  #urgent = false;
  #failing = false;
  #closed = false;
  #licenceAtMs = 0;
  /** What the log has said of the licence. */
  #licenceSaid = '';

  constructor(options: NotifierOptions) {
    this.#options = options;
    const { config, mailer } = options;
    this.#streaks = new Streaks(config.notifications.endpoint_failures);
    this.#outbox = mailer && new Outbox({ ...options, mailer });
  }

  start(): void {
    const tick = () => void (this.#ticking ??= this.#tick().finally(() => (this.#ticking = undefined)));
    tick();
    this.#timer = setInterval(tick, TICK_MS);
  }

  /** Ends; an e-mail that is being sent has a moment left. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#outbox?.stop();
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([this.#ticking, new Promise((resolve) => (timer = setTimeout(resolve, CLOSE_MS)))]);
    clearTimeout(timer);
  }

  /** Counts attempts that are on record. */
  recorded(attempts: readonly AttemptRecord[]): void {
    for (const attempt of attempts) {
      const failing = this.#streaks.attempted(attempt);
      if (failing) this.#tellStreak(failing);
    }
  }

  /** The circuit breaker of an endpoint has opened: it is failing, though few of its attempts may have been this agent's. */
  tripped(trip: Trip): void {
    const failing = this.#streaks.tripped(trip);
    if (failing) this.#tellStreak(failing);
  }

  /** What goes to the outbox when an endpoint that answered 410 is deactivated, or a source paused; null when nobody is to be told. */
  disabledFacts(error: string): NotificationFacts | null {
    return this.#outbox ? { since: new Date().toISOString(), error } : null;
  }

  /** There is something new in the outbox. */
  hurry(): void {
    this.#urgent = true;
  }

  /** A source changes its state with this agent. */
  source(source: NamedSource, state: SourceState, reason?: string): void {
    if (state === 'stopped') this.#sources.stopped(source);
    else if (state === 'failing') this.#sources.failing(source, reason);
    else if (this.#sources.reading(source) || this.#failingSources.has(source.id)) this.#readAgain.add(source.id);
  }

  #tellStreak({ projectId, endpointId, failures, error }: Streak): void {
    this.#urgent = true;
    this.#options.log.warn(
      { project_id: projectId, endpoint_id: endpointId, failures, last_error: error },
      'An endpoint is failing: its last delivery attempts all did. Its deliveries are retried by its retry policy.',
    );
  }

  async #tick(): Promise<void> {
    try {
      const licence = this.#licence();
      const { log, config, store } = this.#options;
      if (this.#ticks++ % LOOK_EVERY === 0) {
        this.#urgent = true;
        this.#streaks.keep((projectId, endpointId) => store.endpoint(projectId, endpointId) !== undefined);
      }
      const unread = this.#sources.due(config.notifications.source_seconds);
      if (!this.#outbox) {
        for (const source of unread) source.told = true;
        this.#streaks.failing.clear();
        this.#readAgain.clear();
        return;
      }
      const over = this.#streaks.recovered.size + this.#readAgain.size > 0;
      if (!this.#urgent && !licence && !over && !this.#outbox.dueAgain && unread.every(({ quiet }) => quiet)) return;
      this.#urgent = false;
      await this.#end();
      if (licence) await this.#raise([licence], 0);
      await this.#raiseEndpoints();
      await this.#raiseSources(unread);
      await this.#look();
      await this.#outbox.send();
      if (this.#failing) log.info({}, 'Notifications are looked after again.');
      this.#failing = false;
    } catch (error) {
      if (this.#closed) return;
      if (!this.#failing) this.#options.log.warn({ error }, 'Notifications could not be looked after; trying again.');
      this.#failing = true;
      this.#licenceAtMs = 0;
    }
  }

  async #raiseEndpoints(): Promise<void> {
    const streaks = [...this.#streaks.failing.values()];
    const raised = await this.#raise(
      streaks.map(({ projectId, endpointId, failures, sinceMs, error }) => ({
        kind: 'endpoint_failing',
        projectId,
        subject: endpointId,
        facts: { failures, since: new Date(sinceMs).toISOString(), error },
      })),
    );
    for (const [n, streak] of streaks.entries()) {
      const { endpointId } = streak;
      // Too early after the last one: it is raised later if it fails on.
      if (raised[n] === 'quiet') continue;
      if (this.#streaks.failing.get(endpointId) === streak) this.#streaks.failing.delete(endpointId);
      if (this.#streaks.goesOn(streak)) this.#streaks.told.add(endpointId);
      else this.#streaks.recovered.add(endpointId);
    }
  }

  async #raiseSources(unread: readonly Unread[]): Promise<void> {
    const raised = await this.#raise(
      unread.map(({ id, project_id: projectId, sinceMs, reason }) => ({
        kind: 'source_failing',
        projectId,
        subject: id,
        facts: { since: new Date(sinceMs).toISOString(), error: reason },
      })),
    );
    for (const [n, source] of unread.entries()) {
      source.quiet = raised[n] === 'quiet';
      source.told = !source.quiet;
      if (source.told && !this.#sources.goesOn(source)) this.#readAgain.add(source.id);
    }
  }

  async #raise(
    notifications: readonly NewNotification[],
    quietSeconds = this.#options.config.notifications.quiet_seconds,
  ): Promise<readonly Raised[]> {
    const { database, agentId } = this.#options;
    return raiseNotifications(database.pool, notifications, { agentId: agentId(), quietSeconds });
  }

  /** Says in the outbox what has recovered. */
  async #end(): Promise<void> {
    const { pool } = this.#options.database;
    for (const [kind, over] of [
      ['endpoint_failing', this.#streaks.recovered],
      ['source_failing', this.#readAgain],
    ] as const) {
      if (over.size === 0) continue;
      const subjects = [...over];
      await endNotifications(pool, kind, subjects);
      for (const subject of subjects) over.delete(subject);
    }
  }

  /** Learns what other agents have told of, so that this one may say when it is over. */
  async #look(): Promise<void> {
    const open = await readOpenNotifications(this.#options.database.pool);
    this.#streaks.told.clear();
    this.#failingSources = new Map();
    for (const { kind, subject, raiser_lives: raiserLives } of open) {
      if (kind === 'endpoint_failing') {
        if (!this.#streaks.recovered.has(subject)) this.#streaks.told.add(subject);
      } else {
        this.#failingSources.set(subject, raiserLives);
        // Read here all the time, and the one who could not is gone: nobody else would say that it is over.
        if (!raiserLives && this.#sources.isRead(subject)) this.#readAgain.add(subject);
      }
    }
  }

  /** What is to be told of the licence now, looked at once an hour. */
  #licence(): NewNotification | undefined {
    if (performance.now() < this.#licenceAtMs) return undefined;
    this.#licenceAtMs = performance.now() + LICENCE_MS;
    const notification = licenceNotification(this.#options.config);
    if (notification?.kind === 'licence_expiring' && notification.subject !== this.#licenceSaid) {
      const { licensee, expires_at: expiresAt } = notification.facts;
      this.#options.log.warn({ organisation: licensee, expires_at: expiresAt }, 'The licence is about to expire.');
      this.#licenceSaid = notification.subject;
    }
    return notification;
  }
}
