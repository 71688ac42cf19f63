import type { Config } from '@gateway/core/config';
import { isGatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { readLicence } from '@gateway/core/plugins';
import { withTimeout, type Health } from '@gateway/core/process';
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
import type { Trip } from '../model/delivery.js';
import type { SourceState } from '../model/ingest-source.js';
import { Outbox } from './outbox.js';
import { FailureStreaks, type FailureStreak } from './failure-streaks.js';
import { UnreadSources, type SourceRef, type UnreadSource } from './unread-sources.js';

export interface NotifierOptions {
  readonly config: Config;
  readonly database: Database;
  readonly store: ConfigCache;
  readonly log: Log;
  readonly health: Health;
  readonly agentId: () => number;
  /** Without it notifications appear in the log only. */
  readonly mailer: Mailer | undefined;
}

const TICK_MS = 500;
/** The database is read every this many ticks, and at once when there is something to raise. */
const TICKS_PER_READ = 20;
const LICENCE_MS = 3_600_000;
/** Closing waits this long for an e-mail that is being sent; after that another agent sends it again. */
const CLOSE_MS = 2_000;

/**
 * Notifies people by e-mail of disabled and failing endpoints, failing sources, and the end of the licence.
 *
 * 1. The pipeline reports attempts and states of sources, which are counted in memory.
 * 2. What needs a notification is logged and raised in the outbox in Postgres, once for all agents.
 * 3. The first agent to claim it sends it.
 * 4. The first agent to see the endpoint or source work again ends the notification; only then another one may follow.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  readonly #streaks: FailureStreaks;
  readonly #sources = new UnreadSources();
  /** Sources with an open notification. */
  #failingSources = new Set<string>();
  readonly #readAgain = new Set<string>();
  readonly #outbox: Outbox | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ticking: Promise<void> | undefined;
  #ticks = 0;
  #urgent = false;
  #failing = false;
  #closed = false;
  #licenceAtMs = 0;
  /** The last notification of the licence in the log. */
  #loggedLicence = '';

  constructor(options: NotifierOptions) {
    this.#options = options;
    const { config, mailer } = options;
    this.#streaks = new FailureStreaks(config.notifications.endpoint_failures);
    this.#outbox = mailer && new Outbox({ ...options, mailer });
  }

  start(): void {
    const tick = () => void (this.#ticking ??= this.#tick().finally(() => (this.#ticking = undefined)));
    tick();
    this.#timer = setInterval(tick, TICK_MS);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#outbox?.stop();
    await withTimeout(Promise.resolve(this.#ticking), CLOSE_MS).catch(() => undefined);
  }

  /** Counts recorded attempts. */
  recorded(attempts: readonly AttemptRecord[]): void {
    for (const attempt of attempts) {
      const failing = this.#streaks.attempted(attempt);
      if (failing) this.#logStreak(failing);
    }
  }

  /** The circuit breaker of an endpoint opened. Most of its failed attempts may be those of other agents. */
  tripped(trip: Trip): void {
    if (!trip.isFirst) return;
    const failing = this.#streaks.tripped(trip);
    if (failing) this.#logStreak(failing);
  }

  /** Facts to raise with a deactivated endpoint or a paused source; null when no e-mails are sent. */
  disabledFacts(error: string): NotificationFacts | null {
    return this.#outbox ? { since: new Date().toISOString(), error } : null;
  }

  /** Sends soon: the outbox has something new. */
  hurry(): void {
    this.#urgent = true;
  }

  /** A source changed its state in this agent. */
  source(source: SourceRef, state: SourceState, reason?: string): void {
    if (state === 'stopped') this.#sources.stopped(source);
    else if (state === 'failing') this.#sources.failing(source, reason);
    else if (this.#sources.reading(source) || this.#failingSources.has(source.id)) this.#readAgain.add(source.id);
  }

  #logStreak({ projectId, endpointId, failures, error }: FailureStreak): void {
    this.#urgent = true;
    this.#options.log.warn(
      { project_id: projectId, endpoint_id: endpointId, failures, last_error: error },
      'An endpoint is failing: its last delivery attempts all failed. Its deliveries are retried by its retry policy.',
    );
  }

  async #tick(): Promise<void> {
    try {
      const licence = this.#licence();
      const { log, config, store } = this.#options;
      if (this.#ticks++ % TICKS_PER_READ === 0) {
        this.#urgent = true;
        this.#streaks.keep((projectId, endpointId) => store.endpoint(projectId, endpointId) !== undefined);
      }
      const unread = this.#sources.due(config.notifications.source_seconds);
      if (!this.#outbox) {
        for (const source of unread) source.notified = true;
        this.#streaks.failing.clear();
        this.#readAgain.clear();
        return;
      }
      const hasRecovered = this.#streaks.recovered.size + this.#readAgain.size > 0;
      if (!this.#urgent && !licence && !hasRecovered && !this.#outbox.isRetryDue && unread.every(({ quiet }) => quiet)) return;
      this.#urgent = false;
      await this.#end();
      if (licence) await this.#raise([licence], 0);
      await this.#raiseEndpoints();
      await this.#raiseSources(unread);
      await this.#readOpen();
      await this.#outbox.send();
      if (this.#failing) log.info({}, 'Notifications are processed again.');
      this.#failing = false;
    } catch (error) {
      if (this.#closed) return;
      if (!this.#failing) this.#options.log.warn({ error }, 'Notifications could not be processed; trying again.');
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
      // Too early after the last one: raised later if it still fails.
      if (raised[n] === 'quiet') continue;
      if (this.#streaks.failing.get(endpointId) === streak) this.#streaks.failing.delete(endpointId);
      if (this.#streaks.continues(streak)) this.#streaks.notified.add(endpointId);
      else this.#streaks.recovered.add(endpointId);
    }
  }

  async #raiseSources(unread: readonly UnreadSource[]): Promise<void> {
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
      source.notified = !source.quiet;
      if (source.notified && !this.#sources.continues(source)) this.#readAgain.add(source.id);
    }
  }

  async #raise(
    notifications: readonly NewNotification[],
    quietSeconds = this.#options.config.notifications.quiet_seconds,
  ): Promise<readonly Raised[]> {
    const { database, agentId } = this.#options;
    return raiseNotifications(database.pool, notifications, { agentId: agentId(), quietSeconds });
  }

  /** Ends the notifications of what has recovered. */
  async #end(): Promise<void> {
    const { pool } = this.#options.database;
    for (const [kind, recovered] of [
      ['endpoint_failing', this.#streaks.recovered],
      ['source_failing', this.#readAgain],
    ] as const) {
      if (recovered.size === 0) continue;
      const subjects = [...recovered];
      await endNotifications(pool, kind, subjects);
      for (const subject of subjects) recovered.delete(subject);
    }
  }

  /** Reads open notifications, including those of other agents, so that this one may end them. */
  async #readOpen(): Promise<void> {
    const open = await readOpenNotifications(this.#options.database.pool);
    this.#streaks.notified.clear();
    this.#failingSources = new Set();
    for (const { kind, subject, raiser_lives: raiserLives } of open) {
      if (kind === 'endpoint_failing') {
        if (!this.#streaks.recovered.has(subject)) this.#streaks.notified.add(subject);
      } else {
        this.#failingSources.add(subject);
        // This agent reads it, and the agent that could not is gone: no other one would end it.
        if (!raiserLives && this.#sources.isRead(subject)) this.#readAgain.add(subject);
      }
    }
  }

  /** The notification of the licence, once an hour. */
  #licence(): NewNotification | undefined {
    if (performance.now() < this.#licenceAtMs) return undefined;
    this.#licenceAtMs = performance.now() + LICENCE_MS;
    const notification = licenceNotification(this.#options.config);
    if (notification?.kind === 'licence_expiring' && notification.subject !== this.#loggedLicence) {
      const { licensee, expires_at: expiresAt } = notification.facts;
      this.#options.log.warn({ organisation: licensee, expires_at: expiresAt }, 'The licence is about to expire.');
      this.#loggedLicence = notification.subject;
    }
    return notification;
  }
}

/** Days before its expiry on which a notification is sent. */
const REMINDER_DAYS = [1, 7, 30];
const DAY_MS = 86_400_000;

/** The notification that the licence has expired or expires soon; undefined for the community licence, an invalid one, and one without expiry. */
function licenceNotification({ license_key: token, license_public_key: publicKey }: Config): NewNotification | undefined {
  const now = new Date();
  const { organisation, expiresAt, problem } = readLicence({ token, publicKey, now });
  const notification = (kind: NewNotification['kind'], licensee: string, expires_at: string, reminder = ''): NewNotification => ({
    kind,
    projectId: null,
    subject: `${licensee} ${expires_at}${reminder}`,
    facts: { licensee, expires_at },
  });
  if (problem && isGatewayError(problem, 'licence_expired'))
    return notification('licence_expired', problem.details.organisation, problem.details.expiredAt);
  if (!organisation || !expiresAt) return undefined;
  const daysLeft = (expiresAt.getTime() - now.getTime()) / DAY_MS;
  const days = REMINDER_DAYS.find((it) => daysLeft <= it);
  return days === undefined ? undefined : notification('licence_expiring', organisation, expiresAt.toISOString(), ` ${days}`);
}
