import { isDeepStrictEqual } from 'node:util';
import { Type, type Static } from '@sinclair/typebox';
import { type InvalidField } from '@gateway/core/errors';
import { newId } from '@gateway/core/events';
import { deleteSource, insertSource, listSources, updateSource } from '@gateway/store/config';
import { found, listRoute, projectRoute, type ProjectCall, type Route } from '../../api/route.js';
import { pageQuery } from '../../http/list-query.js';
import { assertValid, invalid, Name, named, nullable, object, oneOf } from '../../http/schema.js';
import { maskKey } from '../../ingest/ingest.js';
import { newMaskId } from '../../ingest/mask-id.js';
import { FunctionText, validateFunction } from '../transform-function.js';
import { HTTP_NAMES, httpFields, readHttp, type HttpFields } from './http-source.js';
import { connectionRoutes } from './connections.js';
import { lagRoutes } from './lag.js';
import { pauseRoutes } from './pauses.js';
import {
  checkConnection,
  pubSubView,
  PubSubSchema,
  readPubSub,
  type GivenPubSub,
} from './pub-sub.js';
import { requireSource, Source, sourceView } from './source-view.js';
import { stateRoutes } from './states.js';
import { testFunctionRoutes } from './test-function.js';

const optional = {
  body_function: Type.Optional(nullable(FunctionText)),
  is_disabled: Type.Optional(Type.Boolean()),
  keep_messages: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Whether messages of up to 64 KB are kept with their events, as they came: `GET /events/:id/message` shows them.',
    }),
  ),
};
const Kind = oneOf(['pub_sub', 'http'], {
  description: '`pub_sub` reads a broker; `http` takes what is posted to its URL.',
});
const NewSource = named(
  'NewSource',
  object({
    name: Name,
    type: Kind,
    pub_sub: Type.Optional(PubSubSchema),
    ...httpFields,
    ...optional,
  }),
);
const ChangedSource = named(
  'ChangedSource',
  object({
    name: Type.Optional(Name),
    type: Type.Optional(Kind),
    pub_sub: Type.Optional(PubSubSchema),
    ...httpFields,
    ...optional,
  }),
);
const CheckQuery = object({
  skip_check: Type.Optional(
    Type.Boolean({ description: 'Saves the source without testing its connection.' }),
  ),
});

export const sourceRoutes: readonly Route[] = [
  projectRoute(
    'POST /sources',
    'Creates a source. The connection to a broker is tested; a source of the type http has the URL that it takes messages at.',
    { body: NewSource, query: CheckQuery, data: Source, status: 201 },
    create,
  ),
  listRoute(
    '/sources',
    'Lists sources.',
    { query: object(pageQuery), title: 'sources', data: Source },
    ({ database, project }, page) => listSources(database.knex, project.id, {}, page),
    sourceView,
  ),
  ...connectionRoutes,
  ...stateRoutes,
  projectRoute(
    'GET /sources/:id',
    'Shows a source; secrets of its connection are masked.',
    { data: Source },
    async (call) => ({
      message: 'source',
      data: sourceView(await requireSource(call), call),
    }),
  ),
  projectRoute(
    'PUT /sources/:id',
    'Changes what is given of a source; a secret that is masked or left out is kept while the address stays. A changed connection is tested; a changed function ends a pause that has lasted transform.pause_seconds, and shortens another to that.',
    { body: ChangedSource, query: CheckQuery, data: Source },
    change,
  ),
  ...pauseRoutes,
  ...lagRoutes,
  ...testFunctionRoutes,
  projectRoute(
    'DELETE /sources/:id',
    'Deletes a source: agents stop reading it.',
    {},
    async ({ database, project, id }) => {
      found(await deleteSource(database.knex, project.id, id), 'source', id);
      return { message: 'source deleted', data: null };
    },
  ),
];

async function create(call: ProjectCall<Static<typeof NewSource>, Static<typeof CheckQuery>>) {
  const { project, body, query, config, database } = call;
  const { type, name, body_function = null, is_disabled = false, keep_messages = false } = body;
  assertValid(misplaced(type, body));
  validateFunction(body_function, 'body_function');
  const { sources_per_project, workers_per_project } = config.limits;
  const id = newId();
  const common = { id, name, type, body_function, is_disabled, keep_messages };
  const insert = (fields: Parameters<typeof insertSource>[2]) =>
    insertSource(database.knex, project.id, fields, sources_per_project, workers_per_project);
  if (type === 'http') {
    const http = readHttp(httpFieldsOf(body), undefined, { ...call, id });
    const row = await insert({
      ...common,
      pub_sub: { type: 'http' },
      http,
      mask_id: newMaskId(maskKey(config.encryption_key)),
    });
    return { message: 'source created', data: sourceView(row, call) };
  }
  if (project.type !== 'outgoing')
    throw invalid(
      'type',
      `pub_sub sources belong to outgoing projects, and ${project.name} is ${project.type}`,
    );
  if (!body.pub_sub) throw invalid('pub_sub', 'is missing');
  const { sealed, connection } = readPubSub(body.pub_sub, undefined, { ...call, id });
  const advice =
    query.skip_check || is_disabled ? null : await checkConnection(sealed, connection, call);
  const row = await insert({ ...common, pub_sub: sealed });
  return { message: withAdvice('source created', advice), data: sourceView(row, call) };
}

const withAdvice = (message: string, advice: string | null) =>
  advice === null ? message : `${message}. ${advice}`;

function httpFieldsOf(body: HttpFields): HttpFields {
  return Object.fromEntries(
    HTTP_NAMES.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name]]])),
  );
}

function misplaced(
  type: 'pub_sub' | 'http',
  body: HttpFields & { readonly pub_sub?: unknown },
): InvalidField[] {
  const foreign = type === 'http' ? (['pub_sub'] as const) : HTTP_NAMES;
  return foreign.flatMap((field) =>
    body[field] === undefined ? [] : [{ field, sentence: `does not belong to the type ${type}` }],
  );
}

async function change(call: ProjectCall<Static<typeof ChangedSource>, Static<typeof CheckQuery>>) {
  const { database, project, id, body, query, config } = call;
  validateFunction(body.body_function, 'body_function');
  const stored = await requireSource(call);
  if (body.type !== undefined && body.type !== stored.type)
    throw invalid('type', `stays ${stored.type}; create another source`);
  assertValid(misplaced(stored.type, body));
  const { name, body_function, is_disabled, keep_messages } = body;
  const plain = Object.fromEntries(
    Object.entries({ name, body_function, is_disabled, keep_messages }).filter(
      ([, it]) => it !== undefined,
    ),
  );
  const given = stored.type === 'http' ? undefined : body.pub_sub;
  const isEnabled = !(body.is_disabled ?? stored.is_disabled);
  const isReenabled = isEnabled && stored.is_disabled;
  // A re-enabled source is tested as stored: its broker could have gone while it was disabled.
  // Masked secrets are kept.
  const next =
    given ??
    (isReenabled && stored.type !== 'http'
      ? (pubSubView(stored.pub_sub, call) as GivenPubSub)
      : undefined);
  const read = next && readPubSub(next, stored.pub_sub, call);
  const isChanged =
    read !== undefined && (stored.is_disabled || !isDeepStrictEqual(read.sealed, stored.pub_sub));
  const advice =
    isChanged && isEnabled && !query.skip_check
      ? await checkConnection(read.sealed, read.connection, call)
      : null;
  const isCorrected =
    body.body_function !== undefined && body.body_function !== stored.body_function;
  const http = stored.http && readHttp(httpFieldsOf(body), stored.http, call);
  const fields = { ...plain, ...(read ? { pub_sub: read.sealed } : {}), ...(http ? { http } : {}) };
  const resumesAfter = isCorrected || isReenabled ? config.transform.pause_seconds : undefined;
  const maxWorkers = read && config.limits.workers_per_project;
  const row = found(
    await updateSource(database.knex, project.id, id, fields, resumesAfter, maxWorkers),
    'source',
    id,
  );
  return { message: withAdvice('source updated', advice), data: sourceView(row, call) };
}
