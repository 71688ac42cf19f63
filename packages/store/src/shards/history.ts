import { readPage, type PageRequest, type PageResult } from '../pagination/page.js';
import { stoppedAt } from '../pagination/search-log.js';
import type { Planes } from '../postgres/planes.js';

/** Returns the first row that is found on the shards of a project, with its planes. */
export async function findAmong<P extends Planes, Row>(
  history: readonly P[],
  find: (planes: P) => Promise<Row | undefined>,
): Promise<{ readonly row: Row; readonly planes: P } | undefined> {
  for (const planes of history) {
    const row = await find(planes);
    if (row !== undefined) return { row, planes };
  }
  return undefined;
}

/** Returns a page of the rows on all shards of a project, sorted by id. */
export async function listAmong<P extends Planes, Row extends { readonly id: string }>(
  history: readonly P[],
  page: PageRequest,
  list: (planes: P, page: PageRequest) => Promise<PageResult<Row>>,
): Promise<PageResult<Row>> {
  const [first, ...others] = history;
  if (others.length === 0) return list(first!, page);
  let stop: string | undefined;
  const result = await readPage<Row>(page, async ({ order, after, limit }) => {
    const isAhead = (id: string, than: string) => (order === 'asc' ? id > than : id < than);
    const inOrder = (id: string, other: string) => (id === other ? 0 : isAhead(id, other) ? 1 : -1);
    const sort = order === 'asc' ? 'ASC' : 'DESC';
    const pages = await Promise.all(
      history.map((planes) =>
        list(planes, { perPage: limit, direction: 'next', sort, cursor: after }),
      ),
    );
    // Beyond the place where one search stopped, the others may have found rows too early.
    const [stopped] = pages
      .flatMap((it) => (it.searchedTo ? (it.nextPageCursor ?? []) : []))
      .sort(inOrder);
    const rows = pages
      .flatMap(({ content }) => content)
      .filter(({ id }) => stopped === undefined || !isAhead(id, stopped))
      .sort((a, b) => inOrder(a.id, b.id))
      .slice(0, limit);
    if (rows.length < limit) stop = stopped;
    return rows;
  });
  return stop === undefined ? result : stoppedAt(result, page, stop);
}

/** A step of a batch, with the planes of its shard. */
export interface ShardStep<P, Step> {
  readonly planes: P;
  readonly step: Step;
  /** Returns the progress of the whole batch, from 0 to 1, from the progress on this shard. */
  readonly overall: (own: number) => number;
}

/**
 * Runs a batch on the shards of a project, one after another, the oldest first. A batch that goes
 * on after the row `after` begins with the shard that has this row.
 *
 * @param has whether a shard has the row with an id
 * @param run runs the batch on one shard. A null cursor of a step means only that the shard is done
 */
export async function* eachShard<P extends Planes, Step>(
  history: readonly P[],
  after: string | undefined,
  {
    has,
    run,
  }: {
    readonly has: (planes: P, id: string) => Promise<unknown>;
    readonly run: (planes: P, after: string | undefined) => AsyncIterable<Step>;
  },
): AsyncGenerator<ShardStep<P, Step>, void, void> {
  const shards = history.toReversed();
  let start = 0;
  if (after !== undefined && shards.length > 1) {
    const found = await findAmong(shards, async (planes) =>
      (await has(planes, after)) === undefined ? undefined : planes,
    );
    start = found ? shards.indexOf(found.planes) : 0;
  }
  for (let k = start; k < shards.length; k++) {
    const planes = shards[k]!;
    const overall = (own: number) => (k + own) / shards.length;
    for await (const step of run(planes, k === start ? after : undefined))
      yield { planes, step, overall };
  }
}
