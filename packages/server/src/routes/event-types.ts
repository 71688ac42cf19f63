import { Type } from '@sinclair/typebox';
import { findEventType, listEventTypes } from '@gateway/store/config';
import { found, listRoute, projectRoute, withUid, type Route } from '../api/route.js';
import { pageQuery } from '../http/list-query.js';
import { object, Word } from '../http/schema.js';

export const eventTypeRoutes: readonly Route[] = [
  listRoute(
    '/event-types',
    'Lists the event types that were imported from OpenAPI documents.',
    { query: object({ ...pageQuery, name: Type.Optional(Word) }), title: 'event types' },
    ({ database, project, query }, page) => listEventTypes(database.knex, project.id, query, page),
    withUid,
  ),
  projectRoute('GET /event-types/:id', 'Shows an event type with its schema.', {}, async ({ database, project, id }) => {
    const row = found(await findEventType(database.knex, project.id, id), 'event type', id);
    return { message: 'event type', data: withUid(row) };
  }),
];
