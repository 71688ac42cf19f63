import { Type } from '@sinclair/typebox';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { GatewayError } from '@gateway/core/errors';
import { findEventType, insertEventType, listEventTypes, updateEventType } from '@gateway/store/config';
import { found, listRoute, projectRoute, withUid, type Route } from '../api/route.js';
import { pageQuery } from '../http/list-query.js';
import { assertValid, Id, named, nullable, object, Timestamp, Word } from '../http/schema.js';

const schemas = new Ajv2020();

const JsonSchema = Type.Unsafe<Readonly<Record<string, unknown>> | boolean | null>({
  type: ['object', 'boolean', 'null'],
  description: 'JSON Schema 2020-12 of the data; null when it is unknown.',
});
const fields = {
  description: Type.Optional(Type.String({ maxLength: 2000 })),
  json_schema: Type.Optional(JsonSchema),
  deprecated: Type.Optional(Type.Boolean()),
};
const NewEventType = named('NewEventType', object({ name: Word, ...fields }));
const ChangedEventType = named('ChangedEventType', object(fields));
const EventType = named(
  'EventType',
  object({
    uid: Id,
    project_id: Id,
    name: Type.String(),
    description: Type.String(),
    json_schema: JsonSchema,
    created_at: Timestamp,
    updated_at: Timestamp,
    deprecated_at: nullable(Timestamp),
  }),
);

/** What a schema is not checked for is whether data can match it. */
function assertSchema(schema: Readonly<Record<string, unknown>> | boolean | null | undefined): void {
  if (schema === undefined || schema === null || typeof schema === 'boolean') return;
  const known = { ...schema, $schema: 'https://json-schema.org/draft/2020-12/schema' };
  if (schemas.validateSchema(known) === true) return;
  const problems = (schemas.errors ?? []).slice(0, 1).map(({ instancePath, message }) => ({
    field: `json_schema${instancePath.replaceAll('/', '.')}`,
    sentence: `${message ?? 'is invalid'}, by JSON Schema 2020-12`,
  }));
  assertValid(problems);
}

export const eventTypeRoutes: readonly Route[] = [
  projectRoute(
    'POST /event-types',
    'Creates an event type. Events of types that are not there are accepted all the same.',
    { body: NewEventType, data: EventType, status: 201 },
    async ({ database, project, body, config }) => {
      const { name, description = '', json_schema = null, deprecated = false } = body;
      assertSchema(json_schema);
      const { event_types_per_project: max } = config.limits;
      const row = await insertEventType(database.knex, project.id, { name, description, json_schema, deprecated }, max);
      if (row) return { message: 'event type created', data: withUid(row) };
      const sentence = `the project has an event type ${name} already`;
      throw new GatewayError('conflict', { sentence, fix: `change it by PUT /event-types/{id}, or choose another name` });
    },
  ),
  listRoute(
    '/event-types',
    'Lists event types, those that were imported from OpenAPI documents and deprecated ones included.',
    { query: object({ ...pageQuery, name: Type.Optional(Word) }), title: 'event types', data: EventType },
    ({ database, project, query }, page) => listEventTypes(database.knex, project.id, query, page),
    withUid,
  ),
  projectRoute('GET /event-types/:id', 'Shows an event type with its schema.', { data: EventType }, async ({ database, project, id }) => {
    const row = found(await findEventType(database.knex, project.id, id), 'event type', id);
    return { message: 'event type', data: withUid(row) };
  }),
  projectRoute(
    'PUT /event-types/:id',
    'Changes what is given of an event type. Its name stays: events and subscriptions refer to it.',
    { body: ChangedEventType, data: EventType },
    async ({ database, project, id, body }) => {
      assertSchema(body.json_schema);
      const row = found(await updateEventType(database.knex, project.id, id, body), 'event type', id);
      return { message: 'event type updated', data: withUid(row) };
    },
  ),
  projectRoute(
    'POST /event-types/:id/deprecate',
    'Marks an event type as deprecated. Its events are delivered as before.',
    { data: EventType },
    async ({ database, project, id }) => {
      const row = found(await updateEventType(database.knex, project.id, id, { deprecated: true }), 'event type', id);
      return { message: 'event type deprecated', data: withUid(row) };
    },
  ),
];
