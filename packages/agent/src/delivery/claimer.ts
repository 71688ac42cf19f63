import { claimDue, claimEvents, postponeDue, type ClaimedDelivery } from '@gateway/store/deliveries';
import type { EventRef } from '@gateway/store/events';
import type { AgentContext } from '../config/agent-context.js';
import type { Backpressure, Withheld } from '../flow-control/backpressure.js';
import type { DueTimes } from './due-times.js';
import type { HeldDelivery } from '../model/delivery.js';
import type { InFlight } from './in-flight.js';
import type { DeliveryReleaser } from './release-deliveries.js';

const BATCH_MAX = 200;
/** Size of the bodies of one claim at most, but for one delivery that alone exceeds it. */
const BATCH_BYTES = 4 * 1024 * 1024;
/** Due deliveries of endpoints that may not be sent to now are postponed, or looked at again, at most this often per project. */
const POSTPONE_MS = 500;
/** A project without room looks which of its endpoints may use the reserve at most this often, for each endpoint that it has. */
const RESERVE_MS = 0.05;
/** Postponing takes at most this share of the time: Postgres has other deliveries to write. */
const POSTPONE_SHARE = 1 / 4;
/** How long claiming waits for room, and the wait after a claim that failed. */
const AGAIN_MS = 1_000;
const SLEEP_MAX_MS = 60_000;

export interface ClaimerOptions extends Pick<AgentContext, 'config' | 'database' | 'configCache' | 'lease' | 'log' | 'measure'> {
  readonly inFlight: InFlight;
  readonly backpressure: Backpressure;
  readonly dueTimes: DueTimes;
  readonly releaser: Pick<DeliveryReleaser, 'release'>;
}

/** Claims due deliveries from Postgres while there is room for them. Tries a project again one second after a claim that failed. */
export class Claimer {
  readonly #statuses: readonly ('scheduled' | 'retry')[];
  /** Projects with deliveries that were due for long without this agent knowing. */
  readonly #overdue = new Set<string>();
  readonly #postponeAtMs = new Map<string, number>();
  readonly #reserveAtMs = new Map<string, number>();
  readonly #cursors = new ClaimCursors();
  #timer: NodeJS.Timeout | undefined;
  #bodyBytes = 1;
  #claiming: Promise<void> | undefined;
  #stopped = false;

  constructor(private readonly options: ClaimerOptions) {
    const { mode } = options.config.agent;
    this.#statuses = mode === 'events' ? ['scheduled'] : mode === 'retry' ? ['retry'] : ['scheduled', 'retry'];
    options.dueTimes.onEarlier(() => this.#sleep());
    options.inFlight.onRoom((projectId) => options.dueTimes.add(projectId, 0));
  }

  /** A delivery of the project has been due for long. It is claimed, and counted as recovered unless it has waited for this agent. */
  overdue(projectId: string): void {
    const { dueTimes, inFlight, backpressure } = this.options;
    const isKnown = dueTimes.has(projectId) || this.#claiming !== undefined || inFlight.room <= 0;
    if (!isKnown && backpressure.saturated().length === 0) this.#overdue.add(projectId);
    dueTimes.add(projectId, 0);
  }

  /** Looks for due deliveries of every project now. */
  checkAll(): void {
    this.options.dueTimes.addAll(this.options.configCache.projects.keys());
  }

  /**
   * Claims the first deliveries of events that a server has routed. What is not claimed, for lack of room or since its endpoint may not be sent to now, is claimed
   * with all that is due of its project.
   */
  async claimEvents(refs: readonly EventRef[]): Promise<void> {
    const { database, inFlight, backpressure, dueTimes, lease } = this.options;
    const exceptEndpoints: string[] = [];
    let [bytes, limit] = [BATCH_BYTES, Math.min(BATCH_MAX, inFlight.room)];
    const claimable = new Set<string>();
    for (const projectId of new Set(refs.map((ref) => ref.projectId))) {
      const share = this.#shareOf(projectId);
      const busy = [...backpressure.unproven(projectId), ...share.full];
      const excepted = this.#excepted(projectId, backpressure.withheld(projectId), busy);
      if (excepted.length > 0 || share.bytes <= 0) dueTimes.add(projectId, POSTPONE_MS);
      if (share.bytes <= 0) continue;
      claimable.add(projectId);
      exceptEndpoints.push(...excepted);
      [bytes, limit] = [Math.min(bytes, share.bytes), Math.min(limit, share.deliveries)];
    }
    const wanted = refs.filter(({ projectId }) => claimable.has(projectId));
    if (wanted.length === 0 || limit <= 0 || lease.agentId === 0 || this.#stopped) {
      for (const projectId of claimable) dueTimes.add(projectId, 0);
      return;
    }
    const { agentId } = lease;
    const { claimed, isMore } = await claimEvents(database.pool, agentId, { refs: wanted, exceptEndpoints, limit, bytes });
    if (isMore) for (const projectId of claimable) dueTimes.add(projectId, 0);
    await this.#hold(claimed, agentId);
  }

  /** Starts no more claims, and resolves when the running one has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#claiming;
  }

  #sleep(): void {
    clearTimeout(this.#timer);
    const inMs = this.options.dueTimes.nextInMs();
    if (this.#stopped || this.#claiming || inMs === undefined) return;
    this.#timer = setTimeout(
      () => {
        this.#claiming = this.#claimDue().finally(() => {
          this.#claiming = undefined;
          this.#sleep();
        });
      },
      Math.min(Math.max(0, inMs), SLEEP_MAX_MS),
    );
  }

  async #claimDue(): Promise<void> {
    const { dueTimes, inFlight, log } = this.options;
    for (const projectId of dueTimes.takeDue(performance.now())) {
      if (this.#stopped) return;
      try {
        if (!(await inFlight.waitForRoom(AGAIN_MS)) || (await this.#claimProject(projectId)) === 'more') dueTimes.add(projectId, 0);
      } catch (error) {
        log.warn({ error, project_id: projectId }, 'Due deliveries could not be claimed; trying again.');
        dueTimes.add(projectId, AGAIN_MS);
      }
    }
  }

  async #claimProject(projectId: string): Promise<'more' | 'done'> {
    const { database, inFlight, backpressure, dueTimes, lease, measure } = this.options;
    const share = this.#shareOf(projectId);
    // Nothing calls when others leave room.
    if (share.full.length > 0 || share.bytes <= 0) dueTimes.add(projectId, POSTPONE_MS);
    const limit = Math.min(BATCH_MAX, inFlight.room, share.deliveries, Math.max(1, Math.floor(BATCH_BYTES / this.#bodyBytes)));
    if (limit <= 0 || this.#stopped) return 'done';
    const { agentId } = lease;
    // Not registered yet: the first heartbeat reads what is due.
    if (agentId === 0) return 'done';
    const withheld = backpressure.withheld(projectId);
    if (withheld.length > 0) await this.#postpone(projectId, withheld);
    const unproven = backpressure.unproven(projectId);
    // Nothing calls when time alone has made them slow.
    if (unproven.length > 0) dueTimes.add(projectId, POSTPONE_MS);
    const exceptEndpoints = this.#excepted(projectId, withheld, [...unproven, ...share.full]);
    const { claimed, scannedTo, isMore } = await claimDue(database.pool, agentId, {
      projectId,
      statuses: this.#statuses,
      exceptEndpoints,
      limit,
      bytes: Math.min(BATCH_BYTES, share.bytes),
      from: this.#cursors.from(projectId, exceptEndpoints, performance.now()),
    });
    this.#cursors.advance(projectId, scannedTo, exceptEndpoints, performance.now());
    if (claimed.length > 0) this.#bodyBytes = Math.max(1, claimed.reduce((sum, { data }) => sum + data.length, 0) / claimed.length);
    if (this.#overdue.delete(projectId) && claimed.length > 0) measure?.recovered(claimed.length);
    await this.#hold(claimed, agentId);
    return isMore ? 'more' : 'done';
  }

  async #hold(claimed: readonly ClaimedDelivery[], agentId: number): Promise<void> {
    const { configCache, inFlight, releaser } = this.options;
    const isUnknown = ({ projectId, endpointId }: ClaimedDelivery) => configCache.endpoint(projectId, endpointId) === undefined;
    // Whoever routed it may know an endpoint that is newer than the configuration here. To this agent it would be a deleted one.
    if (claimed.some(isUnknown)) await configCache.refresh();
    const [held, early]: [HeldDelivery[], HeldDelivery[]] = [[], []];
    for (const claim of claimed) {
      const { headers, data, ...delivery } = claim;
      const isEarly = isUnknown(claim) && configCache.isBehind(claim.projectId);
      (isEarly ? early : held).push({
        ...delivery,
        headers: JSON.parse(headers) as Record<string, string>,
        body: Buffer.from(data),
        agentId,
      });
    }
    inFlight.hold(held);
    if (early.length > 0) releaser.release(early, AGAIN_MS);
  }

  /** The endpoints of a project whose deliveries stay due now. Those that this agent cannot read are claimed by an agent that can. */
  #excepted(projectId: string, withheld: readonly Withheld[], busy: readonly string[]): string[] {
    const unreadable = this.options.configCache.projects.get(projectId)?.unreadable ?? [];
    return [...withheld.map(({ endpointId }) => endpointId), ...busy, ...[...unreadable].map(({ id }) => id)];
  }

  /** What may be claimed for the project now: so much, and of none of the endpoints that are `full`. */
  #shareOf(projectId: string): { readonly bytes: number; readonly deliveries: number; readonly full: readonly string[] } {
    const { inFlight, configCache } = this.options;
    const isFull = (endpointId: string) => !inFlight.hasRoomFor({ projectId, endpointId });
    const room = inFlight.roomOf(projectId, false);
    if (room.bytes > 0) {
      const full = [...inFlight.queues.values()].flatMap((queue) =>
        queue.projectId === projectId && isFull(queue.endpointId) ? queue.endpointId : [],
      );
      for (const endpointId of full) inFlight.awaitRoom(endpointId);
      return { ...room, full };
    }
    inFlight.awaitRoom(projectId);
    const nowMs = performance.now();
    if (nowMs < (this.#reserveAtMs.get(projectId) ?? 0)) return { bytes: 0, deliveries: 0, full: [] };
    const endpointIds = [...(configCache.projects.get(projectId)?.endpoints.keys() ?? [])];
    this.#reserveAtMs.set(projectId, nowMs + endpointIds.length * RESERVE_MS);
    const full = endpointIds.filter(isFull);
    return full.length < endpointIds.length ? { ...inFlight.roomOf(projectId, true), full } : { bytes: 0, deliveries: 0, full };
  }

  /** Postpones what is due and may not be sent now, so that claims do not meet it again and again. */
  async #postpone(projectId: string, withheld: readonly Withheld[]): Promise<void> {
    const { database, backpressure, dueTimes } = this.options;
    const startedAtMs = performance.now();
    const againInMs = (this.#postponeAtMs.get(projectId) ?? -Infinity) - startedAtMs;
    if (againInMs > 0) {
      dueTimes.add(projectId, againInMs);
      return;
    }
    const counts = await postponeDue(database.pool, projectId, withheld);
    this.#postponeAtMs.set(projectId, startedAtMs + Math.max(POSTPONE_MS, (performance.now() - startedAtMs) / POSTPONE_SHARE));
    for (const one of withheld) {
      const count = counts.get(one.endpointId) ?? 0;
      if (count === 0) continue;
      backpressure.postponed(one, count);
      dueTimes.add(projectId, one.wait.dueInMs);
    }
  }
}

/** Skipped rows are scanned again after this interval: a transaction that began long ago may have made some of them due. */
const CURSOR_MS = 5_000;

interface Cursor {
  /** Everything due before this, by the clock of Postgres, belongs to the excepted endpoints. */
  readonly from: string;
  readonly excepted: readonly string[];
  readonly untilMs: number;
}

/** Remembers how many due deliveries claims have skipped: there may be a million that may not be sent now, all older than those of other endpoints. */
export class ClaimCursors {
  readonly #cursors = new Map<string, Cursor>();

  /** Where a claim that leaves out these endpoints may begin; undefined: at the oldest delivery. */
  from(projectId: string, excepted: readonly string[], nowMs: number): string | undefined {
    const cursor = this.#cursors.get(projectId);
    if (!cursor) return undefined;
    const now = new Set(excepted);
    if (cursor.untilMs > nowMs && cursor.excepted.every((id) => now.has(id))) return cursor.from;
    this.#cursors.delete(projectId);
    return undefined;
  }

  advance(projectId: string, to: string, excepted: readonly string[], nowMs: number): void {
    if (excepted.length === 0) return;
    this.#cursors.set(projectId, { from: to, excepted, untilMs: this.#cursors.get(projectId)?.untilMs ?? nowMs + CURSOR_MS });
  }
}
