import { isDeepStrictEqual } from 'node:util';
import { compileFunction } from 'node:vm';
import { Type, type Static } from '@sinclair/typebox';
import { deleteSource, findSource, insertSource, listSources, resumeSource, updateSource, type SourceRow } from '@gateway/store/config';
import { found, listRoute, projectRoute, type ProjectCall, type Route, type ServerContext } from '../api/route.js';
import { pageQuery } from '../http/list-query.js';
import { object, integer, Name, nullable, oneOf } from '../http/schema.js';
import { assertValid } from '../http/validate.js';
import { checkConnection, pubSubView, readPubSub, type GivenPubSub } from './source-connection.js';

const PubSub = Type.Object(
  {
    type: Type.String({ minLength: 1, maxLength: 100, description: 'The source plugin: kafka, sqs, or one of a third party.' }),
    workers: Type.Optional(integer(1, 256, 'Readers per agent: members of the consumer group, or pollers of the queue.')),
  },
  { description: 'The connection stands under the name of the type; its schema is that of the plugin.', additionalProperties: true },
);

const optional = {
  body_function: Type.Optional(
    nullable(Type.String({ maxLength: 100_000, description: 'JavaScript with a function transform(payload).' })),
  ),
  is_disabled: Type.Optional(Type.Boolean()),
};
const NewSource = object({ name: Name, type: oneOf(['pub_sub']), pub_sub: PubSub, ...optional });
const ChangedSource = object({
  name: Type.Optional(Name),
  type: Type.Optional(oneOf(['pub_sub'])),
  pub_sub: Type.Optional(PubSub),
  ...optional,
});
const CheckQuery = object({ skip_check: Type.Optional(Type.Boolean({ description: 'Saves the source without testing its connection.' })) });

function view({ id, pub_sub, ...row }: SourceRow, context: ServerContext): unknown {
  return { uid: id, ...row, pub_sub: pubSubView(pub_sub, context) };
}

export const sourceRoutes: readonly Route[] = [
  projectRoute(
    'POST /sources',
    'Creates a source after testing its connection.',
    { body: NewSource, query: CheckQuery, status: 201 },
    async (call) => {
      const { project, body, query } = call;
      if (project.type !== 'outgoing')
        assertValid([{ field: 'type', sentence: `pub_sub sources belong to outgoing projects, and ${project.name} is ${project.type}` }]);
      const { body_function = null, is_disabled = false, ...plain } = body;
      validateFunction(body_function);
      const { sealed, connection } = readPubSub(body.pub_sub, undefined, call);
      if (!query.skip_check && !is_disabled) await checkConnection(sealed.type, connection, call);
      const row = await insertSource(call.database.knex, project.id, { ...plain, pub_sub: sealed, body_function, is_disabled });
      return { message: 'source created', data: view(row, call) };
    },
  ),
  listRoute(
    '/sources',
    'Lists sources.',
    { query: object(pageQuery), title: 'sources' },
    ({ database, project }, page) => listSources(database.knex, project.id, {}, page),
    view,
  ),
  projectRoute('GET /sources/:id', 'Shows a source; secrets of its connection are masked.', {}, async (call) => ({
    message: 'source',
    data: view(await find(call), call),
  })),
  projectRoute(
    'PUT /sources/:id',
    'Changes what is given of a source; a secret that is masked or left out is kept. A changed connection is tested; a changed function ends a pause.',
    { body: ChangedSource, query: CheckQuery },
    change,
  ),
  projectRoute(
    'POST /sources/:id/resume',
    'Resumes a source that is paused because its function overran again and again.',
    {},
    async (call) => {
      const row = found(await resumeSource(call.database.knex, call.project.id, call.id), 'source', call.id);
      return { message: 'source resumed', data: view(row, call) };
    },
  ),
  projectRoute('DELETE /sources/:id', 'Deletes a source: agents stop reading it.', {}, async ({ database, project, id }) => {
    found(await deleteSource(database.knex, project.id, id), 'source', id);
    return { message: 'source deleted', data: null };
  }),
];

async function find({ database, project, id }: ProjectCall): Promise<SourceRow> {
  return found(await findSource(database.knex, project.id, id), 'source', id);
}

async function change(call: ProjectCall<Static<typeof ChangedSource>, Static<typeof CheckQuery>>) {
  const { database, project, id, body, query } = call;
  validateFunction(body.body_function);
  const stored = await find(call);
  const { pub_sub: given, ...plain } = body;
  const isEnabled = !(body.is_disabled ?? stored.is_disabled);
  const isReenabled = isEnabled && stored.is_disabled;
  // A source that is enabled again is tested as it is stored: while it was disabled its broker may have gone. Masked secrets are kept.
  const next = given ?? (isReenabled ? (pubSubView(stored.pub_sub, call) as GivenPubSub) : undefined);
  const read = next && readPubSub(next, stored.pub_sub, call);
  const isChanged = read !== undefined && (stored.is_disabled || !isDeepStrictEqual(read.sealed, stored.pub_sub));
  if (isChanged && isEnabled && !query.skip_check) await checkConnection(read.sealed.type, read.connection, call);
  const isCorrected = body.body_function !== undefined && body.body_function !== stored.body_function;
  const fields = { ...plain, ...(read ? { pub_sub: read.sealed } : {}) };
  const row = found(await updateSource(database.knex, project.id, id, fields, isCorrected || isReenabled), 'source', id);
  return { message: 'source updated', data: view(row, call) };
}

const FILENAME = 'transform.js';

/** Compiles a transform function without running it. What only running shows, agents quarantine with a reason. */
function validateFunction(text: string | null | undefined): void {
  if (!text) return;
  const field = 'body_function';
  try {
    compileFunction(`'use strict';${text}`, [], { filename: FILENAME });
  } catch (error) {
    const line = new RegExp(`^${FILENAME}:(\\d+)`).exec((error as Error).stack ?? '')?.[1];
    const where = line === undefined ? '' : ` on line ${line}`;
    assertValid([{ field, sentence: `does not compile: ${(error as Error).message}${where}` }]);
  }
  if (!/\btransform\b/.test(text))
    assertValid([{ field, sentence: 'has no function named transform; write function transform(payload) { ... }' }]);
}
