import type { GatewayClient, Project, WholeQuarantinedMessage } from '@gateway/client';
import { GatewayError } from '@gateway/core/errors';
import { rejectCodes } from '@gateway/ingest/validate/reject-codes';
import {
  Args,
  argument,
  findIn,
  Flags,
  idOf,
  oneOf,
  parseDuration,
  projectFlag,
  projectIdOf,
  valueFlag,
  wrongUse,
} from '../app/gateway-command.js';

export const filterFlags = {
  ...projectFlag,
  'source-id': valueFlag('<id>', 'Only messages of this source.'),
  code: valueFlag('<code>', 'Only messages rejected with this code, for example not_json.'),
  time: valueFlag(
    '<duration>',
    'Only messages from the last 2h, 30m, …, by their time at the broker.',
  ),
};

/** For commands that change messages, chosen by id, or with `--all` and filters. */
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

const STATUSES = ['quarantined', 'replayed', 'discarded'] as const;

/** As the API takes them. */
export interface QuarantineFilters {
  readonly sourceId: string | undefined;
  readonly code: string | undefined;
  readonly status: (typeof STATUSES)[number] | undefined;
  readonly startDate: string | undefined;
}

type Filters = Readonly<Record<keyof typeof filterFlags, string | undefined>>;

/** `--time` counts back from now. Throws `wrong_use`. */
export function selectionOf(
  flags: Filters & { readonly status?: string | undefined },
): QuarantineFilters {
  return {
    sourceId: idOf('--source-id', flags['source-id']),
    code: oneOf('--code', flags.code, Object.keys(rejectCodes)),
    status: oneOf('--status', flags.status, STATUSES),
    startDate:
      flags.time === undefined
        ? undefined
        : new Date(Date.now() - parseDuration('--time', flags.time)).toISOString(),
  };
}

interface OfProject {
  readonly projectId: string | undefined;
}
export type Chosen =
  | (OfProject & { readonly ids: readonly string[] })
  | (OfProject & { readonly selection: QuarantineFilters; readonly filters: readonly string[] });

/**
 * The given ids, or the selection of `--all`. Throws `wrong_use` for both or neither, filters
 * without `--all`, and invalid values.
 */
export function chosenBy(
  flags: Filters & { readonly all: boolean },
  given: string | readonly string[] | undefined,
): Chosen {
  const ids = [...new Set([given ?? []].flat().map((id) => idOf('the argument', id)))];
  const projectId = projectIdOf(flags);
  const filters = Object.keys(filterFlags).flatMap((name) =>
    flags[name as keyof Filters] === undefined ? [] : [`--${name}`],
  );
  const ofAll = filters.filter((it) => it !== '--project-id');
  if (flags.all && ids.length > 0)
    throw wrongUse('ids and --all cannot be combined', 'use one of them');
  if (flags.all) return { projectId, selection: selectionOf(flags), filters };
  if (ofAll.length > 0)
    throw wrongUse(`${ofAll.join(', ')} only works with --all`, 'add --all, or omit the filter');
  if (ids.length > 0) return { projectId, ids };
  throw wrongUse(
    'no message was given',
    'pass ids, or --all with filters such as --code and --time; `gateway utils quarantine list` lists messages',
  );
}

/**
 * As the batches of the API take them. The range is as wide as possible, because the clock of a
 * broker may be ahead.
 */
export function batchOf({ sourceId, code, startDate = '1970-01-01' }: QuarantineFilters) {
  return { sourceId, code, startDate, endDate: '9999-12-31' };
}

/**
 * In the order of the ids.
 *
 * @throws GatewayError `quarantined_unknown`, before anything is changed
 */
export async function findMessages(
  api: GatewayClient,
  { ids, projectId }: OfProject & { readonly ids: readonly string[] },
) {
  const found: { api: GatewayClient; project: Project; found: WholeQuarantinedMessage }[] = [];
  const unknown: string[] = [];
  for (const id of ids)
    await findIn(api, projectId, (it) => it.quarantine.get(id)).then(
      (it) => found.push(it),
      (error: { readonly code?: string }) => {
        if (error.code !== 'not_found') throw error;
        unknown.push(id);
      },
    );
  if (unknown.length > 0) throw new GatewayError('quarantined_unknown', { unknown });
  return found;
}
