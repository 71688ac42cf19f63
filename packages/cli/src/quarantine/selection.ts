import { rejectCodes } from '@gateway/ingest/message/reject-codes';
import { GatewayError } from '@gateway/core/errors';
import type { Shard, ShardPlanes, Shards } from '@gateway/store/shards';
import type {
  QuarantineEntry,
  QuarantineSelection,
  QuarantineStatus,
} from '@gateway/store/quarantine';
import {
  Args,
  argument,
  Flags,
  idOf,
  oneOf,
  parseDuration,
  valueFlag,
  wrongUse,
} from '../app/gateway-command.js';
import { searchShards, ShardFailures, shardsOf } from '../app/stores.js';

export const filterFlags = {
  'project-id': valueFlag('<id>', 'Only messages of this project.'),
  'source-id': valueFlag('<id>', 'Only messages of this source.'),
  code: valueFlag('<code>', 'Only messages rejected with this code, for example not_json.'),
  time: valueFlag(
    '<duration>',
    'Only messages from the last 2h, 30m, …, by their time at the broker.',
  ),
};

/** The flags of commands that change messages, chosen by id, or with `--all` and filters. */
export const chosenFlags = {
  all: Flags.boolean({
    summary: 'All quarantined messages that match the filters, instead of ids.',
  }),
  ...filterFlags,
  'dry-run': Flags.boolean({ summary: 'Show what would be done, without changing anything.' }),
};
export const chosenArgs = {
  id: Args.string({ multiple: true, ignoreStdin: true, description: 'Ids of messages.' }),
};

export const messageArg = { id: argument('Id of the message.') };

type Filters = Readonly<Record<keyof typeof filterFlags, string | undefined>>;

/**
 * Converts the filter flags to a selection. `--time` counts back from now. Throws `wrong_use` for
 * invalid values.
 */
export function selectionOf(
  flags: Filters & { readonly status?: string | undefined },
): QuarantineSelection {
  const statuses: readonly QuarantineStatus[] = ['quarantined', 'replayed', 'discarded'];
  return {
    projectId: idOf('--project-id', flags['project-id']),
    sourceId: idOf('--source-id', flags['source-id']),
    code: oneOf('--code', flags.code, Object.keys(rejectCodes)),
    status: oneOf('--status', flags.status, statuses),
    from:
      flags.time === undefined
        ? undefined
        : new Date(Date.now() - parseDuration('--time', flags.time)),
  };
}

export type Chosen =
  | { readonly ids: readonly string[] }
  | { readonly selection: QuarantineSelection; readonly filters: readonly string[] };

/**
 * Returns the given ids, or the selection of `--all`. Throws `wrong_use` for both or neither,
 * filters without `--all`, and invalid values.
 */
export function chosenBy(
  flags: Filters & { readonly all: boolean },
  given: string | readonly string[] | undefined,
): Chosen {
  const ids = [...new Set([given ?? []].flat().map((id) => idOf('the argument', id)))];
  const filters = Object.keys(filterFlags).flatMap((name) =>
    flags[name as keyof Filters] === undefined ? [] : [`--${name}`],
  );
  if (flags.all && ids.length > 0)
    throw wrongUse('ids and --all cannot be combined', 'use one of them');
  if (flags.all) return { selection: selectionOf(flags), filters };
  if (filters.length > 0)
    throw wrongUse(`${filters.join(', ')} only works with --all`, 'add --all, or omit the filter');
  if (ids.length > 0) return { ids };
  throw wrongUse(
    'no message was given',
    'pass ids, or --all with filters such as --code and --time; `gateway utils quarantine list` lists messages',
  );
}

/** Messages of one shard. */
export interface EntryPage {
  readonly planes: ShardPlanes;
  readonly entries: readonly QuarantineEntry[];
}

export type EntryPages = AsyncIterable<EntryPage> | Iterable<EntryPage>;

/**
 * Returns the chosen messages in pages. Messages chosen by id form a single page per shard,
 * whatever their status. Throws before the first page if an id or the project is unknown.
 */
export async function chosenPages(shards: Shards, chosen: Chosen): Promise<EntryPages> {
  if ('ids' in chosen) return findEntries(shards.all, chosen.ids);
  const { selection } = chosen;
  return quarantinedPages(await shardsOf(shards, selection.projectId), selection);
}

/**
 * Returns the messages of each shard, in the order of `ids`. Throws `quarantined_unknown` if an id
 * is unknown.
 */
export async function findEntries(
  shards: readonly Shard[],
  ids: readonly string[],
): Promise<EntryPage[]> {
  const { findQuarantine } = await import('@gateway/store/quarantine');
  const pages: EntryPage[] = [];
  const unknown = new Set(ids);
  const all = await searchShards(shards, async ({ planes }) => {
    const entries = await findQuarantine(planes, ids);
    if (entries.length > 0) pages.push({ planes, entries });
    for (const { id } of entries) unknown.delete(id);
    return unknown.size === 0 ? pages : undefined;
  });
  if (!all) throw new GatewayError('quarantined_unknown', { unknown: [...unknown] });
  return all;
}

/** Returns the message with this id, with its planes. Throws `quarantined_unknown`. */
export async function findEntry(
  shards: readonly Shard[],
  id: string,
): Promise<{ readonly planes: ShardPlanes; readonly entry: QuarantineEntry }> {
  const [page] = await findEntries(shards, [id]);
  return { planes: page!.planes, entry: page!.entries[0]! };
}

const PAGE_ENTRIES = 200;

/**
 * Returns the quarantined messages of a selection in pages, oldest first on each shard. Messages
 * quarantined meanwhile are excluded, so that the iteration ends.
 *
 * @throws GatewayError `shards_failed` after the last page if some shards cannot be used
 */
async function* quarantinedPages(
  shards: readonly Shard[],
  selection: QuarantineSelection,
): AsyncGenerator<EntryPage> {
  const [{ databaseTime }, { listQuarantine }] = await Promise.all([
    import('@gateway/store/postgres'),
    import('@gateway/store/quarantine'),
  ]);
  const failures = new ShardFailures();
  for (const shard of shards) {
    const { planes } = shard;
    try {
      const wanted = {
        ...selection,
        status: 'quarantined',
        quarantinedUntil: await databaseTime(planes.data),
      } as const;
      for (let after: string | undefined, isMore = true; isMore;) {
        const part = { order: 'asc', after, limit: PAGE_ENTRIES } as const;
        const entries = await listQuarantine(planes, wanted, part);
        if (entries.length > 0) yield { planes, entries };
        isMore = entries.length === PAGE_ENTRIES;
        after = entries.at(-1)?.id;
      }
    } catch (error) {
      await failures.note(shard, error);
    }
  }
  failures.end();
}
