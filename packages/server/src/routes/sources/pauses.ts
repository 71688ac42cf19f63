import { pauseSourceByPerson, resumeSource } from '@gateway/store/config';
import { found, projectRoute, type Route } from '../../api/route.js';
import type { Caller } from '../../auth/caller.js';
import { Source, sourceView } from './source-view.js';

export const pauseRoutes: readonly Route[] = [
  projectRoute(
    'POST /sources/:id/pause',
    'Pauses a source: agents stop reading it until it is resumed. Its messages stay with their broker.',
    { data: Source },
    async (call) => {
      const { database, project, id, caller } = call;
      const row = found(
        await pauseSourceByPerson(database.knex, project.id, id, nameOf(caller)),
        'source',
        id,
      );
      return { message: 'source paused', data: sourceView(row, call) };
    },
  ),
  projectRoute(
    'POST /sources/:id/resume',
    'Resumes a source that a person has paused; one that is paused because its function overran again and again, once the pause has lasted transform.pause_seconds.',
    { data: Source },
    async (call) => {
      const { database, project, id, config } = call;
      const row = found(
        await resumeSource(database.knex, project.id, id, config.transform.pause_seconds),
        'source',
        id,
      );
      const message = row.resumes_at
        ? `source resumes at ${row.resumes_at.toISOString()}`
        : 'source resumed';
      return { message, data: sourceView(row, call) };
    },
  ),
];

function nameOf(caller: Caller): string {
  switch (caller.type) {
    case 'personal':
    case 'session':
      return `user ${caller.user_id}`;
    case 'project':
    case 'portal':
      return `API key gw_${caller.mask}_…`;
    case 'process':
      return 'a credential of the server';
  }
}
