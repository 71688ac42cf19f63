import { withTimeout } from '@gateway/core/process';
import type { PartitionMove, SeekTarget } from '@gateway/plugin';
import {
  keptSinceMs,
  movePositions,
  pauseSourceByPerson,
  readPositions,
  resumeSource,
  type SourceRow,
} from '@gateway/store/config';
import {
  boolean,
  int,
  invalid,
  namedObject,
  nullable,
  object,
  optional,
  projectRoute,
  string,
  Type,
  type ProjectCall,
  type Route,
  type Static,
} from '../../api/vocabulary.js';
import { nameOf } from './caller-name.js';
import { checkFailed, storedConnection } from './pub-sub.js';
import { requireSource } from './source-view.js';

/** Readers leave within seconds; the plugin waits for them for 20. */
const SEEK_MS = 28_000;
const SILENT = `the broker did not take the new positions within ${SEEK_MS / 1000} seconds`;
const WHY_PAUSED = 'The source is being moved; resume it if this lasts longer than a minute.';
const PARTITIONS_MAX = 1_000;

const Rewind = namedObject(
  'RewindSource',
  optional({
    to: Type.String({
      pattern:
        '^(earliest|latest|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2}))$',
      'x-sentence': 'must be earliest, latest or a time like 2026-11-21T09:00:00Z',
      maxLength: 40,
      description:
        '`earliest`, `latest`, or a time: the first message of each partition at or after it.',
    }),
    positions: Type.Record(Type.String({ maxLength: 300 }), Type.String({ maxLength: 100 }), {
      maxProperties: PARTITIONS_MAX,
      description:
        'Instead of `to`: the position of the next message, by partition as the lag names them. Others stay.',
    }),
    dry_run: boolean('Shows what the move would do, and changes nothing.'),
    redeliver: boolean(
      'Also delivers messages a second time whose events have been deleted by retention. By default, they are passed over.',
    ),
  }),
);
const Moved = namedObject('SourceMove', {
  dry_run: boolean(),
  again: int(
    'Messages that are read again. Those whose events are kept are duplicates, and not delivered again.',
  ),
  expired: int(
    'How many of them have no event any more, because they are older than the retention: passed over, or delivered again with `redeliver`. An estimate where times are out of order.',
  ),
  skipped: int('Messages that are not read.'),
  partitions: Type.Array(
    object({
      partition: string(),
      from: nullable(string(), 'The position before; null if there was none.'),
      to: string(),
      again: int(),
      expired: int(),
      skipped: int(),
    }),
    { maxItems: PARTITIONS_MAX, description: `Up to ${PARTITIONS_MAX} partitions.` },
  ),
});

export const rewindRoutes: readonly Route[] = [
  projectRoute(
    'POST /sources/:id/rewind',
    'Moves where a source is read from, back or ahead. Agents stop reading it meanwhile, for a few seconds. Messages whose events are kept are not delivered again.',
    { body: Rewind, data: Moved },
    rewind,
  ),
];

async function rewind(call: ProjectCall<Static<typeof Rewind>>) {
  const { body, database, project, id, config, limits, plugins } = call;
  const { dry_run: isDryRun = false, redeliver: isRedelivering = false } = body;
  const to = targetOf(body);
  const source = await requireSource(call);
  const active = plugins.sources.get(source.pub_sub.type);
  const plugin = source.http ? undefined : await active?.load();
  if (!active || !plugin?.seek)
    throw invalid('id', `is a source of type ${source.pub_sub.type}, which cannot be moved`);
  await limits.tests(project);
  const { plain } = storedConnection(
    source.pub_sub[source.pub_sub.type] as Record<string, unknown>,
    active.connectionSchema,
    call,
  )!;
  const of = { projectId: project.id, sourceId: id };
  const { positions, retentionDays } = await readPositions(database.pool, of);
  const { enabled, days } = config.retention;
  const ended = new AbortController();
  const seek = () =>
    plugin.seek!(plain, {
      settings: active.settings,
      signal: ended.signal,
      sourceId: id,
      clientId: `gateway-rewind-${id.slice(-6)}`,
      to,
      isDryRun,
      isRedelivering,
      before: {
        positions,
        keptSinceMs: () => (enabled ? keptSinceMs(retentionDays ?? days) : -Infinity),
      },
    });
  const moved = async () => {
    const moves = await withTimeout(seek(), SEEK_MS, SILENT)
      .catch((cause: unknown) => {
        throw checkFailed(source.pub_sub.type, cause, { ...call, code: 'source_not_moved' });
      })
      .finally(() => ended.abort());
    if (!isDryRun)
      await movePositions(
        database.pool,
        of,
        moves.map(({ record }) => record),
      );
    return moves;
  };
  const moves = isDryRun ? await moved() : await whileStopped(call, source, moved);
  return {
    message: isDryRun ? 'nothing was changed' : 'source moved',
    data: { dry_run: isDryRun, ...summary(moves) },
  };
}

function targetOf({ to, positions }: Static<typeof Rewind>): SeekTarget {
  if ((to === undefined) === (positions === undefined))
    throw invalid('to', 'must be given, or positions, and not both');
  if (positions) return { positions };
  if (to === 'earliest' || to === 'latest') return to;
  const timeMs = Date.parse(to!);
  if (!Number.isFinite(timeMs)) throw invalid('to', 'is not a time that exists');
  return { timeMs };
}

/** A source that somebody has paused stays so. If this process is killed, the source stays paused. */
async function whileStopped<T>(
  { database, project, id, caller }: ProjectCall,
  source: SourceRow,
  work: () => Promise<T>,
): Promise<T> {
  if (source.paused_at || source.is_disabled) return work();
  await pauseSourceByPerson(database.knex, project.id, id, nameOf(caller), WHY_PAUSED);
  try {
    return await work();
  } finally {
    await resumeSource(database.knex, project.id, id);
  }
}

function summary(moves: readonly PartitionMove[]) {
  const sum = (of: (move: PartitionMove) => number) =>
    moves.reduce((all, move) => all + of(move), 0);
  return {
    again: sum(({ again }) => again),
    expired: sum(({ expired }) => expired),
    skipped: sum(({ skipped }) => skipped),
    partitions: moves
      .slice(0, PARTITIONS_MAX)
      .map(({ partition, from, to, again, expired, skipped }) => ({
        partition,
        from,
        to,
        again,
        expired,
        skipped,
      })),
  };
}
