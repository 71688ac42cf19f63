import * as Args from '@oclif/core/args';
import * as Flags from '@oclif/core/flags';
import type { FlagValues } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import type { Database } from '@gateway/store/postgres';
import type { QuarantineEntry, QuarantineSelection } from '@gateway/store/quarantine';
import { givenSelection, idsOf, selectionFlags, selectionOf } from './selection.js';
import { findEntries, quarantinedPages, requireProject } from './entries.js';

/** The flags and the argument of commands that do something with messages: ids, or `--all` with filters. */
export const chosenFlags = {
  all: Flags.boolean({ summary: 'Every message that is quarantined and fits the filters, in place of ids.' }),
  ...selectionFlags,
  'dry-run': Flags.boolean({ summary: 'Change nothing; tell what would be done.' }),
};
export const chosenArgs = { id: Args.string({ multiple: true, ignoreStdin: true, description: 'Ids of messages.' }) };

/** What was chosen: messages by their ids, or a selection of those that are quarantined. */
export type Chosen = { readonly ids: readonly string[] } | { readonly selection: QuarantineSelection; readonly filters: readonly string[] };

/** @throws GatewayError `wrong_use` unless there are ids, or `--all` */
export function chosenBy(flags: FlagValues, given: string | readonly string[] | undefined): Chosen {
  const ids = idsOf([given ?? []].flat());
  const filters = givenSelection(flags);
  if (flags['all'] === true) {
    if (ids.length === 0) return { selection: selectionOf(flags), filters };
    throw new GatewayError('wrong_use', { sentence: 'ids and --all exclude each other', fix: 'give one of the two' });
  }
  if (filters.length > 0)
    throw new GatewayError('wrong_use', { sentence: `${filters.join(', ')} filters what --all takes`, fix: 'add --all, or leave it away' });
  if (ids.length > 0) return { ids };
  throw new GatewayError('wrong_use', {
    sentence: 'no message is named',
    fix: 'give ids, or --all with filters such as --code and --time; `gateway utils quarantine list` shows what there is',
  });
}

/**
 * The chosen messages. Those that were named come in one page, whatever their status.
 *
 * @throws GatewayError `quarantined_unknown` or `not_found` before anything is done
 */
export async function chosenPages(database: Database, chosen: Chosen): Promise<AsyncIterable<QuarantineEntry[]>> {
  if ('ids' in chosen) {
    const entries = await findEntries(database, chosen.ids);
    return (async function* () {
      yield await Promise.resolve(entries);
    })();
  }
  await requireProject(database, chosen.selection);
  return quarantinedPages(database, chosen.selection);
}
