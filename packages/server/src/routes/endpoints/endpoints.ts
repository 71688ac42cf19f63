import { GatewayError } from '@gateway/core/errors';
import { newId } from '@gateway/core/events';
import {
  countClientCertificates,
  deleteEndpoint,
  endpointIds,
  ENDPOINT_SORTS,
  findEndpoint,
  generateSecret,
  insertEndpoint,
  listEndpoints,
  rotateSecret,
  sealKey,
  sealSecret,
  setEndpointStatus,
  updateEndpoint,
  updateWithKey,
  type EndpointRow,
} from '@gateway/store/config';
import { expediteDeliveries, inactiveReasonOf } from '@gateway/store/deliveries';
import type { BreakerView } from '@gateway/store/kv';
import {
  assertValid,
  found,
  listRoute,
  object,
  oneOf,
  pageQuery,
  projectItem,
  searchQuery,
  sortQuery,
  Type,
  Word,
  type ProjectCall,
  type Route,
} from '../../api/vocabulary.js';
import { settle } from '../settle.js';
import { closeBreaker, readBreakersNow, readConcurrencyNow } from './breakers.js';
import { batchProblems } from './batch.js';
import { certificateProblems, certificateView } from './client-certificate.js';
import {
  columnsOf,
  fieldProblems,
  movedProblems,
  secretProblems,
  withSecretUrl,
} from './endpoint-fields.js';
import {
  BREAKER_STATES,
  ChangedEndpoint,
  Endpoint,
  NewEndpoint,
  NewSecret,
  STATUSES,
} from './endpoint-schema.js';
import { authenticationView, secretViews, type ShownSecret } from './endpoint-secrets.js';
import { portalProblems } from './portal-fields.js';
import { headerProblems, headersView } from './static-headers.js';

const ListQuery = object({
  ...pageQuery,
  ...sortQuery(
    Object.keys(ENDPOINT_SORTS) as (keyof typeof ENDPOINT_SORTS)[],
    '`failures` are the failed requests of the last day.',
  ),
  q: Type.Optional({
    ...searchQuery.q,
    description: 'Part of the name, URL or owner id, ignoring case.',
  }),
  ownerId: Type.Optional(Word),
  status: Type.Optional(oneOf(STATUSES)),
  circuitBreaker: Type.Optional(
    Type.Array(oneOf(BREAKER_STATES), {
      description: 'States of the circuit breaker. Returns 503 while KV is unavailable.',
    }),
  ),
});

function view(
  row: EndpointRow,
  breaker: BreakerView | null,
  { ownerId }: Pick<ProjectCall, 'ownerId'>,
  shown?: ShownSecret,
  concurrency: number | null = null,
): unknown {
  const { id, secrets, authentication, headers, timeout_ms, ...others } = row;
  const { mtls_client_cert: certificate, ...plain } = others;
  return {
    uid: id,
    ...plain,
    // For operators.
    status_reason: ownerId === undefined ? row.status_reason : null,
    inactive_reason: row.status === 'inactive' ? inactiveReasonOf(row.status_reason) : null,
    http_timeout: timeout_ms / 1000,
    secrets: secretViews(secrets, shown),
    authentication: authenticationView(authentication),
    mtls_client_cert: certificateView(certificate),
    headers: headersView(headers),
    circuit_breaker: breaker,
    current_concurrency: concurrency,
  };
}

/** `shown` is a secret that no other response contains. */
async function viewNow(row: EndpointRow, call: ProjectCall, shown?: ShownSecret): Promise<unknown> {
  const [breakers, concurrency] = await Promise.all([
    readBreakersNow(call.kv, [row.id]),
    readConcurrencyNow(call.kv, row.id),
  ]);
  return view(row, breakers.of(row.id), call, shown, concurrency);
}

interface WithSecret {
  readonly row: EndpointRow;
  readonly shown: ShownSecret;
}

const viewWithSecret = ({ row, shown }: WithSecret, call: ProjectCall) => viewNow(row, call, shown);

const item = { thing: 'endpoint', data: Endpoint, portal: 'any' } as const;
const managed = { thing: 'endpoint', data: Endpoint, portal: 'managing' } as const;

export const endpointRoutes: readonly Route[] = [
  projectItem(
    'POST /endpoints',
    'Creates an endpoint. Only this response contains its secret.',
    {
      ...managed,
      message: 'endpoint created; keep the secret, it is not shown again',
      body: NewEndpoint,
      status: 201,
    },
    async (call) => {
      const { body, config, database, ownerId, project, sealer } = call;
      const { secret = generateSecret(), ...given } = body;
      const rest = withSecretUrl(given);
      assertValid([
        ...fieldProblems(rest),
        ...secretProblems(secret),
        ...certificateProblems(rest),
        ...headerProblems({ ...NO_HEADERS, ...rest }),
        ...batchProblems(rest),
        ...portalProblems(NewEndpoint, call),
      ]);
      if (rest.mtls_client_cert) await requireCertificateRoom(call);
      const id = newId();
      const sealed = sealSecret(secret, id, sealer);
      const record = hasKey(rest) ? { ...sealed, ed25519: sealKey(id, sealer) } : sealed;
      const { name, url } = rest;
      const columns = columnsOf(rest, undefined, { ...call, id });
      const fields = {
        ...columns,
        ...(ownerId !== undefined && { owner_id: ownerId }),
        id,
        name,
        url,
        secrets: [record],
      };
      const { endpoints_per_project: max, endpoints_per_owner: ofOwner } = config.limits;
      const share = ownerId === undefined ? undefined : { ownerId, max: ofOwner };
      const row = await insertEndpoint(database.knex, project.id, fields, max, share);
      return { row, shown: { id: record.id, secret } };
    },
    viewWithSecret,
  ),
  listRoute(
    '/endpoints',
    'Lists endpoints.',
    { query: ListQuery, title: 'endpoints', data: Endpoint, portal: 'any' },
    async (call, request) => {
      const { database, planes, kv, project, query, ownerId = query.ownerId } = call;
      const { status, q, circuitBreaker: states } = query;
      // Only the project's own, because a tenant may have thousands of open breakers.
      const among =
        states &&
        (await readBreakersNow(kv, await endpointIds(database.knex, project.id))).among(states);
      const page = await listEndpoints(
        { knex: database.knex, data: planes.data },
        project.id,
        { owner_id: ownerId, status },
        request,
        q,
        among,
      );
      const breakers = await readBreakersNow(
        kv,
        page.content.map(({ id }) => id),
      );
      return { ...page, content: page.content.map((row) => view(row, breakers.of(row.id), call)) };
    },
  ),
  projectItem('GET /endpoints/:id', 'Shows an endpoint.', item, find, viewNow),
  projectItem(
    'PUT /endpoints/:id',
    'Updates the given fields of an endpoint; null clears a field. If the origin of the URL changes, give the authentication and the client key again.',
    { ...managed, body: ChangedEndpoint },
    async (call) => {
      const { database, project, id, sealer } = call;
      assertValid([...fieldProblems(call.body), ...portalProblems(ChangedEndpoint, call)]);
      const stored = await find(call);
      const body = withSecretUrl(call.body, stored);
      const { url, authentication, mtls_client_cert, headers } = stored;
      assertValid([
        ...movedProblems(body, stored),
        ...certificateProblems(body, stored),
        ...headerProblems({ ...stored, headers: headersView(headers), ...body }, stored),
        ...batchProblems({ ...stored, ...body }),
      ]);
      if (body.mtls_client_cert && !mtls_client_cert) await requireCertificateRoom(call);
      const columns = columnsOf(body, stored, call);
      // Written together, so that a concurrent change cannot combine a secret with another URL.
      const isTogether = columns.authentication || columns.mtls_client_cert || columns.headers;
      if (columns.url !== undefined || isTogether)
        Object.assign(columns, { url, authentication, mtls_client_cert, headers, ...columns });
      const row = hasKey(columns)
        ? await updateWithKey(database.knex, project.id, id, columns, () => sealKey(id, sealer))
        : await updateEndpoint(database.knex, project.id, id, columns);
      // The new URL may be healthy, so the breaker is closed. If KV is unavailable, the breaker
      // stays as it is until its next probe.
      if (row && row.url !== url) await closeBreaker(call).catch(() => undefined);
      if (row && (body.rate_limit !== undefined || body.rate_limit_duration !== undefined))
        await expediteDeliveries(call.planes, { projectId: project.id, endpointId: id }, [
          'rate_limit',
        ]);
      return row;
    },
    viewNow,
  ),
  projectItem(
    'DELETE /endpoints/:id',
    'Deletes an endpoint and its subscriptions, and discards its waiting deliveries.',
    { thing: 'endpoint', portal: 'managing' },
    async (call) => {
      const isDeleted = await deleteEndpoint(call.database.knex, call.project.id, call.id);
      await settle(call, call.id);
      return isDeleted;
    },
  ),
  projectItem(
    'PUT /endpoints/:id/pause',
    'Pauses an endpoint and holds its deliveries.',
    { ...managed, message: 'endpoint paused' },
    (call) =>
      setStatus(call, { status: 'paused', reason: 'The endpoint was paused over the API.' }),
    viewNow,
  ),
  projectItem(
    'POST /endpoints/:id/activate',
    'Activates a paused or inactive endpoint and sends its held deliveries.',
    { ...managed, message: 'endpoint activated' },
    (call) => setStatus(call, { status: 'active', reason: null }),
    viewNow,
  ),
  projectItem(
    'POST /endpoints/:id/reset_circuit_breaker',
    'Closes the circuit breaker of an endpoint and sends the deliveries that wait for it.',
    { ...managed, message: 'circuit breaker closed' },
    async (call) => {
      const row = await find(call);
      await closeBreaker(call);
      return row;
    },
    viewNow,
  ),
  projectItem(
    'PUT /endpoints/:id/expire_secret',
    'Rotates the secret of an endpoint, and its key if it has one. The old ones keep signing for `expiration` hours. Only this response contains the new secret.',
    {
      ...managed,
      message: 'secret rotated; keep the new one, it is not shown again',
      body: NewSecret,
    },
    async (call) => {
      const { database, project, sealer, id } = call;
      const { secret = generateSecret(), expiration: hours = 24 } = call.body;
      assertValid(secretProblems(secret));
      // Opening a stored secret proves that this is the encryption key of the agents.
      const stored = await find(call);
      for (const { value } of stored.secrets.slice(0, 1))
        sealer.open(value, ['endpoints', id, 'secrets']);
      const sealed = sealSecret(secret, id, sealer);
      const record = hasKey(stored) ? { ...sealed, ed25519: sealKey(id, sealer) } : sealed;
      const row = await rotateSecret(database.knex, project.id, id, record, hours * 3_600_000);
      return row && { row, shown: { id: record.id, secret } };
    },
    viewWithSecret,
  ),
];

const NO_HEADERS = { headers: null, authentication: null, signature_prefix: null };

function hasKey({
  signatures,
}: {
  readonly signatures?: readonly string[] | null | undefined;
}): boolean {
  return signatures?.some((scheme) => scheme.endsWith('ed25519')) ?? false;
}

async function find({ database, project, id }: ProjectCall): Promise<EndpointRow> {
  return found(await findEndpoint(database.knex, project.id, id), 'endpoint', id);
}

/** Throws `project_full`. Concurrent writes are not counted and can exceed the maximum. */
async function requireCertificateRoom({ database, project, config }: ProjectCall): Promise<void> {
  const { client_certificates_per_project: max } = config.limits;
  const setting = 'limits.client_certificates_per_project';
  if ((await countClientCertificates(database.knex, project.id)) >= max)
    throw new GatewayError('project_full', { things: 'client certificates', max, setting });
}

async function setStatus(
  call: ProjectCall,
  status: Parameters<typeof setEndpointStatus>[3],
): Promise<EndpointRow | undefined> {
  const row = await setEndpointStatus(call.database.knex, call.project.id, call.id, status);
  if (row) await settle(call, row.id);
  return row;
}
