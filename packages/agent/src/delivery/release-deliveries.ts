import { backoffMs } from '@gateway/core/process';
import { notifyDue, releaseDeliveries, type Release, type Wait } from '@gateway/store/deliveries';
import type { AgentContext } from '../config/agent-context.js';
import type { Endpoint } from '../config/project.js';
import type { HeldDelivery } from '../model/delivery.js';
import type { DueTimes } from './due-times.js';

type Group = { readonly how: Release; readonly deliveries: HeldDelivery[] };

interface ReleaserOptions extends Pick<AgentContext, 'database' | 'log'> {
  readonly dueTimes: DueTimes;
}

/** Returns held deliveries to Postgres without an attempt: to wait, or to end as discarded. Deliveries that are returned alike share a statement. */
export class DeliveryReleaser {
  readonly #groups = new Map<string, Group>();
  #writing: Promise<void> | undefined;
  #stopped = false;

  constructor(private readonly options: ReleaserOptions) {}

  /** @param wait milliseconds until they are due (Infinity: when their endpoint is active again), or how they are spread over time */
  release(deliveries: readonly HeldDelivery[], wait: number | Wait): void {
    // A pace becomes a spread at random over the same time.
    const spread = ({ reason, dueInMs, spreadMs, paceMs }: Wait) => ({
      dueInMs,
      reason,
      spreadMs: Math.round(spreadMs + paceMs * deliveries.length),
    });
    const how = typeof wait === 'number' ? { dueInMs: wait } : spread(wait);
    this.#push(deliveries, { to: 'due', ...how });
    for (const projectId of new Set(deliveries.map((delivery) => delivery.projectId))) this.options.dueTimes.add(projectId, how.dueInMs);
  }

  discard(deliveries: readonly HeldDelivery[], reason: string): void {
    this.#push(deliveries, { to: 'discarded', reason });
  }

  async settled(): Promise<void> {
    while (this.#writing) await this.#writing;
  }

  /** Gives up: other agents recover what is left. */
  stop(): void {
    this.#stopped = true;
  }

  #push(deliveries: readonly HeldDelivery[], how: Release): void {
    for (const delivery of deliveries) {
      // A delivery that was claimed under an earlier id of this agent is returned under that id.
      const key = JSON.stringify([how, how.to === 'due' ? String(how.dueInMs) : '', delivery.agentId]);
      const group = this.#groups.get(key);
      if (group) group.deliveries.push(delivery);
      else this.#groups.set(key, { how, deliveries: [delivery] });
    }
    this.#writing ??= this.#write();
  }

  async #write(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    for (let failures = 0; this.#groups.size > 0 && !this.#stopped;) {
      const [key, group] = this.#groups.entries().next().value as [string, Group];
      this.#groups.delete(key);
      try {
        await this.#return(group);
        failures = 0;
      } catch (error) {
        this.options.log.warn({ error, deliveries: group.deliveries.length }, 'Deliveries could not be given back; trying again.');
        const later = this.#groups.get(key);
        if (later) later.deliveries.push(...group.deliveries);
        else this.#groups.set(key, group);
        await new Promise((resolve) => setTimeout(resolve, backoffMs(++failures, { capMs: 5_000 })));
      }
    }
    // In the same turn as the last check, so that nothing that is pushed meanwhile is left behind.
    this.#writing = undefined;
  }

  async #return({ how, deliveries }: Group): Promise<void> {
    const { pool } = this.options.database;
    await releaseDeliveries(pool, deliveries[0]!.agentId, deliveries, how);
    // Other agents would see them only with their next heartbeat.
    if (how.to === 'due' && how.dueInMs === 0) await notifyDue(pool, [...new Set(deliveries.map(({ projectId }) => projectId))]);
  }
}

/** Returns why a delivery is discarded, as a sentence. `endpoint` is undefined when it was deleted. */
export function inactiveReason(endpoint: Endpoint | undefined): string {
  if (!endpoint) return 'The endpoint was deleted.';
  return `The endpoint is inactive${endpoint.statusReason ? `: ${endpoint.statusReason}` : '.'}`;
}
