import { GatewayError } from '@gateway/core/errors';
import type { Database } from '@gateway/store/postgres';
import type { QuarantineEntry, QuarantineSelection } from '@gateway/store/quarantine';

/**
 * The messages of these ids, in their order.
 *
 * @throws GatewayError `quarantined_unknown` when one of them is not there
 */
export async function findEntries({ pool }: Pick<Database, 'pool'>, ids: readonly string[]): Promise<QuarantineEntry[]> {
  const { findQuarantine } = await import('@gateway/store/quarantine');
  const entries = await findQuarantine(pool, ids);
  const found = new Set(entries.map(({ id }) => id));
  const unknown = ids.filter((id) => !found.has(id));
  if (unknown.length > 0) throw new GatewayError('quarantined_unknown', { unknown });
  return entries;
}

/** Throws `not_found` when the selection names a project that is not there: nothing found would look like nothing quarantined. */
export async function requireProject({ knex }: Pick<Database, 'knex'>, { projectId }: QuarantineSelection): Promise<void> {
  if (projectId === undefined) return;
  const { findProject } = await import('@gateway/store/config');
  if (!(await findProject(knex, projectId))) throw new GatewayError('not_found', { thing: 'project', id: projectId });
}

/** Entries of one page of `quarantinedPages`. */
const PAGE = 200;

/**
 * The messages of a selection that are quarantined now, oldest first, a page at a time, so that any number of them is gone through in bounded memory.
 * Those that are quarantined while it runs are left out.
 */
export async function* quarantinedPages(
  { pool }: Pick<Database, 'pool'>,
  selection: QuarantineSelection,
): AsyncGenerator<QuarantineEntry[]> {
  const [{ databaseTime }, { listQuarantine }] = await Promise.all([
    import('@gateway/store/postgres'),
    import('@gateway/store/quarantine'),
  ]);
  const wanted = { ...selection, status: 'quarantined', quarantinedUntil: await databaseTime(pool) } as const;
  for (let after: string | undefined; ;) {
    const page = await listQuarantine(pool, wanted, { order: 'asc', after, limit: PAGE });
    if (page.length > 0) yield page;
    if (page.length < PAGE) return;
    after = page.at(-1)!.id;
  }
}
