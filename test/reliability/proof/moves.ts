import { setTimeout as sleep } from 'node:timers/promises';
import { gateway } from '../../support/gateway.js';
import { succeed } from '../../support/production.js';
import { until } from '../../support/until.js';
import { insist } from './side-endpoints.js';
import type { ShardStore, Stores } from './stores.js';

/** Moves projects between shards while their messages flow. */
export interface Moves {
  /** The names of the projects: `project-2`. */
  readonly names: readonly string[];
  /** Moves the project to the next shard; repeats the command until it succeeds. */
  move(name: string): Promise<void>;
  /** Begins the same, and kills the command when the former shard refuses events. */
  kill(name: string): Promise<void>;
  /** Waits until all rows of the project are on its shard. Agents end the moves. */
  settle(name: string): Promise<void>;
  /** Names the projects whose move has not ended, or that have rows on another shard. */
  unsettled(): Promise<string[]>;
  /** The number of kills that left a move unfinished. */
  readonly unfinished: number;
}

const TABLES = [
  ...['events', 'event_deliveries', 'delivery_attempts', 'quarantined_messages'],
  'idempotency_keys',
];

/** @param ids ids of projects by name */
export function startMoves(
  run: { readonly folder: string; readonly bin?: string },
  ids: ReadonlyMap<string, string>,
  { rows, shards }: Pick<Stores, 'rows' | 'shards'>,
): Moves {
  let unfinished = 0;
  const shardOf = async (id: string): Promise<ShardStore> => {
    const [row] = await rows<{ shard: string }>('select shard from projects where id = $1', [id]);
    return shards.find(({ name }) => name === row!.shard)!;
  };
  const command = (id: string, from: ShardStore) => {
    const to = shards[(shards.indexOf(from) + 1) % shards.length]!;
    return ['shards', 'move', id, to.name];
  };
  const refuses = async ({ rows: shard }: ShardStore, id: string) =>
    (
      await shard(
        `select from project_fences where project_id = $1 and through = 'ffffffff-ffff-ffff-ffff-ffffffffffff'`,
        [id],
      )
    ).length > 0;
  const check = async (name: string): Promise<void> => {
    const id = ids.get(name)!;
    const current = await shardOf(id);
    const [move] = await rows<{ phase: string; error: string | null }>(
      `select phase, error from project_moves where project_id = $1 and phase <> 'done'`,
      [id],
    );
    if (move) throw new Error(`${name} is being moved: ${move.phase}, ${move.error}`);
    if (await refuses(current, id))
      throw new Error(`${name} is on ${current.name}, which refuses its events`);
    for (const other of shards.filter((it) => it !== current))
      for (const table of TABLES)
        if ((await other.rows(`select from ${table} where project_id = $1 limit 1`, [id])).length)
          throw new Error(`${name} is on ${current.name}, and has ${table} on ${other.name}`);
  };

  return {
    names: [...ids.keys()],
    async move(name) {
      const id = ids.get(name)!;
      await insist(() => check(name));
      const args = command(id, await insist(() => shardOf(id)));
      await insist(() => succeed(args, run));
    },
    async kill(name) {
      const id = ids.get(name)!;
      await insist(() => check(name));
      const from = await insist(() => shardOf(id));
      const moving = gateway(command(id, from), run);
      let isOver = false;
      void moving.ended.then(() => (isOver = true));
      // The lock of the move holds this statement until the shard refuses events.
      await until(`${from.name} to refuse events`, async () => isOver || refuses(from, id), {
        withinMs: 600_000,
        everyMs: 1,
      });
      await moving.kill();
      if ((await insist(() => shardOf(id))) === from && (await insist(() => refuses(from, id))))
        unfinished++;
    },
    settle: (name) => insist(() => check(name)),
    unsettled: async () => {
      const wrong = await Promise.all(
        [...ids.keys()].map((name) =>
          withRetries(() => check(name)).catch(({ message }: Error) => message),
        ),
      );
      return wrong.filter((sentence) => sentence !== undefined);
    },
    get unfinished() {
      return unfinished;
    },
  };
}

/** The counts of a project are moved after all else. */
async function withRetries(check: () => Promise<void>): Promise<void> {
  for (let left = 60; ; left--) {
    try {
      return await check();
    } catch (error) {
      if (left === 0) throw error;
      await sleep(1_000);
    }
  }
}
