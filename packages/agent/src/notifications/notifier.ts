import { repeat, withTimeout, type Health } from '@gateway/core/process';
import {
  endNotifications,
  giveUpNotifications,
  readOpenNotifications,
  raiseNotifications,
  type NewNotification,
  type Raised,
  type SourceRecord,
} from '@gateway/store/config';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { ProcessContext } from '../config/agent-context.js';
import type { Trip } from '../model/delivery.js';
import type { AgentLease } from '../model/lease.js';
import type { ReadingState } from '@gateway/ingest/message/ingest-source';
import type { Announcer } from './announcer.js';
import { Failures, type FailingResource } from './failures.js';
import type { Mailer } from './mailer.js';
import { Outbox } from './outbox.js';
import { Tallies } from './tallies.js';

interface NotifierOptions extends Pick<
  ProcessContext,
  'config' | 'database' | 'configCache' | 'log'
> {
  readonly health: Pick<Health, 'report'>;
  /** Returns the lease of this agent on a shard that it works on. */
  readonly leaseOf: (shard: string) => Pick<AgentLease, 'agentId' | 'readers'> | undefined;
  readonly announcer: Pick<Announcer, 'hurry'>;
  /** Without a mailer, notifications appear in the log and in operational events. */
  readonly mailer: Mailer | undefined;
}

const TICK_MS = 500;
/** The number of ticks per database read, also after a failure. */
const TICKS_PER_READ = 20;
const GIVE_UP_HOURS = 72;
const KEEP_DAYS = 90;
const CLEAN_UP_MS = 3_600_000;
/**
 * The time after a notification during which further losses in its partition, or exhausted
 * deliveries to its endpoint, are collected for the next one.
 */
const TALLY_QUIET_SECONDS = 3600;
/**
 * The maximum time that closing waits for an email being sent. After that, another agent sends it
 * again.
 */
const CLOSE_MS = 2_000;

/**
 * Notifies people by email and operational events of disabled and failing endpoints, their circuit breakers
 * and exhausted deliveries, failing sources and lost messages.
 *
 * 1. Attempts and source states are counted in memory.
 * 2. A failure that is due for a notification is logged and raised in the Postgres outbox, once for
 *   all agents.
 * 3. The first agent to claim the notification sends it.
 * 4. The first agent to see the endpoint or source work again ends the notification. Only then can
 *   another one about it follow.
 */
export class Notifier {
  readonly #endpoints = new Failures();
  readonly #breakers = new Failures();
  readonly #sources = new Failures();
  /** By the kind of their notifications. */
  readonly #tracked = new Map<NewNotification['kind'], Failures>([
    ['endpoint_failing', this.#endpoints],
    ['endpoint_breaker', this.#breakers],
    ['source_failing', this.#sources],
  ]);
  readonly #read = new Set<string>();
  /** Lost messages, by source and partition. */
  readonly #lost = new Tallies('source_lost', 'messages');
  /** Deliveries without a retry left, by endpoint. */
  readonly #exhausted = new Tallies('endpoint_exhausted', 'deliveries');
  readonly #outbox: Outbox | undefined;
  #stop: (() => Promise<void>) | undefined;
  #ticks = 0;
  #urgent = false;
  #cleanUpAtMs = 0;

  constructor(private readonly options: NotifierOptions) {
    const { mailer } = options;
    this.#outbox = mailer && new Outbox({ ...options, mailer });
  }

  start(): void {
    const { log } = this.options;
    this.#stop = repeat(() => this.#tick().then(() => TICK_MS), {
      retryMs: TICKS_PER_READ * TICK_MS,
      failed: (error, isFirst) => {
        this.#urgent = true;
        if (isFirst) log.warn({ error }, 'Could not process notifications; retrying.');
      },
      recovered: () => log.info({}, 'Notifications are processed again.'),
    });
  }

  async close(): Promise<void> {
    this.#outbox?.stop();
    await withTimeout(Promise.resolve(this.#stop?.()), CLOSE_MS).catch(() => undefined);
  }

  recorded(
    attempts: readonly AttemptRecord[],
    isOurs: (attempt: AttemptRecord) => boolean = () => true,
  ): void {
    for (const attempt of attempts) {
      const { projectId, endpointId, errorClass, isGone, isOperational } = attempt;
      if (errorClass === null) this.#endpoints.recover(endpointId);
      // Its deactivation has its own notification.
      if (errorClass === null || isGone) continue;
      const error = attempt.detail ?? errorClass;
      const failure = this.#endpoints.fail(projectId, endpointId, error, {
        sinceMs: attempt.requestedAtMs,
        isOperational,
      });
      if (failure.failures === this.options.config.notifications.endpoint_failures)
        this.#endpointFails(failure);
      if (attempt.status === 'failure' && !isOperational && isOurs(attempt))
        this.#exhaust(attempt, error);
    }
  }

  #exhaust({ projectId, endpointId, id }: AttemptRecord, error: string): void {
    const facts = { since: new Date().toISOString(), delivery_id: id, error };
    // Only a new one is urgent: those of an endpoint that always fails must not cost a statement
    // per tick.
    if (this.#exhausted.add({ projectId, subject: endpointId, facts }, 1)) this.#urgent = true;
  }

  /**
   * Reports an opened circuit breaker. A first trip counts as enough failures for a notification
   * that the endpoint fails, because other agents may have made most of the failed attempts.
   */
  tripped({ projectId, endpointId, isFirst, isOperational, failures, error }: Trip): void {
    if (!isFirst) return;
    const breaker = this.#breakers.fail(projectId, endpointId, error, { isOperational });
    breaker.failures = failures;
    this.#breakers.needsNotification(breaker);
    this.#urgent = true;
    if (this.#endpoints.open.has(endpointId) || this.#endpoints.get(endpointId)?.isDue) return;
    const failure = this.#endpoints.fail(projectId, endpointId, error, { isOperational });
    failure.failures = Math.max(failures, this.options.config.notifications.endpoint_failures);
    this.#endpointFails(failure);
  }

  /** Reports a closed circuit breaker, whichever agent closed it. */
  closed(endpointId: string): void {
    this.#breakers.recover(endpointId);
  }

  #endpointFails(failure: FailingResource): void {
    this.#endpoints.needsNotification(failure);
    this.#urgent = true;
    const { projectId, id, failures, error } = failure;
    this.options.log.warn(
      { project_id: projectId, endpoint_id: id, failures, last_error: error },
      'An endpoint is failing: its last delivery attempts all failed. Its deliveries are retried by its retry policy.',
    );
  }

  /**
   * Reports the state of a source in this agent.
   *
   * @param reason why the source cannot be read; undefined while connecting, which keeps the last
   *   reason
   */
  source(
    { id, project_id: projectId }: Pick<SourceRecord, 'id' | 'project_id'>,
    state: ReadingState,
    reason?: string,
  ): void {
    if (state === 'reading') this.#read.add(id);
    else this.#read.delete(id);
    if (state === 'reading') this.#sources.recover(id);
    else if (state === 'stopped') this.#sources.forget(id);
    else
      this.#sources.fail(
        projectId,
        id,
        reason ?? this.#sources.get(id)?.error ?? 'The agents are still connecting to it.',
      );
  }

  lost(
    { id, project_id: projectId }: Pick<SourceRecord, 'id' | 'project_id'>,
    partition: string,
    messages: number,
  ): void {
    const facts = { since: new Date().toISOString(), partition };
    this.#lost.add({ projectId, subject: `${id} ${partition}`, facts }, messages);
    this.#urgent = true;
  }

  /** Whether notifications are sent by email. */
  get isMailing(): boolean {
    return this.#outbox !== undefined;
  }

  hurry(): void {
    this.#urgent = true;
  }

  async #tick(): Promise<void> {
    const { config, configCache } = this.options;
    if (this.#ticks++ % TICKS_PER_READ === 0) {
      this.#urgent = true;
      for (const tracked of [this.#endpoints, this.#breakers])
        for (const { projectId, id } of tracked.all())
          if (!configCache.endpoint(projectId, id)) tracked.forget(id);
    }
    for (const failure of this.#sources.all()) {
      const seconds = (Date.now() - failure.sinceMs) / 1000;
      if (failure.isDue || seconds < config.notifications.source_seconds) continue;
      this.#sources.needsNotification(failure);
      this.#urgent = true;
    }
    const hasRecovered = [...this.#tracked.values()].some((it) => it.recovered.size > 0);
    if (!this.#urgent && !hasRecovered && !this.#outbox?.isRetryDue) return;
    this.#urgent = false;
    await this.#cleanUp();
    for (const [kind, tracked] of this.#tracked) await this.#end(kind, tracked);
    for (const [kind, tracked] of this.#tracked) await this.#raiseDue(kind, tracked);
    await this.#raiseTallied(this.#lost);
    await this.#raiseTallied(this.#exhausted);
    await this.#readOpen();
    this.options.announcer.hurry();
    await this.#outbox?.send();
  }

  async #end(kind: NewNotification['kind'], { recovered }: Failures): Promise<void> {
    if (recovered.size === 0) return;
    const ids = [...recovered];
    await endNotifications(this.options.database.pool, kind, ids);
    for (const id of ids) recovered.delete(id);
  }

  async #raiseDue(kind: NewNotification['kind'], tracked: Failures): Promise<void> {
    const due = [...tracked.due.values()];
    const notifications = due.map(({ projectId, id, failures, sinceMs, error, isOperational }) => ({
      kind,
      projectId,
      subject: id,
      facts: {
        ...(kind !== 'source_failing' && { failures }),
        since: new Date(sinceMs).toISOString(),
        error,
        ...(isOperational && ({ is_operational: true } as const)),
      },
    }));
    const raised = await this.#raise(
      notifications,
      this.options.config.notifications.quiet_seconds,
    );
    // After a recent notification about the same resource, or without anyone to notify, this one
    // stays due and is raised later if the resource still fails.
    for (const [n, failure] of due.entries())
      if (raised[n] === 'raised' || raised[n] === 'known') tracked.raised(failure);
  }

  async #raiseTallied(tallies: Tallies): Promise<void> {
    const due = tallies.due();
    const raised = await this.#raise(due, TALLY_QUIET_SECONDS);
    for (const [n, tally] of due.entries()) if (raised[n] !== 'quiet') tallies.reported(tally);
  }

  #raise(
    notifications: readonly NewNotification[],
    quietSeconds: number,
  ): Promise<readonly Raised[]> {
    const { database, configCache, leaseOf } = this.options;
    return raiseNotifications(database.pool, notifications, {
      agentIdOf({ projectId }) {
        const shard = configCache.projects.get(projectId ?? '')?.shard;
        return (shard !== undefined && leaseOf(shard)?.agentId) || 0;
      },
      quietSeconds,
      isMailed: this.isMailing,
    });
  }

  async #cleanUp(): Promise<void> {
    if (performance.now() < this.#cleanUpAtMs) return;
    const { database, log } = this.options;
    const lost = await giveUpNotifications(database.pool, {
      afterHours: GIVE_UP_HOURS,
      forgetAfterDays: KEEP_DAYS,
    });
    for (const { id, kind, subject, last_error: error } of lost)
      log.error(
        { notification_id: id, kind, about: subject, last_error: error },
        `A notification could not be sent for ${GIVE_UP_HOURS} hours and is given up.`,
      );
    this.#cleanUpAtMs = performance.now() + CLEAN_UP_MS;
  }

  /** Reads the open notifications of all agents: this agent may see their resources recover. */
  async #readOpen(): Promise<void> {
    const open = await readOpenNotifications(this.options.database.pool);
    for (const tracked of this.#tracked.values()) tracked.open.clear();
    for (const { kind, subject, shard, raised_by: raiser } of open) {
      const tracked = this.#tracked.get(kind)!;
      const lease = shard === null ? undefined : this.options.leaseOf(shard);
      const raiserLives = raiser !== null && lease?.readers.includes(raiser);
      // The agent that could not read the source is gone, so only an agent that reads it can end
      // the notification.
      if (kind === 'source_failing' && !raiserLives && this.#read.has(subject))
        tracked.recovered.add(subject);
      if (!tracked.recovered.has(subject)) tracked.open.add(subject);
    }
  }
}
