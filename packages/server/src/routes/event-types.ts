import { Type } from '@sinclair/typebox';
import { GatewayError } from '@gateway/core/errors';
import { findEventType, listEventTypes, type EventTypeRow } from '@gateway/store/config';
import { pageQuery, pageRequest, pageView } from '../http/pagination.js';
import { projectRoute, type Route } from '../http/route.js';
import { closed, Word } from '../http/schema.js';

function view({ id, ...row }: EventTypeRow): unknown {
  return { uid: id, ...row };
}

export const eventTypeRoutes: readonly Route[] = [
  projectRoute(
    {
      method: 'get',
      path: '/event-types',
      summary: 'Lists the event types that were imported from OpenAPI documents.',
      query: Type.Object({ ...pageQuery, name: Type.Optional(Word) }, closed),
    },
    async ({ parts, project, query }) => {
      const request = pageRequest(query);
      const page = await listEventTypes(parts.database.knex, project.id, query, request);
      return { message: 'event types', data: pageView(page, request, view) };
    },
  ),
  projectRoute(
    { method: 'get', path: '/event-types/:id', summary: 'Shows an event type with its schema.' },
    async ({ parts, project, params }) => {
      const { id = '' } = params;
      const row = await findEventType(parts.database.knex, project.id, id);
      if (!row) throw new GatewayError('not_found', { thing: 'event type', id });
      return { message: 'event type', data: view(row) };
    },
  ),
];
