import { backoffMs, type Log } from '@gateway/core';
import { beatAgent, enterAgent, leaveAgent, readForgotten, recoverDeliveries, type Database, type Kv } from '@gateway/store';
import type { Claimer } from './claim.js';
import type { Deliverer } from './deliver.js';
import type { MemoryStore } from './memory-store.js';
import { returnUnheld } from './return-unheld.js';
import type { PendingRouter } from './route-pending.js';

/** An idle agent asks Postgres 0.4 times a second. */
const BEAT_MS = 2_500;
/** A dead agent's claims are void after this; with the beat of another agent they move again within 10 s. */
const TTL_MS = 7_000;
/** Pending this long with empty queues means that the signal was lost. */
const FORGOTTEN_MS = 5_000;
/** Pending this long is routed whatever the queues say. */
const FORGOTTEN_FOR_SURE_MS = 60_000;
const FORGOTTEN_BATCH = 200;
/** Every so many beats, claims that nobody answers for are looked for: of agents that have no row at all, and of this one that it does not know of. */
const ORPHANS_EVERY = 12;
/** A claim of this agent's own is no longer on its way to it after this. */
const UNHELD_MS = 20_000;

export interface HeartOptions {
  readonly database: Database;
  readonly kv: Kv;
  readonly store: MemoryStore;
  readonly router: PendingRouter;
  readonly deliverer: Deliverer;
  readonly claimer: Claimer;
  readonly log: Log;
  readonly name: string;
  /** Deliveries of dead agents that move again. */
  readonly onRecovered: (count: number) => void;
  /** Events whose signal was lost and that were routed by the reconciler. */
  readonly onReconciled: (count: number) => void;
  /** This agent was taken for dead and has a new id: what it held is no longer its own. */
  readonly onReborn: () => void;
}

/**
 * The agent's heartbeat, and with it all that needs somebody to look from time to time: deliveries of dead agents, events whose signal was
 * lost, deliveries that are due and that nobody was told about.
 */
export class Heart {
  readonly #options: HeartOptions;
  #id = 0;
  #agents = 1;
  #beats = 0;
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> | undefined;
  #stopped = false;
  failingSince: Date | null = null;

  constructor(options: HeartOptions) {
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

  /** Enters the agent; throws when Postgres does not answer. */
  async start(): Promise<void> {
    this.#id = await enterAgent(this.#options.database.pool, this.#options.name, TTL_MS);
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
    if (this.#id !== 0) await leaveAgent(this.#options.database.pool, this.#id);
    this.#id = 0;
  }

  #schedule(inMs: number): void {
    this.#timer = setTimeout(() => {
      const startedAtMs = performance.now();
      this.#beating = this.#beat()
        .then(() => {
          this.failingSince = null;
          return BEAT_MS - (performance.now() - startedAtMs);
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

  async #beat(): Promise<void> {
    const { database, store, claimer, log, onReborn } = this.#options;
    const beat = await beatAgent(database.pool, this.#id, TTL_MS, [...store.projects.keys()]);
    this.#agents = beat.agents;
    if (!beat.alive) {
      this.#id = await enterAgent(database.pool, this.#options.name, TTL_MS);
      log.warn({ agent_id: this.#id }, 'This agent did not beat for a while and was taken for dead; it goes on under a new id.');
      onReborn();
    }
    if (this.#stopped) return;
    await this.#recover(beat.anyDead);
    for (const [projectId, inMs] of beat.dueInMs) claimer.due(projectId, inMs);
    if (beat.oldestPendingMs !== null && beat.oldestPendingMs > FORGOTTEN_MS) await this.#reconcile(beat.oldestPendingMs);
  }

  async #recover(anyDead: boolean): Promise<void> {
    const { database, deliverer, claimer, log, onRecovered } = this.#options;
    const orphans = this.#beats++ % ORPHANS_EVERY === 0;
    if (!anyDead && !orphans) return;
    if (orphans) await returnUnheld({ database, deliverer, claimer, log, agentId: this.#id }, UNHELD_MS);
    const recovered = await recoverDeliveries(database.pool, { orphans });
    if (recovered === 0) return;
    log.info({ deliveries: recovered }, 'Deliveries of a dead agent move again; those that were on their way may arrive twice.');
    onRecovered(recovered);
    claimer.dueEverywhere();
  }

  /** Signals can be lost with KV or with an agent, events cannot: what KV no longer knows of is routed from Postgres. */
  async #reconcile(oldestMs: number): Promise<void> {
    const { database, kv, router, log, onReconciled } = this.#options;
    if (oldestMs < FORGOTTEN_FOR_SURE_MS && (await this.#queuesAreBusy(kv))) return;
    const age = oldestMs < FORGOTTEN_FOR_SURE_MS ? FORGOTTEN_MS : FORGOTTEN_FOR_SURE_MS;
    for (let events = await readForgotten(database.pool, age, FORGOTTEN_BATCH); events.length > 0 && !this.#stopped;) {
      await router.route(events);
      log.info({ events: events.length }, 'Events whose signal was lost were routed.');
      onReconciled(events.length);
      if (events.length < FORGOTTEN_BATCH) return;
      events = await readForgotten(database.pool, age, FORGOTTEN_BATCH);
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
