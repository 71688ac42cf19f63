import { Type, type Static } from '@sinclair/typebox';
import { explainKvError, GatewayError, type InvalidField } from '@gateway/core/errors';
import { isHeaderName, isHeaderValue, isReservedHeader, newId } from '@gateway/core/events';
import { withTimeout } from '@gateway/core/process';
import {
  countClientCertificates,
  deleteEndpoint,
  findEndpoint,
  generateSecret,
  insertEndpoint,
  listEndpoints,
  rotateSecret,
  sealSecret,
  setEndpointStatus,
  updateEndpoint,
  type EndpointAuthentication,
  type EndpointFields,
  type EndpointRow,
} from '@gateway/store/config';
import { discardWaiting, expediteDeliveries, pauseDeliveries, resumeDeliveries } from '@gateway/store/deliveries';
import { breakerView, readBreakers, resetBreaker, type BreakerView, type Kv } from '@gateway/store/kv';
import { found, listRoute, projectRoute, type ProjectCall, type Route, type ServerContext } from '../../api/route.js';
import { pageQuery, searchQuery } from '../../http/list-query.js';
import {
  ignoring,
  object,
  Id,
  integer,
  Name,
  named,
  nullable,
  oneOf,
  StrategySchema,
  Timestamp,
  Word,
  assertValid,
} from '../../http/schema.js';
import { certificateProblems, certificateView, GivenCertificate, sealCertificate, ShownCertificate } from './client-certificate.js';
import { authenticationView, isMasked, sealAuthentication, secretProblem, secretViews, type ShownSecret } from './endpoint-secrets.js';
import { portalProblems } from './portal-fields.js';

const TIMEOUT_SECONDS = 10;
const BREAKERS_READ_MS = 200;
const BREAKER_RESET_MS = 2_000;
const RETRY_AFTER_SECONDS = 5;

const Secret = Type.String({
  maxLength: 200,
  description:
    '`whsec_` and base64 of 24 to 64 bytes, or any text of 12 characters or more, whose UTF-8 bytes are the key; made when it is left out.',
});

const Authentication = object({
  type: oneOf(['api_key', 'basic', 'bearer', 'oauth2']),
  api_key: Type.Optional(
    object({ header_name: Type.String({ minLength: 1, maxLength: 200 }), header_value: Type.String({ minLength: 1, maxLength: 4096 }) }),
  ),
  basic: Type.Optional(
    object({
      username: Type.String({ maxLength: 1024, pattern: '^[^:]*$', 'x-sentence': 'must not contain a colon' }),
      password: Type.String({ maxLength: 4096 }),
    }),
  ),
  bearer: Type.Optional(object({ token: Type.String({ minLength: 1, maxLength: 4096 }) })),
  oauth2: Type.Optional(
    object({
      url: Type.String({
        minLength: 1,
        maxLength: 2048,
        description: 'Of the token server, which is asked for client credentials (RFC 6749, 4.4).',
      }),
      client_id: Type.String({ minLength: 1, maxLength: 1024 }),
      client_secret: Type.String({ minLength: 1, maxLength: 4096 }),
      scope: Type.Optional(Type.String({ maxLength: 2048 })),
      audience: Type.Optional(Type.String({ maxLength: 2048 })),
    }),
  ),
});

const optional = {
  owner_id: Type.Optional(nullable(Word)),
  description: Type.Optional(Type.String({ maxLength: 2000 })),
  authentication: Type.Optional(nullable(Authentication)),
  mtls_client_cert: Type.Optional(nullable(GivenCertificate)),
  http_timeout: Type.Optional(
    Type.Number({ minimum: 0.1, maximum: 120, description: `Seconds that a request may take; ${TIMEOUT_SECONDS} when it is left out.` }),
  ),
  concurrency: Type.Optional(nullable(integer(1, 10_000, 'Requests under way at a time, per agent.'))),
  strategy: Type.Optional(nullable(StrategySchema)),
  rate_limit: Type.Optional(
    nullable(
      integer(0, 1_000_000, "Requests in `rate_limit_duration` at most, of all agents together; 0 is no limit, null the project's."),
    ),
  ),
  rate_limit_duration: Type.Optional(nullable(integer(1, 86_400, 'Seconds that `rate_limit` is for; 1 when it is left out.'))),
};
const Url = Type.String({ minLength: 1, maxLength: 2048, format: 'uri', examples: ['https://example.com/webhooks'] });

/** Of alerts, which the notifications of the instance take the place of, and of what is always so here. */
const IGNORED_FIELDS = [
  'alert_config',
  'support_email',
  'slack_webhook_url',
  'teams_webhook_url',
  'advanced_signatures',
  'app_id',
  'appID',
];
const NewEndpoint = named(
  'NewEndpoint',
  ignoring(IGNORED_FIELDS, object({ name: Name, url: Url, secret: Type.Optional(Secret), ...optional })),
);
const ChangedEndpoint = named(
  'ChangedEndpoint',
  ignoring(IGNORED_FIELDS, object({ name: Type.Optional(Name), url: Type.Optional(Url), ...optional })),
);
const NewSecret = named(
  'NewSecret',
  object({
    secret: Type.Optional(Secret),
    expiration: Type.Optional(
      Type.Number({ minimum: 0, maximum: 720, description: 'Hours for which the present secrets still sign; 0 ends them now.' }),
    ),
  }),
);

const STATUSES = ['active', 'inactive', 'paused'] as const;
const CircuitBreaker = object({
  state: oneOf(['closed', 'open', 'half_open']),
  since: nullable(Timestamp),
  until: nullable(Timestamp),
  requests: Type.Integer(),
  failures: Type.Integer(),
});
const SecretView = object({
  uid: Id,
  value: Type.String({ description: 'Masked, but in the answer that creates it.' }),
  created_at: Timestamp,
  expires_at: nullable(Timestamp),
});
const Endpoint = named(
  'Endpoint',
  object({
    uid: Id,
    project_id: Id,
    name: Type.String(),
    url: Type.String(),
    owner_id: nullable(Type.String()),
    description: Type.String(),
    status: oneOf(STATUSES),
    status_reason: nullable(Type.String()),
    secrets: Type.Array(SecretView),
    authentication: nullable(Authentication),
    mtls_client_cert: nullable(ShownCertificate),
    http_timeout: Type.Number({ description: 'Seconds that a request may take.' }),
    concurrency: nullable(Type.Integer()),
    strategy: nullable(StrategySchema),
    rate_limit: nullable(Type.Integer()),
    rate_limit_duration: nullable(Type.Integer()),
    circuit_breaker: Type.Unsafe<BreakerView | null>({ ...nullable(CircuitBreaker), description: 'Null while KV is away.' }),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
);

const ListQuery = object({
  ...pageQuery,
  q: Type.Optional({ ...searchQuery.q, description: 'A part of name, URL or owner id, in any case.' }),
  ownerId: Type.Optional(Word),
  status: Type.Optional(oneOf(STATUSES)),
});

function view(row: EndpointRow, breaker: BreakerView | null, shown?: ShownSecret): unknown {
  const { id, secrets, authentication, mtls_client_cert: certificate, timeout_ms, ...plain } = row;
  return {
    uid: id,
    ...plain,
    http_timeout: timeout_ms / 1000,
    secrets: secretViews(secrets, shown),
    authentication: authenticationView(authentication),
    mtls_client_cert: certificateView(certificate),
    circuit_breaker: breaker,
  };
}

async function viewNow({ kv }: ServerContext, row: EndpointRow, shown?: ShownSecret): Promise<unknown> {
  return view(row, (await readBreakersNow(kv))(row.id), shown);
}

export const endpointRoutes: readonly Route[] = [
  projectRoute(
    'POST /endpoints',
    'Creates an endpoint. Its secret is shown this once.',
    { body: NewEndpoint, data: Endpoint, status: 201, portal: 'managing' },
    async (call) => {
      const { secret = generateSecret(), ...rest } = call.body;
      assertValid([...fieldProblems(rest), ...secretProblems(secret), ...certificateProblems(rest), ...portalProblems(call)]);
      if (rest.mtls_client_cert) await requireCertificateRoom(call);
      const id = newId();
      const record = sealSecret(secret, id, call.sealer);
      const owner = call.ownerId === undefined ? {} : { owner_id: call.ownerId };
      const columns = { ...columnsOf(rest, undefined, { ...call, id }), ...owner };
      const fields = { ...DEFAULTS, ...columns, id, name: rest.name, url: rest.url, secrets: [record] };
      const { endpoints_per_project: max, endpoints_per_owner: ofOwner } = call.config.limits;
      const share = call.ownerId === undefined ? undefined : { ownerId: call.ownerId, max: ofOwner };
      const row = await insertEndpoint(call.database.knex, call.project.id, fields, max, share);
      return {
        message: 'endpoint created; keep the secret, it is not shown again',
        data: await viewNow(call, row, { id: record.id, secret }),
      };
    },
  ),
  listRoute(
    '/endpoints',
    'Lists endpoints.',
    { query: ListQuery, title: 'endpoints', data: Endpoint, portal: 'any' },
    async ({ database, kv, project, query, ownerId = query.ownerId }, request) => {
      const { status, q } = query;
      const page = await listEndpoints(database.knex, project.id, { owner_id: ownerId, status }, request, q);
      const breakerOf = await readBreakersNow(kv);
      return { ...page, content: page.content.map((row) => view(row, breakerOf(row.id))) };
    },
    (shown) => shown,
  ),
  projectRoute('GET /endpoints/:id', 'Shows an endpoint.', { data: Endpoint, portal: 'any' }, async (call) => ({
    message: 'endpoint',
    data: await viewNow(call, await find(call)),
  })),
  projectRoute(
    'PUT /endpoints/:id',
    'Changes what is given of an endpoint; null clears a field. Another origin asks for the authentication and the client key again.',
    { body: ChangedEndpoint, data: Endpoint, portal: 'managing' },
    async (call) => {
      const { database, project, id, body } = call;
      assertValid([...fieldProblems(body), ...portalProblems(call)]);
      const stored = await find(call);
      const { url, authentication, mtls_client_cert } = stored;
      assertValid([...movedProblems(body, stored), ...certificateProblems(body, stored)]);
      if (body.mtls_client_cert && !mtls_client_cert) await requireCertificateRoom(call);
      const columns = columnsOf(body, stored, call);
      // Written together: a change at the same time must not join a secret with another URL.
      if (columns.url !== undefined || columns.authentication || columns.mtls_client_cert)
        Object.assign(columns, { url, authentication, mtls_client_cert, ...columns });
      const row = found(await updateEndpoint(database.knex, project.id, id, columns), 'endpoint', id);
      // Another URL may answer again. While KV is away the next probe of the breaker finds out.
      if (row.url !== url) await reset(call).catch(() => undefined);
      // Deliveries that wait for the old limit are due by the new one.
      if (body.rate_limit !== undefined || body.rate_limit_duration !== undefined)
        await expediteDeliveries(database.pool, { projectId: project.id, endpointId: id }, ['rate_limit']);
      return { message: 'endpoint updated', data: await viewNow(call, row) };
    },
  ),
  projectRoute(
    'DELETE /endpoints/:id',
    'Deletes an endpoint and its subscriptions; its waiting deliveries are discarded.',
    { portal: 'managing' },
    async ({ database, project, id }) => {
      found(await deleteEndpoint(database.knex, project.id, id), 'endpoint', id);
      await discardWaiting(database.pool, { projectId: project.id, endpointId: id }, 'The endpoint was deleted.');
      return { message: 'endpoint deleted', data: null };
    },
  ),
  projectRoute(
    'PUT /endpoints/:id/pause',
    'Pauses an endpoint: its deliveries are held.',
    { data: Endpoint, portal: 'managing' },
    async (call) => {
      const row = await setStatus(call, { status: 'paused', reason: 'It was paused over the API.' });
      await pauseDeliveries(call.database.pool, { projectId: call.project.id, endpointId: row.id });
      return { message: 'endpoint paused', data: await viewNow(call, row) };
    },
  ),
  projectRoute(
    'POST /endpoints/:id/activate',
    'Activates an endpoint that is paused or inactive: what was held is sent.',
    { data: Endpoint, portal: 'managing' },
    async (call) => {
      const row = await setStatus(call, { status: 'active', reason: null });
      await resumeDeliveries(call.database.pool, { projectId: call.project.id, endpointId: row.id });
      return { message: 'endpoint activated', data: await viewNow(call, row) };
    },
  ),
  projectRoute(
    'POST /endpoints/:id/reset_circuit_breaker',
    'Closes the circuit breaker of an endpoint: what waits for it is sent.',
    { data: Endpoint, portal: 'managing' },
    async (call) => {
      const row = await find(call);
      await reset(call);
      return { message: 'circuit breaker closed', data: await viewNow(call, row) };
    },
  ),
  projectRoute(
    'PUT /endpoints/:id/expire_secret',
    'Gives an endpoint a new secret, shown this once; the present ones sign for some hours more.',
    { body: NewSecret, data: Endpoint, portal: 'managing' },
    async (call) => {
      const { database, project, sealer, id } = call;
      const { secret = generateSecret(), expiration: hours = 24 } = call.body;
      assertValid(secretProblems(secret));
      const record = sealSecret(secret, id, sealer);
      const row = found(await rotateSecret(database.knex, project.id, id, record, hours * 3_600_000), 'endpoint', id);
      return {
        message: 'secret rotated; keep the new one, it is not shown again',
        data: await viewNow(call, row, { id: record.id, secret }),
      };
    },
  ),
];

async function find({ database, project, id }: ProjectCall): Promise<EndpointRow> {
  return found(await findEndpoint(database.knex, project.id, id), 'endpoint', id);
}

/** Throws `project_full`. What is written at the same time is not counted. */
async function requireCertificateRoom({ database, project, config }: ProjectCall): Promise<void> {
  const { client_certificates_per_project: max } = config.limits;
  const full = { things: 'client certificates', max, setting: 'limits.client_certificates_per_project' };
  if ((await countClientCertificates(database.knex, project.id)) >= max) throw new GatewayError('project_full', full);
}

async function setStatus({ database, project, id }: ProjectCall, status: Parameters<typeof setEndpointStatus>[3]): Promise<EndpointRow> {
  return found(await setEndpointStatus(database.knex, project.id, id, status), 'endpoint', id);
}

/** Null for each while KV is away. */
async function readBreakersNow(kv: Kv): Promise<(endpointId: string) => BreakerView | null> {
  try {
    const records = await withTimeout(readBreakers(kv), BREAKERS_READ_MS);
    return (endpointId) => breakerView(records.get(endpointId));
  } catch {
    return () => null;
  }
}

/** Closes the breaker of the endpoint and sends what waits for it. Throws `kv_away`; the place and the reason go to the log only. */
async function reset({ kv, config, log, database, project, id }: ProjectCall): Promise<void> {
  try {
    await withTimeout(resetBreaker(kv, id), BREAKER_RESET_MS);
  } catch (cause) {
    log.warn({ endpoint_id: id, error: explainKvError(cause, config.kv) }, 'KV is away: a circuit breaker could not be closed.');
    throw new GatewayError('kv_away', { outcome: 'the circuit breaker is as it was', retryAfterSeconds: RETRY_AFTER_SECONDS }, { cause });
  }
  await expediteDeliveries(database.pool, { projectId: project.id, endpointId: id }, ['breaker']);
}

const DEFAULTS = {
  owner_id: null,
  description: '',
  authentication: null,
  timeout_ms: TIMEOUT_SECONDS * 1000,
  concurrency: null,
  strategy: null,
} as const;

type Given = Static<typeof ChangedEndpoint>;

function columnsOf(
  { http_timeout, authentication, mtls_client_cert: certificate, ...plain }: Given,
  stored: EndpointRow | undefined,
  { sealer, id }: Pick<ProjectCall, 'sealer' | 'id'>,
): Partial<EndpointFields> {
  const sealed = authentication && sealAuthentication(authentication as EndpointAuthentication, stored?.authentication ?? null, id, sealer);
  if (authentication && !sealed) {
    const sentence = 'holds the mask of a secret, but none is stored; give the secret itself';
    assertValid([{ field: `authentication.${authentication.type}`, sentence }]);
  }
  return {
    ...plain,
    ...(http_timeout === undefined ? {} : { timeout_ms: Math.round(http_timeout * 1000) }),
    ...(authentication === undefined ? {} : { authentication: sealed ?? null }),
    ...(certificate === undefined
      ? {}
      : { mtls_client_cert: certificate && sealCertificate(certificate, stored?.mtls_client_cert ?? null, id, sealer) }),
  };
}

function fieldProblems({ url, authentication }: Given): InvalidField[] {
  return [...(url === undefined ? [] : urlProblems(url)), ...(authentication ? authenticationProblems(authentication) : [])];
}

/** A stored secret is not sent to another origin: whoever may change the URL need not know it. */
function movedProblems({ url, authentication: given }: Given, stored: EndpointRow): InvalidField[] {
  const { authentication: before } = stored;
  const isKept = given === undefined || (given && isMasked(given as EndpointAuthentication));
  if (!before || !isKept) return [];
  const moved = (field: string, from: string, to: string | undefined) => {
    const { origin } = new URL(from);
    if (to === undefined || new URL(to).origin === origin) return [];
    const sentence = `is not sent to another origin than ${origin}: ${field} changes; give the secret again, or null as authentication to remove it`;
    return [{ field: `authentication.${before.type}`, sentence }];
  };
  const tokens = before.type === 'oauth2' ? moved('authentication.oauth2.url', before.oauth2.url, given?.oauth2?.url) : [];
  return [...moved('url', stored.url, url), ...tokens];
}

function urlProblems(text: string, field = 'url'): InvalidField[] {
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
  const check = (ok: boolean, field: string, sentence: string) => {
    if (!ok) problems.push({ field: `authentication.${field}`, sentence });
  };
  check(objects[type] !== undefined, type, 'is missing');
  for (const name of Object.keys(objects)) check(name === type, name, `does not belong to the type ${type}`);
  const cannotCarry = 'holds characters that HTTP cannot carry';
  if (objects.api_key) {
    const { header_name: name, header_value: value } = objects.api_key;
    check(isHeaderName(name), 'api_key.header_name', 'must be the name of a header');
    check(!isReservedHeader(name), 'api_key.header_name', 'is a header that the gateway or the connection sets');
    check(isHeaderValue(value), 'api_key.header_value', cannotCarry);
  }
  if (objects.oauth2) problems.push(...urlProblems(objects.oauth2.url, 'authentication.oauth2.url'));
  if (objects.bearer) check(isHeaderValue(objects.bearer.token), 'bearer.token', cannotCarry);
  return problems;
}

function secretProblems(secret: string): InvalidField[] {
  const sentence = secretProblem(secret);
  return sentence === undefined ? [] : [{ field: 'secret', sentence }];
}
