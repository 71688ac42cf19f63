import { Type, type Static } from '@sinclair/typebox';
import { GatewayError, type InvalidField } from '@gateway/core/errors';
import { isHeaderName, isHeaderValue, isReservedHeader } from '@gateway/core/events';
import {
  deleteEndpoint,
  findEndpoint,
  insertEndpoint,
  listEndpoints,
  setEndpointStatus,
  updateEndpoint,
  type EndpointAuthentication,
  type EndpointFields,
  type EndpointRow,
} from '@gateway/store/config';
import { discardWaiting, expediteDeliveries, pauseDeliveries, resumeDeliveries } from '@gateway/store/deliveries';
import type { BreakerView } from '@gateway/store/kv';
import { generateSecret, rotateSecret, sealSecret } from '@gateway/store/config';
import { breakersNow, closeBreaker } from './endpoint-breakers.js';
import { authenticationView, sealAuthentication, secretProblem, secretViews } from './endpoint-secrets.js';
import { refuse } from '../http/mount.js';
import { pageQuery, pageRequest, pageView } from '../http/pagination.js';
import type { Parts } from '../http/server-context.js';
import { projectRoute, type ProjectCall, type Route } from '../http/route.js';
import { closed, Name, nullable, oneOf, StrategySchema, Word } from '../http/schema.js';

const TIMEOUT_SECONDS = 10;

const Secret = Type.String({ maxLength: 200, description: '`whsec_` and base64 of 24 to 64 bytes; made when it is left out.' });

const Authentication = Type.Object(
  {
    type: oneOf(['api_key', 'basic', 'bearer']),
    api_key: Type.Optional(
      Type.Object(
        { header_name: Type.String({ minLength: 1, maxLength: 200 }), header_value: Type.String({ minLength: 1, maxLength: 4096 }) },
        closed,
      ),
    ),
    basic: Type.Optional(
      Type.Object(
        {
          username: Type.String({ maxLength: 1024, pattern: '^[^:]*$', 'x-sentence': 'must not contain a colon' }),
          password: Type.String({ maxLength: 4096 }),
        },
        closed,
      ),
    ),
    bearer: Type.Optional(Type.Object({ token: Type.String({ minLength: 1, maxLength: 4096 }) }, closed)),
  },
  closed,
);

const optional = {
  owner_id: Type.Optional(nullable(Word)),
  description: Type.Optional(Type.String({ maxLength: 2000 })),
  authentication: Type.Optional(nullable(Authentication)),
  http_timeout: Type.Optional(
    Type.Number({ minimum: 0.1, maximum: 120, description: `Seconds that a request may take; ${TIMEOUT_SECONDS} when it is left out.` }),
  ),
  concurrency: Type.Optional(
    nullable(Type.Integer({ minimum: 1, maximum: 10_000, description: 'Requests under way at a time, per agent.' })),
  ),
  strategy: Type.Optional(nullable(StrategySchema)),
  rate_limit: Type.Optional(
    nullable(
      Type.Integer({
        minimum: 0,
        maximum: 1_000_000,
        description: "Requests in `rate_limit_duration` at most, of all agents together; 0 is no limit, null the project's.",
      }),
    ),
  ),
  rate_limit_duration: Type.Optional(
    nullable(Type.Integer({ minimum: 1, maximum: 86_400, description: 'Seconds that `rate_limit` is for; 1 when it is left out.' })),
  ),
};
const Url = Type.String({ minLength: 1, maxLength: 2048 });

const NewEndpoint = Type.Object({ name: Name, url: Url, secret: Type.Optional(Secret), ...optional }, closed);
const ChangedEndpoint = Type.Object({ name: Type.Optional(Name), url: Type.Optional(Url), ...optional }, closed);
const NewSecret = Type.Object(
  {
    secret: Type.Optional(Secret),
    expiration: Type.Optional(
      Type.Number({ minimum: 0, maximum: 720, description: 'Hours for which the present secrets still sign; 0 ends them now.' }),
    ),
  },
  closed,
);

function view(row: EndpointRow, breaker: BreakerView | null, shown?: { id: string; secret: string }): unknown {
  const { id, secrets, authentication, timeout_ms, ...plain } = row;
  return {
    uid: id,
    ...plain,
    http_timeout: timeout_ms / 1000,
    secrets: secretViews(secrets, shown),
    authentication: authenticationView(authentication),
    circuit_breaker: breaker,
  };
}

/** An endpoint with its circuit breaker as it is now. */
async function viewNow({ kv }: Parts, row: EndpointRow, shown?: { id: string; secret: string }): Promise<unknown> {
  return view(row, (await breakersNow(kv))(row.id), shown);
}

const missing = (id: string | undefined) => new GatewayError('not_found', { thing: 'endpoint', id: id ?? '' });

export const endpointRoutes: readonly Route[] = [
  projectRoute(
    { method: 'post', path: '/endpoints', summary: 'Creates an endpoint. Its secret is shown this once.', body: NewEndpoint, status: 201 },
    async ({ parts, project, body }) => {
      const { secret: given, ...rest } = body;
      refuse([...fieldProblems(rest), ...secretProblems(given)]);
      const secret = given ?? generateSecret();
      const record = sealSecret(secret, parts.sealer);
      const fields = { ...defaults, ...columnsOf(rest, null, parts), name: body.name, url: body.url, secrets: [record] };
      const row = await insertEndpoint(parts.database.knex, project.id, fields);
      return {
        message: 'endpoint created; keep the secret, it is not shown again',
        data: await viewNow(parts, row, { id: record.id, secret }),
      };
    },
  ),
  projectRoute(
    {
      method: 'get',
      path: '/endpoints',
      summary: 'Lists endpoints.',
      query: Type.Object({ ...pageQuery, ownerId: Type.Optional(Word) }, closed),
    },
    async ({ parts, project, query }) => {
      const request = pageRequest(query);
      const page = await listEndpoints(parts.database.knex, project.id, query, request);
      const breakerOf = await breakersNow(parts.kv);
      return { message: 'endpoints', data: pageView(page, request, (row) => view(row, breakerOf(row.id))) };
    },
  ),
  projectRoute({ method: 'get', path: '/endpoints/:id', summary: 'Shows an endpoint.' }, async (call) => ({
    message: 'endpoint',
    data: await viewNow(call.parts, await find(call)),
  })),
  projectRoute(
    { method: 'put', path: '/endpoints/:id', summary: 'Changes what is given of an endpoint; null clears a field.', body: ChangedEndpoint },
    async (call) => {
      const { parts, project, body } = call;
      refuse(fieldProblems(body));
      const { id, authentication, url } = await find(call);
      const row = await updateEndpoint(parts.database.knex, project.id, id, columnsOf(body, authentication, parts));
      if (!row) throw missing(id);
      // Elsewhere it may well answer. While KV is away that is found out by the next probe.
      if (row.url !== url) await reset(call, id).catch(() => undefined);
      // What waits for the limit that it had comes by the one that it has.
      if (body.rate_limit !== undefined || body.rate_limit_duration !== undefined)
        await expediteDeliveries(parts.database.pool, { projectId: project.id, endpointId: id }, ['rate_limit']);
      return { message: 'endpoint updated', data: await viewNow(parts, row) };
    },
  ),
  projectRoute(
    {
      method: 'delete',
      path: '/endpoints/:id',
      summary: 'Deletes an endpoint and its subscriptions; its waiting deliveries are discarded.',
    },
    async (call) => {
      const { parts, project } = call;
      const { id } = await find(call);
      await deleteEndpoint(parts.database.knex, project.id, id);
      await discardWaiting(parts.database.pool, { projectId: project.id, endpointId: id }, 'The endpoint was deleted.');
      return { message: 'endpoint deleted', data: null };
    },
  ),
  projectRoute({ method: 'put', path: '/endpoints/:id/pause', summary: 'Pauses an endpoint: its deliveries are held.' }, async (call) => {
    const { parts, project } = call;
    const { id } = await find(call);
    const row = await setEndpointStatus(parts.database.knex, project.id, id, { status: 'paused', reason: 'It was paused over the API.' });
    if (!row) throw missing(id);
    await pauseDeliveries(parts.database.pool, { projectId: project.id, endpointId: id });
    return { message: 'endpoint paused', data: await viewNow(parts, row) };
  }),
  projectRoute(
    {
      method: 'post',
      path: '/endpoints/:id/activate',
      summary: 'Activates an endpoint that is paused or inactive: what was held is sent.',
    },
    async (call) => {
      const { parts, project } = call;
      const { id } = await find(call);
      const row = await setEndpointStatus(parts.database.knex, project.id, id, { status: 'active', reason: null });
      if (!row) throw missing(id);
      await resumeDeliveries(parts.database.pool, { projectId: project.id, endpointId: id });
      return { message: 'endpoint activated', data: await viewNow(parts, row) };
    },
  ),
  projectRoute(
    {
      method: 'post',
      path: '/endpoints/:id/reset_circuit_breaker',
      summary: 'Closes the circuit breaker of an endpoint: what waits for it is sent.',
    },
    async (call) => {
      const { parts } = call;
      const row = await find(call);
      await reset(call, row.id);
      return { message: 'circuit breaker closed', data: await viewNow(parts, row) };
    },
  ),
  projectRoute(
    {
      method: 'put',
      path: '/endpoints/:id/expire_secret',
      summary: 'Gives an endpoint a new secret, shown this once; the present ones sign for some hours more.',
      body: NewSecret,
    },
    async ({ parts, project, params, body }) => {
      refuse(secretProblems(body.secret));
      const { id = '' } = params;
      const secret = body.secret ?? generateSecret();
      const record = sealSecret(secret, parts.sealer);
      const row = await rotateSecret(parts.database.knex, { projectId: project.id, id }, record, (body.expiration ?? 24) * 3_600_000);
      if (!row) throw missing(id);
      return {
        message: 'secret rotated; keep the new one, it is not shown again',
        data: await viewNow(parts, row, { id: record.id, secret }),
      };
    },
  ),
];

/** Closes the breaker of an endpoint and hastens what waits for it. */
async function reset({ parts, project }: ProjectCall, endpointId: string): Promise<void> {
  await closeBreaker(parts, endpointId);
  await expediteDeliveries(parts.database.pool, { projectId: project.id, endpointId }, ['breaker']);
}

async function find({ parts, project, params }: ProjectCall): Promise<EndpointRow> {
  const row = await findEndpoint(parts.database.knex, project.id, params['id'] ?? '');
  if (!row) throw missing(params['id']);
  return row;
}

const defaults = {
  owner_id: null,
  description: '',
  authentication: null,
  timeout_ms: TIMEOUT_SECONDS * 1000,
  concurrency: null,
  strategy: null,
} as const;

type Given = Static<typeof ChangedEndpoint>;

/** The columns of the given fields. */
function columnsOf(
  { http_timeout, authentication, ...plain }: Given,
  stored: EndpointAuthentication | null,
  { sealer }: Parts,
): Partial<EndpointFields> {
  const sealed = authentication && sealAuthentication(authentication as EndpointAuthentication, stored, sealer);
  if (authentication && !sealed)
    refuse([
      {
        field: `authentication.${authentication.type}`,
        sentence: 'holds the mask of a secret, but none is stored; give the secret itself',
      },
    ]);
  return {
    ...plain,
    ...(http_timeout === undefined ? {} : { timeout_ms: Math.round(http_timeout * 1000) }),
    ...(authentication === undefined ? {} : { authentication: sealed ?? null }),
  };
}

/** What the schema cannot say. */
function fieldProblems({ url, authentication }: Given): InvalidField[] {
  return [...(url === undefined ? [] : urlProblems(url)), ...(authentication ? authenticationProblems(authentication) : [])];
}

function urlProblems(text: string): InvalidField[] {
  const field = 'url';
  if (!URL.canParse(text)) return [{ field, sentence: 'must be a URL like https://example.com/webhooks' }];
  const { protocol, username, password } = new URL(text);
  if (protocol !== 'https:' && protocol !== 'http:') return [{ field, sentence: `must begin with https:// or http://, not ${protocol}//` }];
  return username || password
    ? [{ field, sentence: 'must not hold credentials; use the field authentication, where they are kept sealed' }]
    : [];
}

function authenticationProblems(given: NonNullable<Given['authentication']>): InvalidField[] {
  const { type, ...objects } = given;
  const problems: InvalidField[] = [];
  if (!objects[type]) problems.push({ field: `authentication.${type}`, sentence: 'is missing' });
  for (const name of Object.keys(objects))
    if (name !== type) problems.push({ field: `authentication.${name}`, sentence: `does not belong to the type ${type}` });
  const { header_name: name, header_value: value } = objects.api_key ?? {};
  if (name !== undefined && !isHeaderName(name))
    problems.push({ field: 'authentication.api_key.header_name', sentence: 'must be the name of a header' });
  if (name !== undefined && isReservedHeader(name))
    problems.push({ field: 'authentication.api_key.header_name', sentence: 'is a header that the gateway or the connection sets' });
  if (value !== undefined && !isHeaderValue(value))
    problems.push({ field: 'authentication.api_key.header_value', sentence: 'holds characters that HTTP cannot carry' });
  if (objects.bearer && !isHeaderValue(objects.bearer.token))
    problems.push({ field: 'authentication.bearer.token', sentence: 'holds characters that HTTP cannot carry' });
  return problems;
}

function secretProblems(secret: string | undefined): InvalidField[] {
  const sentence = secret === undefined ? undefined : secretProblem(secret);
  return sentence === undefined ? [] : [{ field: 'secret', sentence }];
}
