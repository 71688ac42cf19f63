import type { Config } from '@gateway/core/config';
import { readArrivals, readKnown, type EventRef, type MaybeKnown } from '@gateway/store/events';
import type { Shards } from '@gateway/store/shards';
import type { ReadyMessage } from '../message/ready-message.js';
import type { Project } from '../routing/project.js';

export const NOTHING_KNOWN: ReadonlySet<string> = new Set();

/**
 * A message dated later than this after a move cannot be in a former shard: broker times are at most
 * a day ahead (`isPossibleTime`), and clocks differ by less than an hour.
 */
const AHEAD_MS = 25 * 3_600_000;

interface FormerShardsOptions {
  readonly shards: Pick<Shards, 'of'>;
  readonly configCache: { readonly projects: { get(id: string): Project | undefined } };
  readonly config: Pick<Config, 'ingest'>;
}

/**
 * Finds messages that a former shard of their project has accepted, so that a message delivered
 * again after a move is a duplicate. The former shard accepts nothing any more, so its answer stays
 * true.
 */
export class FormerShards {
  constructor(private readonly options: FormerShardsOptions) {}

  /**
   * Returns the ids of known events and quarantined messages, or undefined if no former shard can
   * have any. Asks a former shard only for messages dated before the move, and for keys within their
   * window after it. Rejects if one is away: the messages wait, because they could be accepted
   * twice.
   */
  known(messages: readonly ReadyMessage[]): Promise<ReadonlySet<string>> | undefined {
    const ofShard = new Map<string, MaybeKnown[]>();
    for (const { projectId, events, quarantined } of messages) {
      const project = this.#project(projectId);
      if (!project || project.formerShards.length === 0) continue;
      const asked = [
        ...events,
        ...(quarantined ? [{ ...quarantined, idempotencyKey: null }] : []),
      ].filter((one) => this.#maybeKnown(one, project.movedAtMs));
      for (const name of asked.length > 0 ? project.formerShards : [])
        ofShard.set(name, [...(ofShard.get(name) ?? []), ...asked]);
    }
    if (ofShard.size === 0) return undefined;
    const reading = [...ofShard].map(([name, asked]) => readKnown(this.#pool(name), asked));
    return Promise.all(reading).then((known) => new Set(known.flatMap((ids) => [...ids])));
  }

  /**
   * Returns when former shards dated messages by their arrival, by message id, in epoch
   * milliseconds.
   */
  async arrivals(refs: readonly EventRef[]): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (const projectId of new Set(refs.map((ref) => ref.projectId))) {
      const own = refs.filter((ref) => ref.projectId === projectId);
      for (const pool of this.pools(projectId))
        for (const [id, ms] of await readArrivals(pool, own)) found.set(id, ms);
    }
    return found;
  }

  /** Returns the pools of a project's former shards. */
  pools(projectId: string) {
    const { formerShards = [] } = this.#project(projectId) ?? {};
    return formerShards.map((name) => this.#pool(name));
  }

  #maybeKnown({ occurredAtMs, idempotencyKey }: MaybeKnown, movedAtMs: number): boolean {
    if (occurredAtMs <= movedAtMs + AHEAD_MS) return true;
    const { idempotency_window_seconds: seconds } = this.options.config.ingest;
    return idempotencyKey !== null && Date.now() <= movedAtMs + seconds * 1000 + AHEAD_MS;
  }

  #project(id: string) {
    return this.options.configCache.projects.get(id);
  }

  #pool(name: string) {
    return this.options.shards.of(name).database.pool;
  }
}
