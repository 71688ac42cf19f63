import { isDeepStrictEqual } from 'node:util';
import { type InvalidField } from '@gateway/core/errors';
import { newId } from '@gateway/core/events';
import {
  deleteSource,
  insertSource,
  listSources,
  pauseSourceByPerson,
  resumeSource,
  SOURCE_SORTS,
  updateSource,
} from '@gateway/store/config';
import {
  assertValid,
  boolean,
  found,
  invalid,
  listRoute,
  Name,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  pageQuery,
  projectItem,
  projectRoute,
  sortQuery,
  Type,
  type ProjectCall,
  type Route,
  type Static,
} from '../../api/vocabulary.js';
import { maskKey } from '../../ingest/ingest.js';
import { newMaskId } from '../../ingest/mask-id.js';
import { FunctionText, validateFunction } from '../transform-function.js';
import { nameOf } from './caller-name.js';
import { checkCodec, CodecSchema, codecView, readCodec } from './codec.js';
import { connectionRoutes } from './connections.js';
import {
  checkConnection,
  pubSubView,
  PubSubSchema,
  readPubSub,
  type GivenPubSub,
} from './pub-sub.js';
import {
  HTTP_NAMES,
  HTTP_ONLY,
  httpFields,
  isNamedPush,
  namedConnection,
  readPush,
  type PushBody,
} from './push-source.js';
import { rewindRoutes } from './rewind.js';
import { requireSource, Source, sourceView } from './source-view.js';
import { lagRoutes, stateRoutes } from './states.js';
import { testFunctionRoutes } from './test-function.js';

const common = optional({
  body_function: nullable(FunctionText),
  is_disabled: boolean(),
  keep_messages: Type.Boolean({
    default: false,
    description:
      'Whether messages of up to 64 KB are kept with their events, as they came: `GET /events/:id/message` shows them.',
  }),
});
const codecField = optional({
  codec: nullable(CodecSchema, 'For sources of type `pub_sub`. Null removes it.'),
});
/** The kind of a plugin by the type of its sources. */
const KINDS = { pub_sub: 'pull', http: 'push' } as const;
const Kind = oneOf(
  ['pub_sub', 'http'],
  '`pub_sub` reads a broker; `http` takes what is posted to its URL.',
);
const NewSource = namedObject('CreateSource', {
  name: Name,
  type: Kind,
  pub_sub: Type.Optional(PubSubSchema),
  ...codecField,
  ...httpFields,
  ...common,
});
const ChangedSource = namedObject('ChangedSource', {
  ...optional({ name: Name, type: Kind, pub_sub: PubSubSchema }),
  ...codecField,
  ...httpFields,
  ...common,
});
const ListQuery = object({
  ...pageQuery,
  ...sortQuery(Object.keys(SOURCE_SORTS) as (keyof typeof SOURCE_SORTS)[], 'The name.'),
});
const CheckQuery = object({
  skip_check: Type.Optional(boolean('Saves the source without testing the connection.')),
});
const shown = { thing: 'source', data: Source } as const;

export const sourceRoutes: readonly Route[] = [
  projectRoute(
    'POST /sources',
    'Creates a source. The connection to a broker is tested first. A source of type `http` returns the `url` to post messages to.',
    { body: NewSource, query: CheckQuery, data: Source, status: 201 },
    create,
  ),
  listRoute(
    '/sources',
    'Lists sources.',
    { query: ListQuery, title: 'sources', data: Source },
    ({ database, project }, page) => listSources(database.knex, project.id, {}, page),
    sourceView,
  ),
  ...connectionRoutes,
  ...stateRoutes,
  projectItem(
    'GET /sources/:id',
    'Shows a source; secrets of its connection are masked.',
    shown,
    requireSource,
    sourceView,
  ),
  projectRoute(
    'PUT /sources/:id',
    'Updates the given fields of a source. A masked or omitted secret is kept unless the address changes. A changed connection is tested. A changed function limits a pause to transform.pause_seconds.',
    { body: ChangedSource, query: CheckQuery, data: Source },
    change,
  ),
  projectItem(
    'POST /sources/:id/pause',
    'Pauses a source. Agents stop reading it until it is resumed; its messages stay at the broker.',
    { ...shown, message: 'source paused' },
    ({ database, project, id, caller }) =>
      pauseSourceByPerson(database.knex, project.id, id, nameOf(caller)),
    sourceView,
  ),
  projectRoute(
    'POST /sources/:id/resume',
    'Resumes a paused source. A source that was paused because its function overran repeatedly can be resumed after transform.pause_seconds.',
    { data: Source },
    async (call) => {
      const { database, project, id, config, caller } = call;
      // The operator of the instance need not wait.
      const after = caller.type === 'process' ? undefined : config.transform.pause_seconds;
      const row = found(await resumeSource(database.knex, project.id, id, after), 'source', id);
      const message = row.resumes_at
        ? `source resumes at ${row.resumes_at.toISOString()}`
        : 'source resumed';
      return { message, data: sourceView(row, call) };
    },
  ),
  ...lagRoutes,
  ...rewindRoutes,
  ...testFunctionRoutes,
  projectItem(
    'DELETE /sources/:id',
    'Deletes a source. Agents stop reading it.',
    { thing: 'source' },
    ({ database, project, id }) => deleteSource(database.knex, project.id, id),
  ),
];

async function create(call: ProjectCall<Static<typeof NewSource>, Static<typeof CheckQuery>>) {
  const { project, body, query, config, database } = call;
  const { type, name, body_function = null, is_disabled = false, keep_messages = false } = body;
  const given = pushFieldsOf(body);
  assertValid(
    misplaced(type, { ...given, codec: body.codec }, isNamedPush(body.pub_sub?.type, call)),
  );
  validateFunction(body_function, 'body_function');
  const { sources_per_project, workers_per_project } = config.limits;
  const id = newId();
  const common = { id, name, type, body_function, is_disabled, keep_messages };
  const insert = (fields: Parameters<typeof insertSource>[2]) =>
    insertSource(database.knex, project.id, fields, sources_per_project, workers_per_project);
  if (KINDS[type] === 'push') {
    const mask_id = newMaskId(maskKey(config.encryption_key));
    const row = await insert({
      ...common,
      ...(await readPush(given, undefined, { ...call, id })),
      mask_id,
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
  const codec = body.codec ? readCodec(body.codec, undefined, { ...call, id }) : undefined;
  const isChecked = !(query.skip_check || is_disabled);
  const advice = isChecked ? await checkConnection(sealed, connection, call) : null;
  const codecAdvice = isChecked && codec ? await checkCodec(codec, call) : null;
  const { forward_headers = [] } = body;
  const row = await insert({
    ...common,
    pub_sub: { ...sealed, forward_headers, ...(codec && { codec: codec.sealed }) },
  });
  return {
    message: withAdvice('source created', advice, codecAdvice),
    data: sourceView(row, call),
  };
}

const withAdvice = (message: string, ...advice: readonly (string | null)[]) =>
  [message, ...advice.filter((it) => it !== null)].join('. ');

const PUSH_NAMES = ['pub_sub', ...HTTP_NAMES] as const;

function pushFieldsOf(body: PushBody): PushBody {
  const given = PUSH_NAMES.filter((name) => body[name] !== undefined);
  return Object.fromEntries(given.map((name) => [name, body[name]]));
}

const FOREIGN = { pub_sub: HTTP_ONLY, http: ['pub_sub', 'codec'] } as const;

/** @param isNamed whether the connection of a push source stands below `pub_sub` */
function misplaced(
  type: keyof typeof KINDS,
  given: PushBody & { readonly codec?: unknown },
  isNamed: boolean,
): InvalidField[] {
  const foreign =
    isNamed && KINDS[type] === 'push' ? [...HTTP_NAMES, 'codec' as const] : FOREIGN[type];
  return foreign
    .filter((field) => given[field] !== undefined)
    .map((field) => ({ field, sentence: `does not belong to the type ${type}` }));
}

async function change(call: ProjectCall<Static<typeof ChangedSource>, Static<typeof CheckQuery>>) {
  const { database, project, id, body, query, config } = call;
  validateFunction(body.body_function, 'body_function');
  const stored = await requireSource(call);
  if (body.type !== undefined && body.type !== stored.type)
    throw invalid('type', `cannot be changed from ${stored.type}; create another source`);
  const isPush = stored.http !== null;
  const pushed = pushFieldsOf(body);
  const isNamed = namedConnection(stored) !== undefined;
  assertValid(misplaced(stored.type, { ...pushed, codec: body.codec }, isNamed));
  if (isPush && body.pub_sub && body.pub_sub.type !== stored.pub_sub.type)
    throw invalid(
      'pub_sub.type',
      `cannot be changed from ${stored.pub_sub.type}; create another source`,
    );
  const { name, body_function, is_disabled, keep_messages } = body;
  const plain = Object.fromEntries(
    Object.entries({ name, body_function, is_disabled, keep_messages }).filter(
      ([, it]) => it !== undefined,
    ),
  );
  const given = isPush ? undefined : body.pub_sub;
  const isEnabled = !(body.is_disabled ?? stored.is_disabled);
  const isReenabled = isEnabled && stored.is_disabled;
  // A re-enabled source is tested with its stored connection, because its broker may have been
  // removed meanwhile. Masked secrets are kept.
  const next =
    given ??
    (isReenabled && !isPush ? (pubSubView(stored.pub_sub, call) as GivenPubSub) : undefined);
  const read = next && readPubSub(next, stored.pub_sub, call);
  const { forward_headers: stayed, codec: codecBefore, ...connected } = stored.pub_sub;
  const nextCodec =
    body.codec ??
    (isReenabled && body.codec === undefined ? codecView(stored.pub_sub, call) : null);
  const codec = nextCodec ? readCodec(nextCodec, stored.pub_sub, call) : undefined;
  const isChanged =
    read !== undefined && (stored.is_disabled || !isDeepStrictEqual(read.sealed, connected));
  const advice =
    isChanged && isEnabled && !query.skip_check
      ? await checkConnection(read.sealed, read.connection, call)
      : null;
  const isCodecTested =
    codec !== undefined &&
    isEnabled &&
    !query.skip_check &&
    (stored.is_disabled || !isDeepStrictEqual(codec.sealed, codecBefore));
  const codecAdvice = isCodecTested ? await checkCodec(codec, call) : null;
  const isCorrected =
    body.body_function !== undefined && body.body_function !== stored.body_function;
  const push = isPush && (!isNamed || body.pub_sub) && (await readPush(pushed, stored, call));
  const forward_headers = body.forward_headers ?? stayed;
  const keptCodec = body.codec === null ? undefined : (codec?.sealed ?? codecBefore);
  const isPubSubGiven =
    !isPush &&
    (read !== undefined || body.forward_headers !== undefined || body.codec !== undefined);
  const pubSub = isPubSubGiven && {
    ...(read?.sealed ?? connected),
    ...(forward_headers && { forward_headers }),
    ...(keptCodec && { codec: keptCodec }),
  };
  const fields = { ...plain, ...(pubSub && { pub_sub: pubSub }), ...push };
  const resumesAfter = isCorrected || isReenabled ? config.transform.pause_seconds : undefined;
  const maxWorkers = read && config.limits.workers_per_project;
  const row = found(
    await updateSource(database.knex, project.id, id, fields, resumesAfter, maxWorkers),
    'source',
    id,
  );
  return {
    message: withAdvice('source updated', advice, codecAdvice),
    data: sourceView(row, call),
  };
}
