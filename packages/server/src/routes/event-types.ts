import { clip } from '@gateway/core/json';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { GatewayError } from '@gateway/core/errors';
import { extractEventTypes } from '@gateway/core/openapi';
import {
  findEventType,
  importEventTypes,
  insertEventType,
  listEventTypes,
  updateEventType,
} from '@gateway/store/config';
import {
  assertValid,
  boolean,
  found,
  Id,
  int,
  listRoute,
  named,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  pageQuery,
  projectItem,
  projectRoute,
  searchQuery,
  string,
  Timestamp,
  Type,
  withUid,
  Word,
  type Route,
} from '../api/vocabulary.js';

const schemas = new Ajv2020();

const JsonSchema = Type.Unsafe<Readonly<Record<string, unknown>> | boolean | null>({
  type: ['object', 'boolean', 'null'],
  description: 'JSON Schema 2020-12 of the data; null if unknown.',
});
const Example = Type.Unknown({
  description:
    'Sample data of such an event; null if none is known. It is not validated against the schema.',
});
const fields = optional({
  description: Type.String({ maxLength: 2000 }),
  json_schema: JsonSchema,
  example: Example,
  deprecated: boolean(),
});
const NewEventType = namedObject('CreateEventType', { name: Word, ...fields });
const ChangedEventType = namedObject('ChangedEventType', fields);
const EventType = namedObject('EventType', {
  uid: Id,
  project_id: Id,
  name: string(),
  description: string(),
  json_schema: JsonSchema,
  example: Example,
  created_at: Timestamp,
  updated_at: Timestamp,
  deprecated_at: nullable(Timestamp),
});
const shown = { thing: 'event type', data: EventType } as const;

const OpenApiDocument = named(
  'OpenApiDocument',
  Type.Object(
    {
      documents: Type.Optional(
        Type.Array(Type.Unknown(), { description: 'Several documents, instead of one.' }),
      ),
    },
    { additionalProperties: true, description: 'OpenAPI 3.0 or 3.1 document in JSON.' },
  ),
);
const Imported = namedObject('ImportedEventTypes', {
  created: int(),
  updated: int(),
  unchanged: int(),
  content: Type.Array(
    object({ name: string(), result: oneOf(['created', 'updated', 'unchanged']) }),
  ),
});
const DOCUMENT = 'the document';
/** In characters, each schema with copies of those it refers to. */
const SCHEMAS_MAX = 2_000_000;

/** Does not check whether any data can match. Throws `invalid_request`. */
function assertSchema(
  schema: Readonly<Record<string, unknown>> | boolean | null | undefined,
): void {
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
    'Creates an event type. The project setting `config.unknown_event_types` decides whether events of other types are accepted.',
    { body: NewEventType, data: EventType, status: 201 },
    async ({ database, project, body, config, catalogue }) => {
      const { json_schema = null } = body;
      assertSchema(json_schema);
      const fields = { description: '', example: null, deprecated: false, ...body, json_schema };
      const { event_types_per_project: max } = config.limits;
      const row = await insertEventType(database.knex, project.id, fields, max);
      catalogue.forget(project.id);
      if (row) return { message: 'event type created', data: withUid(row) };
      const sentence = `the project already has an event type ${body.name}`;
      throw new GatewayError('conflict', {
        sentence,
        fix: `update it with PUT /event-types/{id}, or choose another name`,
      });
    },
  ),
  projectRoute(
    'POST /event-types/import',
    'Creates and updates event types from the webhooks, x-webhooks and callbacks of OpenAPI 3 documents, all or none. References to other files are rejected.',
    { body: OpenApiDocument, carriesMessage: true, data: Imported, name: 'import' },
    async ({ database, project, body, config, catalogue, caller }) => {
      const { documents = [body] } = body;
      const types = await extractEventTypes(
        documents.map((root, n) => ({ name: n === 0 ? DOCUMENT : `document ${n + 1}`, root })),
        { maxCharacters: caller.type === 'process' ? Infinity : SCHEMAS_MAX },
      );
      const given = [...types].map(
        ([name, { summary, description, deprecated, schema, example }]) => ({
          name,
          deprecated,
          schema,
          example,
          description: clip(description || summary, 2000),
        }),
      );
      const results = found(
        await importEventTypes(
          database.knex,
          project.id,
          given,
          config.limits.event_types_per_project,
        ),
        'project',
        project.id,
      );
      catalogue.forget(project.id);
      const count = (wanted: string) => results.filter(({ result }) => result === wanted).length;
      const data = {
        created: count('created'),
        updated: count('updated'),
        unchanged: count('unchanged'),
        content: results,
      };
      return { message: `${data.created} event types created, ${data.updated} updated`, data };
    },
  ),
  listRoute(
    '/event-types',
    'Lists event types, including imported and deprecated ones.',
    {
      query: object({ ...pageQuery, ...searchQuery, name: Type.Optional(Word) }),
      title: 'event types',
      data: EventType,
      portal: 'any',
    },
    ({ database, project, query: { name, q: search } }, page) =>
      listEventTypes(database.knex, project.id, { name, search }, page),
  ),
  projectItem(
    'GET /event-types/:id',
    'Shows an event type with its schema.',
    { ...shown, portal: 'any' },
    ({ database, project, id }) => findEventType(database.knex, project.id, { id }),
  ),
  projectItem(
    'PUT /event-types/:id',
    'Updates the given fields of an event type. Its name cannot be changed, because events and subscriptions refer to it.',
    { ...shown, body: ChangedEventType },
    ({ database, project, id, body }) => {
      assertSchema(body.json_schema);
      return updateEventType(database.knex, project.id, id, body);
    },
  ),
  projectItem(
    'POST /event-types/:id/deprecate',
    'Marks an event type as deprecated. Its events are still delivered.',
    { ...shown, message: 'event type deprecated' },
    ({ database, project, id }) =>
      updateEventType(database.knex, project.id, id, { deprecated: true }),
  ),
];
