import { rejectCodes } from '@gateway/ingest/message/reject-codes';
import { GatewayError } from '@gateway/core/errors';
import type { Database } from '@gateway/store/postgres';
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

export type EntryPages = AsyncIterable<QuarantineEntry[]> | Iterable<QuarantineEntry[]>;

/**
 * Returns the chosen messages in pages. Messages chosen by id form a single page, whatever their
 * status. Throws before the first page if an id or the project is unknown.
 */
export async function chosenPages(database: Database, chosen: Chosen): Promise<EntryPages> {
  if ('ids' in chosen) return [await findEntries(database, chosen.ids)];
  await requireProject(database, chosen.selection);
  return quarantinedPages(database, chosen.selection);
}

/** Returns the messages in the order of `ids`. Throws `quarantined_unknown` if an id is unknown. */
export async function findEntries(
  database: Pick<Database, 'pool'>,
  ids: readonly string[],
): Promise<QuarantineEntry[]> {
  const [{ bothPlanes }, { findQuarantine }] = await Promise.all([
    import('@gateway/store/postgres'),
    import('@gateway/store/quarantine'),
  ]);
  const entries = await findQuarantine(bothPlanes(database), ids);
  const unknown = ids.filter((id) => !entries.some((it) => it.id === id));
  if (unknown.length > 0) throw new GatewayError('quarantined_unknown', { unknown });
  return entries;
}

/** Throws `not_found` if the project is unknown, instead of returning an empty quarantine. */
export async function requireProject(
  { knex }: Pick<Database, 'knex'>,
  { projectId }: QuarantineSelection,
): Promise<void> {
  if (projectId === undefined) return;
  const { findProject } = await import('@gateway/store/config');
  if (!(await findProject(knex, projectId)))
    throw new GatewayError('not_found', { thing: 'project', id: projectId });
}

const PAGE_ENTRIES = 200;

/**
 * Returns the quarantined messages of a selection in pages, oldest first. Messages quarantined
 * meanwhile are excluded, so that the iteration ends.
 */
async function* quarantinedPages(
  database: Pick<Database, 'pool'>,
  selection: QuarantineSelection,
): AsyncGenerator<QuarantineEntry[]> {
  const [{ bothPlanes, databaseTime }, { listQuarantine }] = await Promise.all([
    import('@gateway/store/postgres'),
    import('@gateway/store/quarantine'),
  ]);
  const planes = bothPlanes(database);
  const wanted = {
    ...selection,
    status: 'quarantined',
    quarantinedUntil: await databaseTime(planes.data),
  } as const;
  for (let after: string | undefined; ;) {
    const page = await listQuarantine(planes, wanted, { order: 'asc', after, limit: PAGE_ENTRIES });
    if (page.length > 0) yield page;
    if (page.length < PAGE_ENTRIES) return;
    after = page.at(-1)!.id;
  }
}
