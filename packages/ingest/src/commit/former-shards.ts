import type { Config } from '@gateway/core/config';
import { type MaybeKnown, readArrivals, readKnown } from '@gateway/store/events';
import type { Shards } from '@gateway/store/shards';
import type { ReadyMessage } from '../message/ready-message.js';
import type { Project } from '../routing/project.js';

const NOTHING_KNOWN: ReadonlySet<string> = new Set();

/** The clocks of processes and databases differ by less. */
const CLOCKS_MS = 3_600_000;

interface FormerShardsOptions {
  readonly shards: Pick<Shards, 'of'>;
  readonly configCache: { readonly projects: { get(id: string): Project | undefined } };
  readonly config: Pick<Config, 'ingest'>;
}

/** The answer of a message's former shards, for the place and the form that it was asked about. */
interface Answer {
  readonly known: ReadonlySet<string>;
  readonly movedAtMs: number;
  readonly isQuarantined: boolean;
}

/**
 * Finds messages that a former shard of their project has accepted, so that a message delivered
 * again after a move is a duplicate. The former shard accepts nothing any more, so its answer stays
 * true.
 */
export class FormerShards {
  readonly #answers = new WeakMap<ReadyMessage, Answer>();

  constructor(private readonly options: FormerShardsOptions) {}

  /**
   * Returns the names of the former shards that may have the message: those of its project if it is
   * undated, dated before the move (`moved_at`) unless it is new, or has a key within its window after
   * the move.
   */
  mayHave(message: ReadyMessage): readonly string[] {
    const project = this.#project(message.projectId);
    if (!project || project.formerShards.length === 0) return [];
    const isAsked =
      message.isUndated ||
      refsOf(message).some(
        (ref) =>
          (!message.isNew && ref.occurredAtMs <= project.movedAtMs) ||
          this.#mayHaveKey(ref, project.movedAtMs),
      );
    return isAsked ? project.formerShards : [];
  }

  /**
   * Asks the shards, dates undated messages as they did, and keeps the answer for `knownOf`. Rejects
   * if one is away: the messages wait, because they could be accepted twice.
   */
  async ask(names: readonly string[], messages: readonly ReadyMessage[]): Promise<void> {
    const asked = messages.map((message) => ({
      message,
      movedAtMs: this.#project(message.projectId)?.movedAtMs ?? 0,
      isQuarantined: message.quarantined !== null,
    }));
    const pools = names.map((name) => this.#pool(name));
    const undated = messages.filter(({ isUndated }) => isUndated);
    for (const pool of undated.length > 0 ? pools : []) {
      const arrivals = await readArrivals(pool, undated.flatMap(refsOf));
      for (const message of undated) {
        const arrivedAtMs = arrivals.get(refsOf(message)[0]!.id);
        if (message.isUndated && arrivedAtMs !== undefined) message.date?.(arrivedAtMs);
      }
    }
    const refs = messages.flatMap(refsOf);
    const answers = await Promise.all(pools.map((pool) => readKnown(pool, refs)));
    const known = new Set(answers.flatMap((ids) => [...ids]));
    for (const { message, ...askedAs } of asked) this.#answers.set(message, { known, ...askedAs });
  }

  /**
   * Returns the ids that former shards know, of this message and others, or undefined if they must
   * be asked first: also after another move, and after a rejection, which gives the message another
   * id.
   */
  knownOf(message: ReadyMessage): ReadonlySet<string> | undefined {
    if (this.mayHave(message).length === 0) return NOTHING_KNOWN;
    const answer = this.#answers.get(message);
    const isCurrent =
      answer?.movedAtMs === this.#project(message.projectId)?.movedAtMs &&
      answer?.isQuarantined === (message.quarantined !== null);
    return isCurrent ? answer?.known : undefined;
  }

  /** Returns the pools of a project's former shards. */
  pools(projectId: string) {
    const { formerShards = [] } = this.#project(projectId) ?? {};
    return formerShards.map((name) => this.#pool(name));
  }

  #mayHaveKey({ idempotencyKey }: MaybeKnown, movedAtMs: number): boolean {
    const { idempotency_window_seconds: seconds } = this.options.config.ingest;
    return idempotencyKey !== null && Date.now() <= movedAtMs + seconds * 1000 + CLOCKS_MS;
  }

  #project(id: string) {
    return this.options.configCache.projects.get(id);
  }

  #pool(name: string) {
    return this.options.shards.of(name).database.pool;
  }
}

/** Returns what identifies a message in a shard: its events, or itself if it is quarantined. */
export function refsOf({ events, quarantined }: ReadyMessage): readonly MaybeKnown[] {
  return quarantined ? [{ ...quarantined, idempotencyKey: null }] : events;
}
