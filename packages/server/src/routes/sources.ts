import { isDeepStrictEqual } from 'node:util';
import { Type, type Static } from '@sinclair/typebox';
import { GatewayError, type InvalidField } from '@gateway/core/errors';
import { deleteSource, findSource, insertSource, listSources, resumeSource, updateSource, type SourceRow } from '@gateway/store/config';
import { refuse } from '../http/mount.js';
import { pageQuery, pageRequest, pageView } from '../http/pagination.js';
import type { Parts } from '../http/server-context.js';
import { projectRoute, type ProjectCall, type Route } from '../http/route.js';
import { closed, Name, nullable, oneOf } from '../http/schema.js';
import { checkConnection, pubSubView, readPubSub, type GivenPubSub } from './source-connection.js';
import { transformProblem } from './transform-text.js';

const PubSub = Type.Object(
  {
    type: Type.String({ minLength: 1, maxLength: 100, description: 'The source plugin: kafka, sqs, or one of a third party.' }),
    workers: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 256, description: 'Readers per agent: members of the consumer group, or pollers of the queue.' }),
    ),
  },
  { description: 'The connection stands under the name of the type; its schema is that of the plugin.', additionalProperties: true },
);

const optional = {
  body_function: Type.Optional(
    nullable(Type.String({ maxLength: 100_000, description: 'JavaScript with a function transform(payload).' })),
  ),
  is_disabled: Type.Optional(Type.Boolean()),
};
const NewSource = Type.Object({ name: Name, type: oneOf(['pub_sub']), pub_sub: PubSub, ...optional }, closed);
const ChangedSource = Type.Object(
  { name: Type.Optional(Name), type: Type.Optional(oneOf(['pub_sub'])), pub_sub: Type.Optional(PubSub), ...optional },
  closed,
);
const CheckQuery = Type.Object(
  { skip_check: Type.Optional(Type.Boolean({ description: 'Saves the source without testing its connection.' })) },
  closed,
);

function view({ id, pub_sub, ...row }: SourceRow, parts: Parts): unknown {
  return { uid: id, ...row, pub_sub: pubSubView(pub_sub, parts) };
}

const missing = (id: string | undefined) => new GatewayError('not_found', { thing: 'source', id: id ?? '' });

export const sourceRoutes: readonly Route[] = [
  projectRoute(
    {
      method: 'post',
      path: '/sources',
      summary: 'Creates a source after testing its connection.',
      body: NewSource,
      query: CheckQuery,
      status: 201,
    },
    async ({ parts, project, body, query }) => {
      if (project.type !== 'outgoing') {
        refuse([{ field: 'type', sentence: `pub_sub sources belong to outgoing projects, and ${project.name} is ${project.type}` }]);
      }
      refuse(functionProblems(body.body_function));
      const { sealed, connection } = readPubSub(body.pub_sub, undefined, parts);
      const isDisabled = body.is_disabled ?? false;
      if (!query.skip_check && !isDisabled) await checkConnection(sealed.type, connection, parts);
      const { name, type, body_function = null } = body;
      const row = await insertSource(parts.database.knex, project.id, {
        name,
        type,
        pub_sub: sealed,
        body_function,
        is_disabled: isDisabled,
      });
      return { message: 'source created', data: view(row, parts) };
    },
  ),
  projectRoute(
    { method: 'get', path: '/sources', summary: 'Lists sources.', query: Type.Object({ ...pageQuery }, closed) },
    async ({ parts, project, query }) => {
      const request = pageRequest(query);
      const page = await listSources(parts.database.knex, project.id, request);
      return { message: 'sources', data: pageView(page, request, (row) => view(row, parts)) };
    },
  ),
  projectRoute({ method: 'get', path: '/sources/:id', summary: 'Shows a source; secrets of its connection are masked.' }, async (call) => ({
    message: 'source',
    data: view(await find(call), call.parts),
  })),
  projectRoute(
    {
      method: 'put',
      path: '/sources/:id',
      summary:
        'Changes what is given of a source; a secret that is masked or left out is kept. A changed connection is tested; a changed function ends a pause.',
      body: ChangedSource,
      query: CheckQuery,
    },
    change,
  ),
  projectRoute(
    {
      method: 'post',
      path: '/sources/:id/resume',
      summary: 'Resumes a source that is paused because its function overran again and again.',
    },
    async ({ parts, project, params }) => {
      const row = await resumeSource(parts.database.knex, project.id, params['id'] ?? '');
      if (!row) throw missing(params['id']);
      return { message: 'source resumed', data: view(row, parts) };
    },
  ),
  projectRoute(
    { method: 'delete', path: '/sources/:id', summary: 'Deletes a source: agents stop reading it.' },
    async ({ parts, project, params }) => {
      if (!(await deleteSource(parts.database.knex, project.id, params['id'] ?? ''))) throw missing(params['id']);
      return { message: 'source deleted', data: null };
    },
  ),
];

async function find({ parts, project, params }: ProjectCall): Promise<SourceRow> {
  const row = await findSource(parts.database.knex, project.id, params['id'] ?? '');
  if (!row) throw missing(params['id']);
  return row;
}

async function change(call: ProjectCall<Static<typeof ChangedSource>, Static<typeof CheckQuery>>) {
  const { parts, project, body, query } = call;
  refuse(functionProblems(body.body_function));
  const stored = await find(call);
  const { pub_sub: given, ...plain } = body;
  const isEnabled = !(body.is_disabled ?? stored.is_disabled);
  // A source that is switched on again is tested as it stands; one that is off may name a broker that is away.
  const next = given ?? (isEnabled && stored.is_disabled ? masked(stored, parts) : undefined);
  const read = next && readPubSub(next, stored.pub_sub, parts);
  const isChanged = read !== undefined && (stored.is_disabled || !isDeepStrictEqual(read.sealed, stored.pub_sub));
  if (isChanged && isEnabled && !query.skip_check) await checkConnection(read.sealed.type, read.connection, parts);
  const isCorrected = body.body_function !== undefined && body.body_function !== stored.body_function;
  const resumes = isCorrected || (isEnabled && stored.is_disabled);
  const fields = { ...plain, ...(read ? { pub_sub: read.sealed } : {}) };
  const row = await updateSource(parts.database.knex, project.id, stored.id, fields, resumes);
  if (!row) throw missing(stored.id);
  return { message: 'source updated', data: view(row, parts) };
}

/** A stored connection in the form of a request that keeps every secret. */
function masked({ pub_sub }: SourceRow, parts: Parts): GivenPubSub {
  return pubSubView(pub_sub, parts) as GivenPubSub;
}

function functionProblems(text: string | null | undefined): InvalidField[] {
  const sentence = text ? transformProblem(text) : undefined;
  return sentence === undefined ? [] : [{ field: 'body_function', sentence }];
}
