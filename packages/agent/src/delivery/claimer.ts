import type { Log } from '@gateway/core/logging';
import { claimDue, postponeDue } from '@gateway/store/deliveries';
import type { Database } from '@gateway/store/postgres';
import type { Scheduler } from './scheduler.js';
import type { ConfigCache } from '../config/config-cache.js';
import type { Backpressure } from '../flow-control/backpressure.js';
import { ClaimCursors } from './claim-cursor.js';

const BATCH_MAX = 200;
/** What the bodies of one claim should not exceed, judged by those of the claim before: where they are large, claims are smaller. */
const BATCH_BYTES = 4 * 1024 * 1024;
/** Due deliveries of endpoints that may not be sent to now are put off at most so often per project. */
const PUT_OFF_MS = 500;
/** Putting off takes no more than this share of the time: Postgres has the deliveries of others to write. */
const PUT_OFF_SHARE = 1 / 4;
/** How long claiming waits for room, and the wait after a claim that failed. */
const AGAIN_MS = 1_000;

export type Mode = 'events' | 'retry' | 'default';

export interface ClaimerOptions {
  readonly database: Database;
  readonly store: ConfigCache;
  readonly scheduler: Scheduler;
  readonly log: Log;
  readonly agentId: () => number;
  readonly mode: Mode;
  /** Deliveries that were due for long and that nobody else claimed. */
  readonly onOverdue: (count: number) => void;
}

/**
 * Takes deliveries that are due. It knows when the next one of each project is due (this agent scheduled it, a notification said so, or the beat saw
 * it) and sleeps until then: nothing is polled.
 */
export class Claimer {
  readonly #options: ClaimerOptions;
  readonly #statuses: readonly ('scheduled' | 'retry')[];
  /** When the next delivery of a project is due, by the monotonic clock. */
  readonly #dueAtMs = new Map<string, number>();
  /** Projects of which something is due for long and of which nobody told. */
  readonly #overdue = new Set<string>();
  /** When what is due may be put off again. */
  readonly #putOffAtMs = new Map<string, number>();
  readonly #walks = new ClaimCursors();
  #timer: NodeJS.Timeout | undefined;
  /** Of a delivery of the last claim, on average. */
  #bodyBytes = 1;
  #claiming: Promise<void> | undefined;
  #stopped = false;

  constructor(options: ClaimerOptions) {
    this.#options = options;
    this.#statuses = options.mode === 'events' ? ['scheduled'] : options.mode === 'retry' ? ['retry'] : ['scheduled', 'retry'];
  }

  /** Tells that a delivery of the project is due in this many milliseconds. */
  due(projectId: string, inMs: number): void {
    if (!Number.isFinite(inMs)) return;
    const atMs = performance.now() + Math.max(0, inMs);
    if ((this.#dueAtMs.get(projectId) ?? Infinity) <= atMs) return;
    this.#dueAtMs.set(projectId, atMs);
    this.#sleep();
  }

  /** Tells that a delivery of the project has been due for long. It is claimed, and counted unless it has waited for this agent. */
  overdue(projectId: string): void {
    const isKnown = this.#dueAtMs.has(projectId) || this.#claiming !== undefined || this.#options.scheduler.room <= 0;
    if (!isKnown && this.#options.scheduler.waits.saturated().length === 0) this.#overdue.add(projectId);
    this.due(projectId, 0);
  }

  /** Looks at every project now. */
  dueEverywhere(): void {
    const nowMs = performance.now();
    for (const projectId of this.#options.store.projects.keys()) this.#dueAtMs.set(projectId, nowMs);
    this.#sleep();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#claiming;
  }

  #sleep(): void {
    clearTimeout(this.#timer);
    if (this.#stopped || this.#claiming || this.#dueAtMs.size === 0) return;
    const inMs = Math.min(...this.#dueAtMs.values()) - performance.now();
    // Longer sleeps than this are cut: the beat tells again.
    this.#timer = setTimeout(
      () => {
        this.#claiming = this.#claimDue().finally(() => {
          this.#claiming = undefined;
          this.#sleep();
        });
      },
      Math.min(Math.max(0, inMs), 60_000),
    );
  }

  async #claimDue(): Promise<void> {
    const { scheduler, log } = this.#options;
    const nowMs = performance.now();
    for (const [projectId, atMs] of this.#dueAtMs) {
      if (atMs > nowMs || this.#stopped) continue;
      this.#dueAtMs.delete(projectId);
      try {
        if (!(await scheduler.waitForRoom(AGAIN_MS)) || (await this.#claimProject(projectId)) === 'more') this.due(projectId, 0);
      } catch (error) {
        log.warn({ error, project_id: projectId }, 'Due deliveries could not be claimed; trying again.');
        this.due(projectId, AGAIN_MS);
      }
    }
  }

  async #claimProject(projectId: string): Promise<'more' | 'done'> {
    const { database, scheduler, agentId: currentAgent, onOverdue } = this.#options;
    const limit = Math.min(BATCH_MAX, scheduler.room, Math.max(1, Math.floor(BATCH_BYTES / this.#bodyBytes)));
    if (limit <= 0 || this.#stopped) return 'done';
    const agentId = currentAgent();
    // Not entered yet: the first beat tells again.
    if (agentId === 0) return 'done';
    const withheld = scheduler.waits.withheld(projectId);
    if (withheld.length > 0) await this.#putOff(projectId, withheld);
    const unproven = scheduler.waits.unproven(projectId);
    // Nobody tells when the time alone has made them slow.
    if (unproven.length > 0) this.due(projectId, PUT_OFF_MS);
    const exceptEndpoints = [...withheld.map(({ endpointId }) => endpointId), ...unproven];
    const { claimed, walkedTo } = await claimDue(database.pool, agentId, {
      projectId,
      statuses: this.#statuses,
      exceptEndpoints,
      limit,
      from: this.#walks.from(projectId, exceptEndpoints, performance.now()),
    });
    this.#walks.came(projectId, walkedTo, exceptEndpoints, performance.now());
    if (claimed.length > 0) this.#bodyBytes = Math.max(1, claimed.reduce((sum, { data }) => sum + data.length, 0) / claimed.length);
    if (this.#overdue.delete(projectId) && claimed.length > 0) onOverdue(claimed.length);
    scheduler.push(
      claimed.map((delivery) => ({
        projectId: delivery.projectId,
        id: delivery.id,
        occurredAtMs: delivery.occurredAtMs,
        eventId: delivery.eventId,
        endpointId: delivery.endpointId,
        attempts: delivery.attempts,
        eventType: delivery.eventType,
        sourceId: delivery.sourceId,
        traceparent: delivery.traceparent,
        headers: JSON.parse(delivery.headers) as Record<string, string>,
        body: Buffer.from(delivery.data),
        agentId,
      })),
    );
    return claimed.length === limit ? 'more' : 'done';
  }

  /** Puts off what is due and may not be sent now, so that it is not met again and again. */
  async #putOff(projectId: string, withheld: ReturnType<Backpressure['withheld']>): Promise<void> {
    const { database, scheduler } = this.#options;
    const startedAtMs = performance.now();
    const againInMs = (this.#putOffAtMs.get(projectId) ?? -Infinity) - startedAtMs;
    if (againInMs > 0) {
      this.due(projectId, againInMs);
      return;
    }
    const counts = await postponeDue(database.pool, projectId, withheld);
    this.#putOffAtMs.set(projectId, startedAtMs + Math.max(PUT_OFF_MS, (performance.now() - startedAtMs) / PUT_OFF_SHARE));
    for (const { endpoint, endpointId, wait } of withheld) {
      const count = counts.get(endpointId) ?? 0;
      if (count === 0) continue;
      scheduler.waits.putOff(endpoint, wait, count);
      this.due(projectId, wait.dueInMs);
    }
  }
}
