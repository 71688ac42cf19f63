import type { Log } from '@gateway/core/logging';
import { backoffMs } from '@gateway/core/process';
import { notifyDue, recoverDeliveries } from '@gateway/store/deliveries';
import { readStalePending } from '@gateway/store/events';
import type { Kv } from '@gateway/store/kv';
import { sendHeartbeat, registerAgent, deregisterAgent } from '@gateway/store/deliveries';
import type { Database } from '@gateway/store/postgres';
import type { Claimer } from '../delivery/claimer.js';
import type { Scheduler } from '../delivery/scheduler.js';
import { Lease } from '../model/lease.js';
import type { ConfigCache } from '../config/config-cache.js';
import { releaseOrphanedClaims } from './orphaned-claims.js';
import type { PendingRouter } from '../routing/pending-router.js';

/** An idle agent asks Postgres every two seconds. */
const BEAT_MS = 2_000;
/**
 * A dead agent's claims are void after this. More than twice the beat: one may fail. And whoever lives has more than a beat left whenever another looks, so
 * that a look at the very moment when the next lease ends is due to a dead agent alone.
 */
const TTL_MS = 5_000;
/** The look at a lease that ends is so much behind its end. */
const AFTER_MS = 20;
/** Pending this long with empty queues means that the signal was lost. */
const FORGOTTEN_MS = 5_000;
/** Pending this long is routed whatever the queues say. */
const FORGOTTEN_FOR_SURE_MS = 60_000;
const FORGOTTEN_BATCH = 200;
/** Due this long, a delivery has been left behind by whoever knew of it. */
const OVERDUE_MS = 5_000;
/** Every so many beats, claims that nobody answers for are looked for: of agents that have no row at all, and of this one that it does not know of. */
const ORPHANS_EVERY = 12;
/** A claim of this agent's own is no longer on its way to it after this. */
const UNHELD_MS = 20_000;

export interface HeartbeatOptions {
  readonly database: Database;
  readonly kv: Kv;
  readonly store: ConfigCache;
  readonly router: PendingRouter;
  readonly scheduler: Scheduler;
  readonly claimer: Claimer;
  readonly log: Log;
  readonly name: string;
  /** Deliveries that were left behind, by a dead agent or by a claim whose answer was lost, and that move again. */
  readonly onRecovered: (count: number) => void;
  /** Events whose signal was lost and that were routed by the reconciler. */
  readonly onReconciled: (count: number) => void;
  /** This agent was taken for dead and has a new id: what it held is no longer its own. */
  readonly onReplaced: () => void;
  /** The lease was renewed. */
  readonly onRenewed: () => void;
}

/**
 * The agent's heartbeat, and with it all that needs somebody to look from time to time: deliveries of dead agents, events whose signal was
 * lost, deliveries that are due and that nobody was told about.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #lease = new Lease(TTL_MS);
  #id = 0;
  #agents = 1;
  #beats = 0;
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> | undefined;
  #stopped = false;
  failingSince: Date | null = null;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  /** The id under which this agent claims. */
  get id(): number {
    return this.#id;
  }

  /** Agents that are alive. */
  get agents(): number {
    return this.#agents;
  }

  /**
   * True while nobody can have taken what this agent holds. Not after a freeze, nor when Postgres has not answered for a while: before the next beat
   * this agent cannot know.
   */
  get isLeased(): boolean {
    return this.#lease.holds;
  }

  /** Enters the agent; throws when Postgres does not answer. */
  async start(): Promise<void> {
    const renewed = this.#lease.begin();
    this.#id = await registerAgent(this.#options.database.pool, this.#options.name, TTL_MS);
    renewed();
    this.#schedule(0);
  }

  /** Stops looking after others; the row stays until `leave`, so that nobody takes what is still under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#beating;
  }

  async leave(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#beating;
    if (this.#id !== 0) await deregisterAgent(this.#options.database.pool, this.#id);
    this.#id = 0;
  }

  #schedule(inMs: number): void {
    this.#timer = setTimeout(() => {
      const startedAtMs = performance.now();
      this.#beating = this.#beat()
        .then((nextInMs) => {
          this.failingSince = null;
          return nextInMs - (performance.now() - startedAtMs);
        })
        .catch((error: unknown) => {
          if (this.failingSince === null) this.#options.log.warn({ error }, 'The heartbeat failed; trying again.');
          this.failingSince ??= new Date();
          return backoffMs(1, { baseMs: 500 });
        })
        .then((nextInMs) => {
          if (this.#id !== 0) this.#schedule(Math.max(100, nextInMs));
        });
    }, inMs);
  }

  /** @returns when the next one is wanted, in milliseconds from when this one began */
  async #beat(): Promise<number> {
    const { database, store, claimer, log, onReplaced, onRenewed } = this.#options;
    // What kept this agent from beating may have kept all others as well: they get the time of one beat before their claims are taken.
    const isLate = !this.#lease.holds;
    const isFirst = this.#beats === 0;
    let renewed = this.#lease.begin();
    const beat = await sendHeartbeat(database.pool, this.#id, TTL_MS, [...store.projects.keys()]);
    this.#agents = beat.agents;
    if (!beat.alive) {
      renewed = this.#lease.begin();
      this.#id = await registerAgent(database.pool, this.#options.name, TTL_MS);
      log.warn({ agent_id: this.#id }, 'This agent did not beat for a while and was taken for dead; it goes on under a new id.');
      onReplaced();
    }
    renewed();
    onRenewed();
    if (this.#stopped) return BEAT_MS;
    if (!isLate) await this.#recover(beat.anyDead);
    for (const [projectId, inMs] of beat.dueInMs) {
      // What came due while this agent could not look was not left behind by anybody.
      if (inMs < -OVERDUE_MS && !isFirst && !isLate) claimer.overdue(projectId);
      else claimer.due(projectId, inMs);
    }
    if (beat.oldestPendingMs !== null && beat.oldestPendingMs > FORGOTTEN_MS) await this.#reconcile(beat.oldestPendingMs);
    return Math.min(BEAT_MS, (beat.nextDeadInMs ?? Infinity) + AFTER_MS);
  }

  async #recover(anyDead: boolean): Promise<void> {
    const { database, scheduler, claimer, log, onRecovered } = this.#options;
    const orphans = this.#beats++ % ORPHANS_EVERY === 0;
    if (!anyDead && !orphans) return;
    if (orphans) {
      const unheld = await releaseOrphanedClaims({ database, scheduler, claimer, log, agentId: this.#id }, UNHELD_MS);
      if (unheld > 0) onRecovered(unheld);
    }
    const recovered = await recoverDeliveries(database.pool, { orphans });
    if (recovered === 0) return;
    log.info({ deliveries: recovered }, 'Deliveries of a dead agent move again; those that were on their way may arrive twice.');
    onRecovered(recovered);
    claimer.dueEverywhere();
    await notifyDue(database.pool);
  }

  /** Signals can be lost with KV or with an agent, events cannot: what KV no longer knows of is routed from Postgres. */
  async #reconcile(oldestMs: number): Promise<void> {
    const { database, kv, router, log, onReconciled } = this.#options;
    if (oldestMs < FORGOTTEN_FOR_SURE_MS && (await this.#queuesAreBusy(kv))) return;
    const age = oldestMs < FORGOTTEN_FOR_SURE_MS ? FORGOTTEN_MS : FORGOTTEN_FOR_SURE_MS;
    for (let events = await readStalePending(database.pool, age, FORGOTTEN_BATCH); events.length > 0 && !this.#stopped;) {
      await router.route(events);
      log.info({ events: events.length }, 'Events whose signal was lost were routed.');
      onReconciled(events.length);
      if (events.length < FORGOTTEN_BATCH) return;
      events = await readStalePending(database.pool, age, FORGOTTEN_BATCH);
    }
  }

  async #queuesAreBusy(kv: Kv): Promise<boolean> {
    try {
      return (await kv.queue('create-event').depth()) + (await kv.queue('match-subscriptions').depth()) > 0;
    } catch {
      return false;
    }
  }
}
