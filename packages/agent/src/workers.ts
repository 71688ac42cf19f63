import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { backoffMs, type Health } from '@gateway/core/process';
import { ShardedWriter } from '@gateway/ingest/commit/sharded-writer';
import type { ConfigCache } from '@gateway/ingest/routing/config-cache';
import { shardFinder } from '@gateway/ingest/routing/shard-of';
import { databaseFault, faultText, shardComponent } from '@gateway/ingest/dependencies';
import type { Shard, Shards } from '@gateway/store/shards';
import type { OpenWorker, ShardWorker } from './shard-worker.js';

/** The time that a shard which does not answer can keep a starting agent from being ready. */
const OPEN_WITHIN_MS = 5_000;
const RETRY_AFTER_SECONDS = 1;
const RETRY = { baseMs: 1_000, capMs: 30_000 };

interface WorkersOptions {
  readonly shards: Shards;
  readonly configCache: ConfigCache;
  readonly health: Health;
  readonly log: Log;
  /** The names of the shards to work on. Undefined for all. */
  readonly only: readonly string[] | undefined;
  readonly open: (shard: Shard) => Promise<OpenWorker>;
}

/** A shard with its worker. One that cannot be opened is tried again later. */
interface Slot {
  readonly shard: Shard;
  opened: OpenWorker | undefined;
  opening: Promise<void> | undefined;
  failures: number;
  retryAtMs: number;
}

/** The workers of an agent: one per shard that it works on. */
export class Workers {
  readonly #slots = new Map<string, Slot>();
  readonly #closing = new Set<Promise<void>>();
  #unfollow: (() => void) | undefined;
  #isOpening = true;
  #isStarted = false;
  #isClosed = false;
  running: readonly ShardWorker[] = [];

  constructor(private readonly options: WorkersOptions) {}

  /** Returns the worker of a project, or all while it is not loaded. */
  ofProject(projectId: string): readonly ShardWorker[] {
    const project = this.options.configCache.projects.get(projectId);
    return project
      ? this.running.filter(({ shard }) => shard.name === project.shard)
      : this.running;
  }

  /** Commits each event with the worker of its project's shard. */
  writer(): ShardedWriter {
    const { configCache, shards, only } = this.options;
    return new ShardedWriter({
      shardOf: shardFinder(configCache, shards.control),
      writerOf: (shard) => {
        // Read for each message: the worker of a shard can be opened later, or again.
        const current = () => this.#slots.get(shard)?.opened?.worker.eventWriter;
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

  /** Whether shards have not been tried yet, or sources of a running worker are being opened. */
  get isStarting(): boolean {
    return this.#isOpening || this.running.some(({ isStarting }) => isStarting);
  }

  get draining(): boolean {
    return this.#isClosed;
  }

  /** Whether the Postgres of a running worker answers. A shard that is away stops its projects alone. */
  get isUsable(): boolean {
    return this.running.some(({ health }) => health.of('postgres')?.state !== 'down');
  }

  /**
   * Opens the workers, and waits for the first. The others are opened in the background, so that one
   * that hangs does not delay the start.
   *
   * @throws GatewayError `shard_unknown` if a named shard does not exist, and the first of those of
   *   `openWorker` if none can be opened
   */
  async open(): Promise<void> {
    const { shards, only } = this.options;
    const slots = (only?.map((name) => shards.of(name)) ?? shards.all).map(newSlot);
    for (const slot of slots) this.#slots.set(slot.shard.name, slot);
    const tries = slots.map((slot) => this.#open(slot));
    await Promise.any(tries).catch(({ errors }: AggregateError) => {
      throw errors[0] as Error;
    });
    for (const [n, slot] of slots.entries()) this.#follow(slot, tries[n]!);
  }

  /** Starts the workers, and follows the shards. */
  start(): void {
    this.#isStarted = true;
    for (const worker of this.running) worker.start();
    void this.#untilOpen();
    this.#unfollow = this.options.shards.onRead(() => this.#reconcile());
  }

  /**
   * Stops all workers: they finish what they have begun and give back the rest.
   *
   * @param others the end of what else creates events
   */
  async drain(others?: Promise<unknown>): Promise<void> {
    this.#isClosed = true;
    this.#unfollow?.();
    await this.#opened();
    await Promise.all(this.running.map((worker) => worker.drain(others)));
  }

  async close(): Promise<void> {
    await this.drain();
    const open = [...this.#slots.values()].flatMap(({ opened }) => opened ?? []);
    await Promise.all([...open.map((it) => it.close()), ...this.#closing]);
  }

  /** Bounded: an agent that is ready takes posts to projects of all shards that answer. */
  async #untilOpen(): Promise<void> {
    const bound = setTimeout(() => (this.#isOpening = false), OPEN_WITHIN_MS);
    await this.#opened();
    clearTimeout(bound);
    this.#isOpening = false;
  }

  async #opened(): Promise<void> {
    await Promise.all([...this.#slots.values()].flatMap(({ opening }) => opening ?? []));
  }

  /** Opens workers of new shards, and closes those of removed or changed ones. */
  #reconcile(): void {
    const { shards, only } = this.options;
    const wanted = shards.all.filter(({ name }) => only?.includes(name) ?? true);
    for (const [name, slot] of this.#slots) if (!wanted.includes(slot.shard)) this.#end(name, slot);
    for (const shard of wanted) {
      const slot = this.#slots.get(shard.name) ?? newSlot(shard);
      this.#slots.set(shard.name, slot);
      if (!slot.opened && !slot.opening && slot.retryAtMs <= performance.now())
        this.#follow(slot, this.#open(slot));
    }
  }

  async #open(slot: Slot): Promise<void> {
    slot.opened = await this.options.open(slot.shard);
    this.#update();
    if (this.#isStarted && !this.#isClosed) slot.opened.worker.start();
  }

  /** Reports the outcome of an attempt to open a worker. */
  #follow(slot: Slot, attempt: Promise<void>): void {
    const { health, log } = this.options;
    const { name, settings } = slot.shard;
    slot.opening = attempt
      .then(
        () => {
          if (slot.failures > 0) health.report(shardComponent(name), 'ok');
          slot.failures = 0;
          const { agentId } = slot.opened!.worker.lease;
          log.info({ shard: name, agent_id: agentId }, 'The agent works on the shard.');
        },
        (error: unknown) => {
          slot.retryAtMs = performance.now() + backoffMs(++slot.failures, RETRY);
          const reason = faultText(databaseFault(error, settings, name), 'Its projects wait.');
          health.report(shardComponent(name), 'down', reason);
          log[slot.failures === 1 ? 'warn' : 'debug'](
            { shard: name, error },
            'Could not start work on a shard; retrying. Its projects wait; other shards continue.',
          );
        },
      )
      .finally(() => (slot.opening = undefined));
  }

  #end(name: string, slot: Slot): void {
    this.#slots.delete(name);
    this.#update();
    this.options.health.forget(shardComponent(name));
    const ended = (async () => {
      await slot.opening;
      await slot.opened?.close();
    })();
    this.#closing.add(ended);
    void ended.finally(() => this.#closing.delete(ended));
  }

  /** Kept in a field, because it is read for each message. */
  #update(): void {
    this.running = [...this.#slots.values()].flatMap(({ opened }) => opened?.worker ?? []);
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
  return { shard, opened: undefined, opening: undefined, failures: 0, retryAtMs: 0 };
}
