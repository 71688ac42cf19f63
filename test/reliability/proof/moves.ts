import type { Database } from '../../support/database.js';
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
  /** Waits until exactly one shard accepts events of the project. Agents end the moves. */
  settle(name: string): Promise<void>;
  /** Names the projects whose events another number of shards than one accepts. */
  unsettled(): Promise<string[]>;
  /** The number of kills that left a move unfinished. */
  readonly unfinished: number;
}

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
  const refuses = async (shard: Database['rows'], id: string) =>
    (await shard('select from moved_projects where project_id = $1', [id])).length > 0;
  const check = async (name: string): Promise<void> => {
    const id = ids.get(name)!;
    const current = await shardOf(id);
    if (await refuses(current.rows, id))
      throw new Error(`${name} is on ${current.name}, which refuses its events`);
    const [row] = await rows<{ former: string[] }>(
      'select former_shards as former from projects where id = $1',
      [id],
    );
    for (const former of shards.filter((shard) => row!.former.includes(shard.name)))
      if (!(await refuses(former.rows, id)))
        throw new Error(`${name} is on ${current.name}, and ${former.name} accepts its events too`);
  };

  return {
    names: [...ids.keys()],
    async move(name) {
      const id = ids.get(name)!;
      const args = command(id, await insist(() => shardOf(id)));
      await insist(() => succeed(args, run));
    },
    async kill(name) {
      const id = ids.get(name)!;
      const from = await insist(() => shardOf(id));
      const moving = gateway(command(id, from), run);
      let isOver = false;
      void moving.ended.then(() => (isOver = true));
      // The lock of the move holds this statement until the shard refuses events.
      await until(`${from.name} to refuse events`, async () => isOver || refuses(from.rows, id), {
        withinMs: 600_000,
        everyMs: 1,
      });
      await moving.kill();
      if (
        (await insist(() => shardOf(id))) === from &&
        (await insist(() => refuses(from.rows, id)))
      )
        unfinished++;
    },
    settle: (name) => insist(() => check(name)),
    unsettled: async () => {
      const wrong = await Promise.all(
        [...ids.keys()].map((name) => check(name).catch(({ message }: Error) => message)),
      );
      return wrong.filter((sentence) => sentence !== undefined);
    },
    get unfinished() {
      return unfinished;
    },
  };
}
