import type { GatewayClient, Project, WholeQuarantinedMessage } from '@gateway/client';
import { GatewayError } from '@gateway/core/errors';
import { rejectCodes } from '@gateway/ingest/validate/reject-codes';
import {
  Args,
  durationFlag,
  findIn,
  idFlag,
  idOf,
  inEach,
  projectFlag,
  projectsOf,
  switchFlag,
  wordFlag,
  wrongUse,
} from '../app/gateway-command.js';

const CODES = Object.keys(rejectCodes);

export const filterFlags = {
  ...projectFlag,
  'source-id': idFlag('Only messages of this source.'),
  code: wordFlag('<code>', 'Only messages rejected with this code, for example not_json.', CODES),
  time: durationFlag('Only messages from the last 2h, 30m, …, by their time at the broker.'),
};

/** For commands that change messages, chosen by id, or with `--all` and filters. */
export const chosenFlags = {
  all: switchFlag('All quarantined messages that match the filters, instead of ids.'),
  ...filterFlags,
  'dry-run': switchFlag('Show what would be done, without changing anything.'),
};
export const chosenArgs = {
  id: Args.string({ multiple: true, ignoreStdin: true, description: 'Ids of messages.' }),
};

interface Filters {
  readonly 'project-id': string | undefined;
  readonly 'source-id': string | undefined;
  readonly code: string | undefined;
  readonly time: number | undefined;
}

/** As the API takes them. `--time` counts back from now. */
export function selectionOf({ 'source-id': sourceId, code, time }: Filters) {
  const startDate = time === undefined ? undefined : new Date(Date.now() - time).toISOString();
  return { sourceId, code, startDate };
}

/** Messages, or undefined for `--all`. */
type Chosen = readonly string[] | undefined;

type ChosenFlags = Filters & { readonly all: boolean; readonly 'dry-run': boolean };

/** The given filters, without dashes. */
export function filtersOf(flags: Filters): (keyof Filters)[] {
  return (Object.keys(filterFlags) as (keyof Filters)[]).filter((it) => flags[it] !== undefined);
}

/** Throws `wrong_use` for ids and `--all`, neither, and filters without `--all`. */
export function chosenBy(
  flags: ChosenFlags,
  given: string | readonly string[] | undefined,
): Chosen {
  const ids = [...new Set([given ?? []].flat().map((id) => idOf('the argument', id)))];
  if (flags.all && ids.length > 0)
    throw wrongUse('ids and --all cannot be combined', 'use one of them');
  if (flags.all) return undefined;
  const ofAll = filtersOf(flags).filter((it) => it !== 'project-id');
  if (ofAll.length > 0)
    throw wrongUse(
      `${ofAll.map((it) => `--${it}`).join(', ')} only works with --all`,
      'add --all, or omit the filter',
    );
  if (ids.length > 0) return ids;
  throw wrongUse(
    'no message was given',
    'pass ids, or --all with filters such as --code and --time; `gateway utils quarantine list` lists messages',
  );
}

/** One message after another, or one batch after another in each project. */
export async function workOn(
  api: GatewayClient,
  chosen: Chosen,
  flags: ChosenFlags,
  {
    one,
    batch,
  }: {
    one: (api: GatewayClient, message: WholeQuarantinedMessage) => Promise<void>;
    /** Returns where the next batch begins. */
    batch: (
      { quarantine }: GatewayClient,
      query: ReturnType<typeof batchOf> & { after: string | undefined },
    ) => Promise<string | null>;
  },
): Promise<void> {
  if (chosen) {
    for (const { api: of, found } of await findMessages(api, chosen, flags)) await one(of, found);
    return;
  }
  const query = batchOf(flags);
  await inEach(api, await projectsOf(api, flags), async (of) => {
    for (let after: string | null | undefined; after !== null;)
      after = await batch(of, { ...query, after });
  });
}

/** The range is as wide as possible, because the clock of a broker may be ahead. */
function batchOf(flags: ChosenFlags) {
  const { sourceId, code, startDate = '1970-01-01' } = selectionOf(flags);
  return { sourceId, code, startDate, endDate: '9999-12-31', dry_run: flags['dry-run'] };
}

/**
 * In the order of the ids.
 *
 * @throws GatewayError `quarantined_unknown`, before anything is changed
 */
export async function findMessages(
  api: GatewayClient,
  ids: readonly string[],
  flags: Parameters<typeof projectsOf>[1],
) {
  const found: { api: GatewayClient; project: Project; found: WholeQuarantinedMessage }[] = [];
  const unknown: string[] = [];
  for (const id of ids)
    await findIn(api, flags, (it) => it.quarantine.get(id)).then(
      (it) => found.push(it),
      (error: { readonly code?: string }) => {
        if (error.code !== 'not_found') throw error;
        unknown.push(id);
      },
    );
  if (unknown.length > 0) throw new GatewayError('quarantined_unknown', { unknown });
  return found;
}
