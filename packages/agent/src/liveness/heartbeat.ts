import { backoffMs, failAgain, type OngoingFailure } from '@gateway/core/process';
import {
  deregisterAgent,
  notifyDue,
  readClaimed,
  recoverDeliveries,
  registerAgent,
  releaseDeliveries,
  sendHeartbeat,
} from '@gateway/store/deliveries';
import { readStalePending } from '@gateway/store/events';
import { queueOf, type QueueKind } from '@gateway/store/kv';
import type { AgentContext } from '../config/agent-context.js';
import type { Claimer } from '../delivery/claimer.js';
import type { DueTimes } from '../delivery/due-times.js';
import type { DeliveriesInFlight } from '../delivery/in-flight.js';
import type { Scheduler } from '../delivery/scheduler.js';
import { LEASE_MS } from '../model/lease.js';
import type { PendingRouter } from '../routing/pending-router.js';

const HEARTBEAT_MS = 2_000;
/** Between the end of another agent's lease and the heartbeat that checks it. */
const AFTER_LEASE_MS = 20;
/** While the queues are empty, events pending for longer have lost their signal. */
const FORGOTTEN_MS = 5_000;
/** Events pending for longer are routed even while the queues are busy. */
const FORGOTTEN_FOR_SURE_MS = 60_000;
const FORGOTTEN_BATCH = 200;
/** A delivery overdue by more was missed by the agent that knew of it. */
const OVERDUE_MS = 5_000;
/**
 * A sweep releases claims of unregistered agents, and this agent's claims on deliveries that it
 * does not have in memory.
 */
const HEARTBEATS_PER_SWEEP = 12;
/** Younger claims are not released: the agent may not have received them yet. */
const UNKNOWN_CLAIM_MS = 20_000;

interface HeartbeatOptions extends Pick<
  AgentContext,
  'database' | 'shard' | 'kv' | 'configCache' | 'lease' | 'clock' | 'log' | 'measure'
> {
  readonly control: AgentContext['database'];
  readonly router: PendingRouter;
  readonly inFlight: DeliveriesInFlight;
  readonly scheduler: Scheduler;
  readonly dueTimes: DueTimes;
  readonly claimer: Claimer;
  readonly name: string;
  readonly readsSources: boolean;
  readonly onRenewed: () => void;
}

/**
 * Renews the lease, and recovers deliveries of dead agents, events whose signal was lost, and
 * overdue deliveries.
 */
export class AgentHeartbeat {
  #heartbeats = 0;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;
  #left = false;
  failing: OngoingFailure | null = null;

  constructor(private readonly options: HeartbeatOptions) {}

  /** Registers this agent. Rejects if Postgres is unreachable. */
  async start(): Promise<void> {
    const renewed = this.options.lease.begin();
    await this.#register();
    // The first heartbeat adjusts the clock before anything is signed.
    await this.#beat();
    renewed();
    this.#schedule(0);
  }

  /**
   * Recovers no more deliveries and events. The lease is renewed until `leave`, so that no other
   * agent takes the in-flight deliveries.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  /** Ends the lease. Rejects if Postgres is unreachable, and the lease then expires. */
  async leave(): Promise<void> {
    this.#left = true;
    clearTimeout(this.#timer);
    await this.#running;
    const { database, lease } = this.options;
    if (lease.agentId !== 0) await deregisterAgent(database.pool, lease.agentId);
    lease.agentId = 0;
  }

  async #register(): Promise<void> {
    const { database, lease, name, readsSources } = this.options;
    lease.agentId = await registerAgent(database.pool, name, LEASE_MS, { readsSources });
  }

  #schedule(inMs: number): void {
    this.#timer = setTimeout(() => void (this.#running = this.#run()), inMs);
  }

  async #run(): Promise<void> {
    const startedAtMs = performance.now();
    let nextInMs;
    try {
      nextInMs = (await this.#renew()) - (performance.now() - startedAtMs);
      this.failing = null;
    } catch (error) {
      if (!this.failing) this.options.log.warn({ error }, 'The heartbeat failed; retrying.');
      this.failing = failAgain(this.failing, error);
      nextInMs = backoffMs(1, { baseMs: 500 });
    }
    // Another heartbeat after `leave` would register the agent again.
    if (!this.#left) this.#schedule(Math.max(100, nextInMs));
  }

  async #renew(): Promise<number> {
    const { configCache, inFlight, scheduler, dueTimes, claimer, lease, log, onRenewed } =
      this.options;
    // Whatever delayed this agent may have delayed all agents, so this heartbeat recovers no
    // claims.
    const isLate = !lease.isHeld;
    const isFirst = this.#heartbeats === 0;
    let renewed = lease.begin();
    const found = await this.#beat();
    if (!found.alive) {
      renewed = lease.begin();
      await this.#register();
      log.warn(
        { agent_id: lease.agentId },
        'Missed heartbeats: this agent was presumed dead and continues under a new id.',
      );
      // Waiting deliveries were claimed under the former id, so they are returned to Postgres.
      inFlight.releaseWaiting();
    }
    renewed();
    scheduler.resume();
    onRenewed();
    if (this.#stopped) return HEARTBEAT_MS;
    if (!isLate) await this.#recover(found.anyDead);
    for (const [projectId, inMs] of found.dueInMs) {
      if (!configCache.projects.has(projectId)) continue;
      // Deliveries that became due while this agent could not check were not missed by another
      // agent.
      if (inMs < -OVERDUE_MS && !isFirst && !isLate) claimer.overdue(projectId);
      else dueTimes.add(projectId, inMs);
    }
    if (found.oldestPendingMs !== null && found.oldestPendingMs > FORGOTTEN_MS)
      await this.#reconcile(found.oldestPendingMs);
    return Math.min(HEARTBEAT_MS, (found.nextDeadInMs ?? Infinity) + AFTER_LEASE_MS);
  }

  async #beat() {
    const { database, lease, clock } = this.options;
    const askedAtMs = performance.now();
    const found = await sendHeartbeat(database.pool, lease.agentId, LEASE_MS);
    clock.adjust(found.nowMs, askedAtMs);
    lease.agents = found.agents;
    lease.readers = found.readers;
    return found;
  }

  async #recover(anyDead: boolean): Promise<void> {
    const { database, control, claimer, log, measure } = this.options;
    const isSweep = this.#heartbeats++ % HEARTBEATS_PER_SWEEP === 0;
    if (!anyDead && !isSweep) return;
    if (isSweep) {
      const released = await releaseOrphanedClaims(this.options, UNKNOWN_CLAIM_MS);
      if (released > 0) measure?.recovered(released);
    }
    const recovered = await recoverDeliveries(database.pool, { orphans: isSweep });
    if (recovered === 0) return;
    log.info(
      { deliveries: recovered },
      'Deliveries of a dead agent are due again; those that were in flight may arrive twice.',
    );
    measure?.recovered(recovered);
    claimer.checkAll();
    await notifyDue(control.pool);
  }

  /** Routes pending events whose signal was lost by KV or an agent. */
  async #reconcile(oldestMs: number): Promise<void> {
    const { database, kv, shard, router, log, measure } = this.options;
    const depthOf = (queue: QueueKind) => kv.queue(queueOf(queue, shard.name)).depth();
    const isBusy = async () =>
      (await depthOf('create-event')) + (await depthOf('match-subscriptions')) > 0;
    if (oldestMs < FORGOTTEN_FOR_SURE_MS && (await isBusy().catch(() => false))) return;
    const age = oldestMs < FORGOTTEN_FOR_SURE_MS ? FORGOTTEN_MS : FORGOTTEN_FOR_SURE_MS;
    let events;
    do {
      events = await readStalePending(database.pool, age, FORGOTTEN_BATCH, router.postponed);
      if (events.length === 0) return;
      await router.route(events);
      log.info({ events: events.length }, 'Routed events whose signal was lost.');
      measure?.reconciled(events.length);
    } while (events.length === FORGOTTEN_BATCH && !this.#stopped);
  }
}

/**
 * This agent's claims on deliveries that it does not have in memory, such as after an error during
 * a commit. Returns their number.
 */
export async function releaseOrphanedClaims(
  {
    database,
    inFlight,
    dueTimes,
    lease,
    log,
  }: Pick<HeartbeatOptions, 'database' | 'inFlight' | 'dueTimes' | 'lease' | 'log'>,
  olderThanMs: number,
): Promise<number> {
  const claimed = await readClaimed(database.pool, lease.agentId, olderThanMs);
  const orphaned = claimed.filter(({ id }) => !inFlight.has(id));
  if (orphaned.length === 0) return 0;
  log.info({ deliveries: orphaned.length }, 'Deliveries with an orphaned claim are due again.');
  await releaseDeliveries(database.pool, lease.agentId, orphaned, { to: 'due', dueInMs: 0 });
  for (const projectId of new Set(orphaned.map((delivery) => delivery.projectId)))
    dueTimes.add(projectId, 0);
  return orphaned.length;
}
