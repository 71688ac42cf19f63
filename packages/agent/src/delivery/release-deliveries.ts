import type { Log } from '@gateway/core/logging';
import { backoffMs } from '@gateway/core/process';
import { notifyDue, releaseDeliveries, type Return } from '@gateway/store/deliveries';
import type { Database } from '@gateway/store/postgres';
import type { HeldDelivery } from '../model/delivery.js';

/**
 * Gives held deliveries back to Postgres: what a slow endpoint cannot take, what waits when the agent drains, what must be discarded. Returns of a
 * kind that pile up go in one statement.
 */
export class DeliveryReleaser {
  readonly #database: Database;
  readonly #log: Log;
  readonly #waiting = new Map<string, { how: Return; deliveries: HeldDelivery[] }>();
  #writing: Promise<void> | undefined;
  #stopped = false;

  constructor({ database, log }: { database: Database; log: Log }) {
    this.#database = database;
    this.#log = log;
  }

  push(deliveries: readonly HeldDelivery[], how: Return): void {
    for (const delivery of deliveries) {
      // Claimed under an earlier id of this agent, a delivery is given back under that one.
      const key = JSON.stringify([how, how.to === 'due' ? String(how.dueInMs) : '', delivery.agentId]);
      const group = this.#waiting.get(key);
      if (group) group.deliveries.push(delivery);
      else this.#waiting.set(key, { how, deliveries: [delivery] });
    }
    this.#writing ??= this.#write();
  }

  /** Resolves when everything is given back. */
  async settled(): Promise<void> {
    while (this.#writing) await this.#writing;
  }

  /** Gives up: what is left is recovered by another agent. */
  stop(): void {
    this.#stopped = true;
  }

  async #write(): Promise<void> {
    // What piles up in this turn of the event loop goes together.
    await new Promise((resolve) => setImmediate(resolve));
    for (let failures = 0; this.#waiting.size > 0 && !this.#stopped;) {
      const [key, group] = this.#waiting.entries().next().value as [string, { how: Return; deliveries: HeldDelivery[] }];
      this.#waiting.delete(key);
      try {
        await this.#return(group);
        failures = 0;
      } catch (error) {
        this.#log.warn({ error, deliveries: group.deliveries.length }, 'Deliveries could not be given back; trying again.');
        const later = this.#waiting.get(key);
        if (later) later.deliveries.push(...group.deliveries);
        else this.#waiting.set(key, group);
        await new Promise((resolve) => setTimeout(resolve, backoffMs(++failures, { capMs: 5_000 })));
      }
    }
    // In the same turn as the last look at what waits: nothing can come in between and be left.
    this.#writing = undefined;
  }

  async #return({ how, deliveries }: { how: Return; deliveries: readonly HeldDelivery[] }): Promise<void> {
    const { pool } = this.#database;
    await releaseDeliveries(pool, deliveries[0]!.agentId, deliveries, how);
    // Others would see them at their next beat only, and this agent may be on its way out.
    if (how.to === 'due' && how.dueInMs === 0) await notifyDue(pool, [...new Set(deliveries.map(({ projectId }) => projectId))]);
  }
}
