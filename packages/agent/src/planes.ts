import { databaseReason, GatewayError } from '@gateway/core/errors';
import { backoffMs } from '@gateway/core/process';
import { ShardedWriter } from '@gateway/ingest/commit/sharded-writer';
import type { ConfigCache, IntakeConfig } from '@gateway/ingest/routing/config-cache';
import { shardFinder } from '@gateway/ingest/routing/shard-of';
import type { Shard, Shards } from '@gateway/store/shards';
import { openPlane, type Plane } from './plane.js';
import type { AgentParts } from './wiring.js';

/** The time that a shard which does not answer can keep a starting agent from being ready. */
const OPEN_WITHIN_MS = 5_000;
const RETRY_AFTER_SECONDS = 1;
const RETRY = { baseMs: 1_000, capMs: 30_000 };

/** The component of health that says whether a shard's data plane runs. */
const componentOf = (name: string) => `shard ${name}`;

interface AgentPlanesOptions {
  readonly shards: Shards;
  readonly parts: AgentParts;
  /** The names of the shards to work on. Undefined for all. */
  readonly only: readonly string[] | undefined;
}

/** A shard with its plane. One that cannot be opened is tried again later. */
interface Slot {
  readonly shard: Shard;
  plane: Plane | undefined;
  opening: Promise<void> | undefined;
  failures: number;
  retryAtMs: number;
}

/** The data planes of an agent: one per shard that it works on. */
export class AgentPlanes {
  readonly #slots = new Map<string, Slot>();
  readonly #closing = new Set<Promise<void>>();
  #unfollow: (() => void) | undefined;
  #isOpening = true;
  #isClosed = false;

  constructor(private readonly options: AgentPlanesOptions) {}

  /** The configuration of all planes. A project that is moving is in two. */
  readonly config: IntakeConfig = {
    isCurrent: (id = '') => this.#configOf(id)?.isCurrent(id) ?? false,
    refresh: () => this.#inAll((config) => config.refresh()),
    invalidate: (id) => this.#inAll((config) => config.invalidate(id)),
    projects: { get: (id) => this.#configOf(id)?.projects.get(id) },
  };

  /** Commits events over HTTP, each with the plane of its project's shard. */
  writer(): ShardedWriter {
    const { parts, only } = this.options;
    return new ShardedWriter({
      shardOf: shardFinder(this.config, parts.database),
      writerOf: (shard) => {
        // Read for each message: the plane of a shard can be opened later, or again.
        const current = () => this.#slots.get(shard)?.plane?.wiring.eventWriter;
        return Promise.resolve({
          push(message) {
            const writer = current();
            if (writer) writer.push(message);
            else if (message.failed)
              message.failed(
                notHere(
                  shard,
                  only?.includes(shard) === false
                    ? 'is not one that this agent works on (agent.shards); servers take events of all'
                    : 'is not open in this agent',
                ),
              );
            else message.settle('later');
          },
          stop: () => undefined,
          get failing() {
            return current()?.failing;
          },
        });
      },
    });
  }

  get running(): readonly Plane[] {
    return [...this.#slots.values()].flatMap(({ plane }) => plane ?? []);
  }

  /** Whether shards have not been tried yet, or sources of a running plane are being opened. */
  get isStarting(): boolean {
    return this.#isOpening || this.running.some(({ wiring }) => wiring.isStarting);
  }

  get draining(): boolean {
    return this.#isClosed || this.running.some(({ wiring }) => wiring.draining);
  }

  /**
   * Opens the first plane: that of the default shard, or of the first named one that can be opened.
   * It fails like a process with one database: at once, with the reason.
   *
   * @throws GatewayError `shard_unknown` if a named shard does not exist, and those of `openPlane`
   */
  async open(): Promise<Plane> {
    const { shards, only } = this.options;
    let failure: unknown;
    for (const shard of only?.map((name) => shards.of(name)) ?? shards.all.slice(0, 1)) {
      try {
        const plane = await this.#openPlane(shard);
        this.#slots.set(shard.name, { ...newSlot(shard), plane });
        return plane;
      } catch (error) {
        failure ??= error;
      }
    }
    throw failure;
  }

  /** Starts the open plane, and opens those of the other shards in the background. */
  start(): void {
    for (const plane of this.running) plane.start();
    void this.#openOthers();
    this.#unfollow = this.options.shards.onRead(() => this.#reconcile());
  }

  /** Stops all planes: they finish what they have begun and give back the rest. */
  async drain(): Promise<void> {
    this.#isClosed = true;
    this.#unfollow?.();
    await Promise.all([...this.#slots.values()].flatMap(({ opening }) => opening ?? []));
    await Promise.all(this.running.map(({ wiring }) => wiring.drain()));
  }

  async close(): Promise<void> {
    await this.drain();
    await Promise.all([...this.running.map((plane) => plane.close()), ...this.#closing]);
  }

  /** Waits for them: an agent that is ready takes posts to projects of all shards. */
  async #openOthers(): Promise<void> {
    const bound = setTimeout(() => (this.#isOpening = false), OPEN_WITHIN_MS);
    this.#reconcile();
    await Promise.all([...this.#slots.values()].flatMap(({ opening }) => opening ?? []));
    clearTimeout(bound);
    this.#isOpening = false;
  }

  #configOf(projectId: string): ConfigCache | undefined {
    const found = this.running.flatMap(({ wiring: { configCache, shard } }) => {
      const project = configCache.projects.get(projectId);
      return project ? [{ configCache, isCurrent: project.shard === shard.name }] : [];
    });
    return (found.find(({ isCurrent }) => isCurrent) ?? found[0])?.configCache;
  }

  async #inAll(work: (config: ConfigCache) => Promise<void>): Promise<void> {
    await Promise.all(this.running.map(({ wiring }) => work(wiring.configCache)));
  }

  /** Opens planes of new shards, and closes those of removed or changed ones. */
  #reconcile(): void {
    const { shards, only } = this.options;
    const wanted = shards.all.filter(({ name }) => only?.includes(name) ?? true);
    for (const [name, slot] of this.#slots) if (!wanted.includes(slot.shard)) this.#end(name, slot);
    for (const shard of wanted) {
      const slot = this.#slots.get(shard.name) ?? newSlot(shard);
      this.#slots.set(shard.name, slot);
      if (!slot.plane && !slot.opening && slot.retryAtMs <= performance.now())
        slot.opening = this.#open(slot).finally(() => (slot.opening = undefined));
    }
  }

  #openPlane(shard: Shard): Promise<Plane> {
    const { shards, only, parts } = this.options;
    return openPlane(shard, { ...parts, shardCount: only?.length ?? shards.all.length });
  }

  async #open(slot: Slot): Promise<void> {
    const { parts } = this.options;
    const { name, settings } = slot.shard;
    try {
      slot.plane = await this.#openPlane(slot.shard);
    } catch (error) {
      slot.retryAtMs = performance.now() + backoffMs(++slot.failures, RETRY);
      const reason =
        error instanceof GatewayError ? error.message : databaseReason(error, settings).reason;
      parts.health.report(componentOf(name), 'down', `${reason}. Its projects wait.`);
      parts.log[slot.failures === 1 ? 'warn' : 'debug'](
        { shard: name, error },
        'A shard cannot be worked on; it is tried again. Its projects wait, the others go on.',
      );
      return;
    }
    slot.failures = 0;
    parts.health.report(componentOf(name), 'ok');
    parts.log.info({ shard: name }, 'The agent works on the shard.');
    if (!this.#isClosed) slot.plane.start();
  }

  #end(name: string, { plane, opening }: Slot): void {
    this.#slots.delete(name);
    this.options.parts.health.forget(componentOf(name));
    const ended = (async () => {
      await opening;
      await plane?.close();
    })();
    this.#closing.add(ended);
    void ended.finally(() => this.#closing.delete(ended));
  }
}

function notHere(shard: string, state: string): GatewayError<'shard_away'> {
  return new GatewayError('shard_away', {
    shard,
    state,
    outcome: 'nothing was stored',
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

function newSlot(shard: Shard): Slot {
  return { shard, plane: undefined, opening: undefined, failures: 0, retryAtMs: 0 };
}
