import { insertSource, pauseSource, type SourceRow } from '#store/config/sources';
import { makeProject } from '../../../../store/made.js';
import type { migratedDatabase } from '../../../../store/migrated.js';

/** Creates a source in a project; with a reason, one that an agent has paused for a minute. */
export async function makeSource(
  db: Awaited<ReturnType<typeof migratedDatabase>>,
  {
    project,
    name,
    pausedFor,
    ...fields
  }: { project: string; name: string; pausedFor?: string } & Partial<SourceRow>,
): Promise<SourceRow> {
  const { id: projectId } = await makeProject(db, project);
  const bodyFunction = 'function transform(payload) { for (;;); }';
  const row = await insertSource(db.knex, projectId, {
    name,
    type: 'pub_sub',
    pub_sub: { type: 'sqs', workers: 1, sqs: {} },
    body_function: bodyFunction,
    is_disabled: false,
    ...fields,
  });
  if (pausedFor)
    await pauseSource(db.pool, projectId, row.id, {
      reason: pausedFor,
      by: 'agent-1',
      seconds: 60,
      facts: null,
    });
  return row;
}
