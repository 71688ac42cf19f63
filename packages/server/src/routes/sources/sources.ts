import { isDeepStrictEqual } from 'node:util';
import { Type, type Static } from '@sinclair/typebox';
import { newId } from '@gateway/core/events';
import { deleteSource, insertSource, listSources, updateSource } from '@gateway/store/config';
import { found, listRoute, projectRoute, type ProjectCall, type Route } from '../../api/route.js';
import { pageQuery } from '../../http/list-query.js';
import { assertValid, Name, named, object, oneOf } from '../../http/schema.js';
import { BodyFunction, validateFunction } from './body-function.js';
import { lagRoutes } from './lag.js';
import { pauseRoutes } from './pauses.js';
import { checkConnection, pubSubView, PubSubSchema, readPubSub, type GivenPubSub } from './pub-sub.js';
import { testFunctionRoutes } from './test-function.js';
import { requireSource, Source, sourceView } from './source-view.js';

const optional = {
  body_function: Type.Optional(BodyFunction),
  is_disabled: Type.Optional(Type.Boolean()),
};
const NewSource = named('NewSource', object({ name: Name, type: oneOf(['pub_sub']), pub_sub: PubSubSchema, ...optional }));
const ChangedSource = named(
  'ChangedSource',
  object({
    name: Type.Optional(Name),
    type: Type.Optional(oneOf(['pub_sub'])),
    pub_sub: Type.Optional(PubSubSchema),
    ...optional,
  }),
);
const CheckQuery = object({ skip_check: Type.Optional(Type.Boolean({ description: 'Saves the source without testing its connection.' })) });

export const sourceRoutes: readonly Route[] = [
  projectRoute(
    'POST /sources',
    'Creates a source after testing its connection.',
    { body: NewSource, query: CheckQuery, data: Source, status: 201 },
    async (call) => {
      const { project, body, query } = call;
      if (project.type !== 'outgoing')
        assertValid([{ field: 'type', sentence: `pub_sub sources belong to outgoing projects, and ${project.name} is ${project.type}` }]);
      const { body_function = null, is_disabled = false, ...plain } = body;
      validateFunction(body_function);
      const id = newId();
      const { sealed, connection } = readPubSub(body.pub_sub, undefined, { ...call, id });
      const advice = query.skip_check || is_disabled ? '' : await checkConnection(sealed, connection, call);
      const fields = { ...plain, id, pub_sub: sealed, body_function, is_disabled };
      const { sources_per_project, workers_per_project } = call.config.limits;
      const row = await insertSource(call.database.knex, project.id, fields, sources_per_project, workers_per_project);
      return { message: `source created${advice}`, data: sourceView(row, call) };
    },
  ),
  listRoute(
    '/sources',
    'Lists sources.',
    { query: object(pageQuery), title: 'sources', data: Source },
    ({ database, project }, page) => listSources(database.knex, project.id, {}, page),
    sourceView,
  ),
  projectRoute('GET /sources/:id', 'Shows a source; secrets of its connection are masked.', { data: Source }, async (call) => ({
    message: 'source',
    data: sourceView(await requireSource(call), call),
  })),
  projectRoute(
    'PUT /sources/:id',
    'Changes what is given of a source; a secret that is masked or left out is kept while the address stays. A changed connection is tested; a changed function ends a pause that has lasted transform.pause_seconds, and shortens another to that.',
    { body: ChangedSource, query: CheckQuery, data: Source },
    change,
  ),
  ...pauseRoutes,
  ...lagRoutes,
  ...testFunctionRoutes,
  projectRoute('DELETE /sources/:id', 'Deletes a source: agents stop reading it.', {}, async ({ database, project, id }) => {
    found(await deleteSource(database.knex, project.id, id), 'source', id);
    return { message: 'source deleted', data: null };
  }),
];

async function change(call: ProjectCall<Static<typeof ChangedSource>, Static<typeof CheckQuery>>) {
  const { database, project, id, body, query, config } = call;
  validateFunction(body.body_function);
  const stored = await requireSource(call);
  const { pub_sub: given, ...plain } = body;
  const isEnabled = !(body.is_disabled ?? stored.is_disabled);
  const isReenabled = isEnabled && stored.is_disabled;
  // A source that is enabled again is tested as it is stored: while it was disabled its broker may have gone. Masked secrets are kept.
  const next = given ?? (isReenabled ? (pubSubView(stored.pub_sub, call) as GivenPubSub) : undefined);
  const read = next && readPubSub(next, stored.pub_sub, call);
  const isChanged = read !== undefined && (stored.is_disabled || !isDeepStrictEqual(read.sealed, stored.pub_sub));
  const advice = isChanged && isEnabled && !query.skip_check ? await checkConnection(read.sealed, read.connection, call) : '';
  const isCorrected = body.body_function !== undefined && body.body_function !== stored.body_function;
  const fields = { ...plain, ...(read ? { pub_sub: read.sealed } : {}) };
  const resumesAfter = isCorrected || isReenabled ? config.transform.pause_seconds : undefined;
  const maxWorkers = read && config.limits.workers_per_project;
  const row = found(await updateSource(database.knex, project.id, id, fields, resumesAfter, maxWorkers), 'source', id);
  return { message: `source updated${advice}`, data: sourceView(row, call) };
}
