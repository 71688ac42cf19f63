import type { Log } from '@gateway/core';
import { claimDue, type Database } from '@gateway/store';
import type { Deliverer } from './deliver.js';
import type { MemoryStore } from './memory-store.js';

const BATCH_MAX = 200;
/** How long claiming waits for room, and the wait after a claim that failed. */
const AGAIN_MS = 1_000;

export type Mode = 'events' | 'retry' | 'default';

export interface ClaimerOptions {
  readonly database: Database;
  readonly store: MemoryStore;
  readonly deliverer: Deliverer;
  readonly log: Log;
  readonly agentId: () => number;
  readonly mode: Mode;
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
  #timer: NodeJS.Timeout | undefined;
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
    const { deliverer, log } = this.#options;
    const nowMs = performance.now();
    for (const [projectId, atMs] of this.#dueAtMs) {
      if (atMs > nowMs || this.#stopped) continue;
      this.#dueAtMs.delete(projectId);
      try {
        if (!(await deliverer.waitForRoom(AGAIN_MS)) || (await this.#claimProject(projectId)) === 'more') this.due(projectId, 0);
      } catch (error) {
        log.warn({ error, project_id: projectId }, 'Due deliveries could not be claimed; trying again.');
        this.due(projectId, AGAIN_MS);
      }
    }
  }

  async #claimProject(projectId: string): Promise<'more' | 'done'> {
    const { database, deliverer, agentId: currentAgent } = this.#options;
    const limit = Math.min(BATCH_MAX, deliverer.room);
    if (limit <= 0 || this.#stopped) return 'done';
    const agentId = currentAgent();
    // Not entered yet: the first beat tells again.
    if (agentId === 0) return 'done';
    const claimed = await claimDue(database.pool, agentId, {
      projectId,
      statuses: this.#statuses,
      exceptEndpoints: deliverer.saturated().map(({ endpointId }) => endpointId),
      limit,
    });
    deliverer.push(
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
}
