import {
  claimDue,
  claimEvents,
  postponeDue,
  type ClaimedDelivery,
} from '@gateway/store/deliveries';
import type { EventRef } from '@gateway/store/events';
import type { AgentContext } from '../config/agent-context.js';
import type { Gates, Postponement, Refused } from '../flow-control/gates.js';
import type { DueTimes } from './due-times.js';
import type { DeliveriesInFlight } from './in-flight.js';
import type { DeliveryReleaser } from './release-deliveries.js';

const BATCH_MAX = 200;
/** The byte limit for the headers and bodies of one claim. Only the last delivery may exceed it. */
const BATCH_BYTES = 4 * 1024 * 1024;
/**
 * The minimum interval between checks of a project's blocked endpoints, and between postponements
 * of their deliveries.
 */
const POSTPONE_MS = 500;
/** The maximum share of time spent postponing deliveries, because Postgres has other writes too. */
const POSTPONE_SHARE = 1 / 4;
/**
 * The maximum time that a claim waits for capacity, and the delay before a failed claim is retried.
 */
const AGAIN_MS = 1_000;
const SLEEP_MAX_MS = 60_000;

interface ClaimerOptions extends Pick<
  AgentContext,
  'config' | 'database' | 'shard' | 'configCache' | 'lease' | 'log' | 'measure'
> {
  readonly inFlight: DeliveriesInFlight;
  readonly gates: Pick<Gates, 'refused' | 'saturatedQueues' | 'postpone'>;
  readonly dueTimes: DueTimes;
  readonly releaser: Pick<DeliveryReleaser, 'release'>;
}

/** Claims due deliveries while there is capacity. Retries a failed claim after a second. */
export class Claimer {
  readonly #statuses: readonly ('scheduled' | 'retry')[];
  readonly #overdue = new Set<string>();
  readonly #postponeAtMs = new Map<string, number>();
  readonly #cursors = new ClaimCursors();
  #timer: NodeJS.Timeout | undefined;
  #bodyBytes = 1;
  #claiming: Promise<void> | undefined;
  #stopped = false;

  constructor(private readonly options: ClaimerOptions) {
    const { mode } = options.config.agent;
    this.#statuses =
      mode === 'events' ? ['scheduled'] : mode === 'retry' ? ['retry'] : ['scheduled', 'retry'];
    options.dueTimes.onEarlier(() => this.#sleep());
    options.inFlight.onRoom((projectId) => options.dueTimes.add(projectId, 0));
  }

  /**
   * Claims a project's overdue deliveries. They count as recovered unless they were already waiting
   * for this agent.
   */
  overdue(projectId: string): void {
    const { dueTimes, inFlight, gates } = this.options;
    const isKnown = dueTimes.has(projectId) || this.#claiming !== undefined || inFlight.room <= 0;
    if (!isKnown && gates.saturatedQueues().length === 0) this.#overdue.add(projectId);
    dueTimes.add(projectId, 0);
  }

  checkAll(): void {
    const { configCache, shard, dueTimes } = this.options;
    dueTimes.addAll([...configCache.inShard(shard.name)].map(({ id }) => id));
  }

  /**
   * Claims the first deliveries of events routed by a server, up to the free capacity. The rest are
   * claimed when due.
   */
  async claimEvents(refs: readonly EventRef[]): Promise<void> {
    const { database, inFlight, dueTimes, lease } = this.options;
    const exceptEndpoints: string[] = [];
    let [bytes, limit] = [BATCH_BYTES, Math.min(BATCH_MAX, inFlight.room)];
    const claimable = new Set<string>();
    for (const projectId of new Set(refs.map((ref) => ref.projectId))) {
      const share = this.#shareOf(projectId);
      if (share.refused.length > 0 || share.bytes <= 0) dueTimes.add(projectId, POSTPONE_MS);
      if (share.bytes <= 0) continue;
      claimable.add(projectId);
      for (const { endpoint } of share.refused) exceptEndpoints.push(endpoint.id);
      [bytes, limit] = [Math.min(bytes, share.bytes), Math.min(limit, share.deliveries)];
    }
    const wanted = refs.filter(({ projectId }) => claimable.has(projectId));
    if (wanted.length === 0 || limit <= 0 || lease.agentId === 0 || this.#stopped) {
      for (const projectId of claimable) dueTimes.add(projectId, 0);
      return;
    }
    const { agentId } = lease;
    const { claimed, isMore } = await claimEvents(database.pool, agentId, {
      refs: wanted,
      exceptEndpoints,
      limit,
      bytes,
    });
    if (isMore) for (const projectId of claimable) dueTimes.add(projectId, 0);
    await this.#take(claimed);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#claiming;
  }

  #sleep(): void {
    clearTimeout(this.#timer);
    const inMs = this.options.dueTimes.nextInMs();
    if (this.#stopped || this.#claiming || inMs === Infinity) return;
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
        if (
          !(await inFlight.waitForRoom(AGAIN_MS)) ||
          (await this.#claimProject(projectId)) === 'more'
        )
          dueTimes.add(projectId, 0);
      } catch (error) {
        log.warn({ error, project_id: projectId }, 'Could not claim due deliveries; retrying.');
        dueTimes.add(projectId, AGAIN_MS);
      }
    }
  }

  async #claimProject(projectId: string): Promise<'more' | 'done'> {
    const { database, inFlight, dueTimes, lease, measure } = this.options;
    const share = this.#shareOf(projectId);
    // The project is checked again later, because other projects free capacity without notifying
    // it, and an endpoint becomes slow without a notification.
    if (share.refused.some(isBusy) || share.bytes <= 0) dueTimes.add(projectId, POSTPONE_MS);
    const limit = Math.min(
      BATCH_MAX,
      inFlight.room,
      share.deliveries,
      Math.max(1, Math.floor(BATCH_BYTES / this.#bodyBytes)),
    );
    if (limit <= 0 || this.#stopped) return 'done';
    const { agentId } = lease;
    // An unregistered agent cannot claim. Its first heartbeat will read the due deliveries.
    if (agentId === 0) return 'done';
    await this.#postpone(projectId, share.refused);
    const exceptEndpoints = share.refused.map(({ endpoint }) => endpoint.id);
    const { claimed, scannedTo, isMore } = await claimDue(database.pool, agentId, {
      projectId,
      statuses: this.#statuses,
      exceptEndpoints,
      limit,
      bytes: Math.min(BATCH_BYTES, share.bytes),
      from: this.#cursors.from(projectId, exceptEndpoints, performance.now()),
    });
    this.#cursors.advance(projectId, scannedTo, exceptEndpoints, performance.now());
    if (claimed.length > 0)
      this.#bodyBytes = Math.max(
        1,
        claimed.reduce((sum, { body }) => sum + body.length, 0) / claimed.length,
      );
    if (this.#overdue.delete(projectId) && claimed.length > 0) measure?.recovered(claimed.length);
    await this.#take(claimed);
    return isMore ? 'more' : 'done';
  }

  async #take(claimed: readonly ClaimedDelivery[]): Promise<void> {
    const { configCache, inFlight, releaser } = this.options;
    const isUnknown = ({ projectId, endpointId }: ClaimedDelivery) =>
      configCache.endpoint(projectId, endpointId) === undefined;
    // Without a refresh, an endpoint newer than the cached configuration would look deleted.
    if (claimed.some(isUnknown)) await configCache.refresh();
    const early = claimed.filter((it) => isUnknown(it) && configCache.isBehind(it.projectId));
    inFlight.add(early.length === 0 ? claimed : claimed.filter((it) => !early.includes(it)));
    if (early.length > 0) releaser.release(early, AGAIN_MS);
  }

  #shareOf(projectId: string): {
    readonly bytes: number;
    readonly deliveries: number;
    readonly refused: readonly Refused[];
  } {
    const { inFlight, gates, configCache } = this.options;
    const room = inFlight.roomOf(projectId, false);
    if (room.bytes > 0) {
      const refused = gates.refused(projectId);
      for (const { endpoint, refusal } of refused)
        if (refusal.gate === 'room') inFlight.awaitRoom(endpoint.id);
      return { ...room, refused };
    }
    inFlight.awaitRoom(projectId);
    // Endpoints that answer may use the reserve.
    const endpointIds = [...(configCache.projects.get(projectId)?.endpoints.keys() ?? [])];
    const refused = gates.refused(projectId, endpointIds);
    const full = refused.filter(({ refusal }) => refusal.gate === 'room');
    return full.length < endpointIds.length
      ? { ...inFlight.roomOf(projectId, true), refused }
      : { bytes: 0, deliveries: 0, refused };
  }

  /** Postpones due deliveries that may not be sent now, so that claims do not rescan them. */
  async #postpone(projectId: string, refused: readonly Refused[]): Promise<void> {
    const { database, gates, dueTimes } = this.options;
    const withheld = refused.flatMap(({ endpoint, refusal }) => {
      const wait = refusal.answer === 'postpone' && refusal.wait(0);
      return typeof wait === 'object' ? { endpoint, refusal, endpointId: endpoint.id, wait } : [];
    });
    if (withheld.length === 0) return;
    const startedAtMs = performance.now();
    const againInMs = (this.#postponeAtMs.get(projectId) ?? -Infinity) - startedAtMs;
    if (againInMs > 0) {
      dueTimes.add(projectId, againInMs);
      return;
    }
    const counts = await postponeDue(database.pool, projectId, withheld);
    this.#postponeAtMs.set(
      projectId,
      startedAtMs + Math.max(POSTPONE_MS, (performance.now() - startedAtMs) / POSTPONE_SHARE),
    );
    for (const { endpoint, refusal, wait } of withheld) {
      const count = counts.get(endpoint.id) ?? 0;
      if (count === 0) continue;
      gates.postpone(endpoint, refusal as Postponement, count);
      dueTimes.add(projectId, wait.dueInMs);
    }
  }
}

/** Whether the deliveries of an endpoint stay due until this agent has room for them. */
function isBusy({ refusal }: Refused): boolean {
  return refusal.answer === 'keep' && refusal.gate !== 'pause';
}

/**
 * The lifetime of a cursor. Skipped rows are then rescanned, because an old transaction may have
 * made some of them due.
 */
const CURSOR_MS = 5_000;

interface Cursor {
  /** Every delivery due before this Postgres time belongs to an excepted endpoint. */
  readonly from: string;
  readonly excepted: readonly string[];
  readonly untilMs: number;
}

/**
 * Remembers where the next claim of a project starts scanning, to skip due deliveries that may not
 * be sent now, of which there may be a million.
 */
export class ClaimCursors {
  readonly #cursors = new Map<string, Cursor>();

  /** Returns the due time from which to scan, or undefined to scan from the oldest delivery. */
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
    this.#cursors.set(projectId, {
      from: to,
      excepted,
      untilMs: this.#cursors.get(projectId)?.untilMs ?? nowMs + CURSOR_MS,
    });
  }
}
