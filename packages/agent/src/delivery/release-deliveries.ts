import { backoffMs } from '@gateway/core/process';
import { Stage } from '@gateway/core/queue';
import { notifyDue, releaseDeliveries, type Release, type Wait } from '@gateway/store/deliveries';
import { repairKeys } from '@gateway/store/ordering';
import { rejectsContent } from '@gateway/store/postgres';
import type { AgentContext } from '../config/agent-context.js';
import type { InFlightDelivery } from '../model/delivery.js';
import type { DueTimes } from './due-times.js';

interface ReleaseGroup {
  readonly key: string;
  readonly how: Release;
  deliveries: InFlightDelivery[];
}

/** Concurrent, because a group with locked rows must not block the others. */
const STATEMENTS = 2;

interface ReleaserOptions extends Pick<AgentContext, 'database' | 'log'> {
  readonly dueTimes: DueTimes;
}

/** Returns deliveries to Postgres without an attempt, in batches, marked as due or discarded. */
export class DeliveryReleaser {
  readonly #groups = new Map<string, ReleaseGroup>();
  /** From the first try to the last. */
  readonly #underWay = new Set<ReleaseGroup>();
  readonly #stage: Stage<ReleaseGroup>;

  constructor(private readonly options: ReleaserOptions) {
    const { log } = options;
    this.#stage = new Stage<ReleaseGroup>({
      concurrency: STATEMENTS,
      capacity: 1,
      work: ([group]) => this.#return(group!),
      failed: (error, [group]) =>
        log.warn(
          { error, deliveries: group!.deliveries.length },
          'Could not release deliveries; retrying.',
        ),
      backoffMs: (failures) => backoffMs(failures, { capMs: 5_000 }),
      refuses: rejectsContent,
      // A rejected group is dropped, because the heartbeat releases this agent's claims on
      // deliveries that it no longer has in memory.
      replace: ({ deliveries }, error) =>
        void log.error(
          { error, deliveries: deliveries.length },
          'Postgres rejected released deliveries; they will be due again.',
        ),
      ended: ([group]) => this.#underWay.delete(group!),
    });
  }

  /**
   * An earlier try has returned these deliveries, and its answer was lost. Another try would return
   * them while they are sent.
   */
  claimedAgain(deliveries: readonly InFlightDelivery[]): void {
    if (this.#underWay.size === 0) return;
    const ids = new Set(deliveries.map(({ id }) => id));
    for (const group of this.#underWay)
      group.deliveries = group.deliveries.filter(({ id }) => !ids.has(id));
  }

  /**
   * @param wait the delay in milliseconds (Infinity: until the endpoint is active again), or a wait
   *   that spreads the deliveries over time
   */
  release(deliveries: readonly InFlightDelivery[], wait: number | Wait): void {
    // The pace becomes a random spread over the time that all deliveries take at this pace.
    const spread = ({ reason, dueInMs, spreadMs, paceMs }: Wait) => ({
      dueInMs,
      reason,
      spreadMs: Math.round(spreadMs + paceMs * deliveries.length),
    });
    const how = typeof wait === 'number' ? { dueInMs: wait } : spread(wait);
    this.#push(deliveries, { to: 'due', ...how });
    for (const projectId of new Set(deliveries.map((delivery) => delivery.projectId)))
      this.options.dueTimes.add(projectId, how.dueInMs);
  }

  discard(deliveries: readonly InFlightDelivery[], reason: string): void {
    this.#push(deliveries, { to: 'discarded', reason });
  }

  settled(): Promise<void> {
    return this.#stage.settled();
  }

  /** Other agents recover the remaining deliveries. */
  stop(): void {
    this.#stage.stop();
  }

  #push(deliveries: readonly InFlightDelivery[], how: Release): void {
    for (const delivery of deliveries) {
      // Claims under a former agent id are returned under that id.
      const key = JSON.stringify([
        how,
        how.to === 'due' ? String(how.dueInMs) : '',
        delivery.agentId,
      ]);
      const group = this.#groups.get(key);
      if (group) {
        group.deliveries.push(delivery);
        continue;
      }
      const added = { key, how, deliveries: [delivery] };
      this.#groups.set(key, added);
      this.#stage.push(added);
    }
  }

  async #return(group: ReleaseGroup): Promise<void> {
    const { key, how, deliveries } = group;
    const { pool } = this.options.database;
    if (this.#groups.get(key) === group) this.#groups.delete(key);
    this.#underWay.add(group);
    if (deliveries.length === 0) return;
    await releaseDeliveries(pool, deliveries[0]!.agentId, deliveries, how);
    if (how.to === 'discarded') {
      const keys = deliveries.flatMap(({ projectId, endpointId, orderKey }) =>
        orderKey === null ? [] : [{ projectId, endpointId, orderKey }],
      );
      for (const { projectId } of await repairKeys(pool, keys))
        this.options.dueTimes.add(projectId, 0);
    }
    // Other agents would otherwise see the deliveries only at their next heartbeat.
    if (how.to === 'due' && how.dueInMs === 0)
      await notifyDue(pool, [...new Set(deliveries.map(({ projectId }) => projectId))]);
  }
}
