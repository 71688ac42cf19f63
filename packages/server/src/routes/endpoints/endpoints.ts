import { Type } from '@sinclair/typebox';
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
  sealSecret,
  setEndpointStatus,
  updateEndpoint,
  type EndpointRow,
} from '@gateway/store/config';
import { expediteDeliveries, inactiveReasonOf } from '@gateway/store/deliveries';
import type { BreakerView } from '@gateway/store/kv';
import { found, listRoute, projectRoute, type ProjectCall, type Route } from '../../api/route.js';
import { pageQuery, searchQuery, sortQuery } from '../../http/list-query.js';
import { assertValid, object, oneOf, Word } from '../../http/schema.js';
import { settle } from '../settle.js';
import { closeBreaker, readBreakersNow } from './breakers.js';
import { certificateProblems, certificateView } from './client-certificate.js';
import { columnsOf, fieldProblems, movedProblems, secretProblems } from './endpoint-fields.js';
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
): unknown {
  const { id, secrets, authentication, mtls_client_cert: certificate, timeout_ms, ...plain } = row;
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
    circuit_breaker: breaker,
  };
}

async function viewNow(call: ProjectCall, row: EndpointRow, shown?: ShownSecret): Promise<unknown> {
  const breakers = await readBreakersNow(call.kv, [row.id]);
  return view(row, breakers.of(row.id), call, shown);
}

export const endpointRoutes: readonly Route[] = [
  projectRoute(
    'POST /endpoints',
    'Creates an endpoint. Only this response contains its secret.',
    { body: NewEndpoint, data: Endpoint, status: 201, portal: 'managing' },
    async (call) => {
      const { secret = generateSecret(), ...rest } = call.body;
      assertValid([
        ...fieldProblems(rest),
        ...secretProblems(secret),
        ...certificateProblems(rest),
        ...portalProblems(NewEndpoint, call),
      ]);
      if (rest.mtls_client_cert) await requireCertificateRoom(call);
      const id = newId();
      const record = sealSecret(secret, id, call.sealer);
      const owner = call.ownerId === undefined ? {} : { owner_id: call.ownerId };
      const { name, url } = rest;
      const columns = { ...columnsOf(rest, undefined, { ...call, id }), ...owner };
      const fields = { ...columns, id, name, url, secrets: [record] };
      const { endpoints_per_project: max, endpoints_per_owner: ofOwner } = call.config.limits;
      const share =
        call.ownerId === undefined ? undefined : { ownerId: call.ownerId, max: ofOwner };
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
    (shown) => shown,
  ),
  projectRoute(
    'GET /endpoints/:id',
    'Shows an endpoint.',
    { data: Endpoint, portal: 'any' },
    async (call) => ({
      message: 'endpoint',
      data: await viewNow(call, await find(call)),
    }),
  ),
  projectRoute(
    'PUT /endpoints/:id',
    'Updates the given fields of an endpoint; null clears a field. If the origin of the URL changes, give the authentication and the client key again.',
    { body: ChangedEndpoint, data: Endpoint, portal: 'managing' },
    async (call) => {
      const { database, project, id, body } = call;
      assertValid([...fieldProblems(body), ...portalProblems(ChangedEndpoint, call)]);
      const stored = await find(call);
      const { url, authentication, mtls_client_cert } = stored;
      assertValid([...movedProblems(body, stored), ...certificateProblems(body, stored)]);
      if (body.mtls_client_cert && !mtls_client_cert) await requireCertificateRoom(call);
      const columns = columnsOf(body, stored, call);
      // Written together, so that a concurrent change cannot combine a secret with another URL.
      if (columns.url !== undefined || columns.authentication || columns.mtls_client_cert)
        Object.assign(columns, { url, authentication, mtls_client_cert, ...columns });
      const row = found(
        await updateEndpoint(database.knex, project.id, id, columns),
        'endpoint',
        id,
      );
      // The new URL may be healthy, so the breaker is closed. If KV is unavailable, the breaker
      // stays as it is until its next probe.
      if (row.url !== url) await closeBreaker(call).catch(() => undefined);
      if (body.rate_limit !== undefined || body.rate_limit_duration !== undefined)
        await expediteDeliveries(call.planes, { projectId: project.id, endpointId: id }, [
          'rate_limit',
        ]);
      return { message: 'endpoint updated', data: await viewNow(call, row) };
    },
  ),
  projectRoute(
    'DELETE /endpoints/:id',
    'Deletes an endpoint and its subscriptions, and discards its waiting deliveries.',
    { portal: 'managing' },
    async (call) => {
      const isDeleted = await deleteEndpoint(call.database.knex, call.project.id, call.id);
      await settle(call, call.id);
      found(isDeleted, 'endpoint', call.id);
      return { message: 'endpoint deleted', data: null };
    },
  ),
  projectRoute(
    'PUT /endpoints/:id/pause',
    'Pauses an endpoint and holds its deliveries.',
    { data: Endpoint, portal: 'managing' },
    async (call) => {
      const row = await setStatus(call, {
        status: 'paused',
        reason: 'The endpoint was paused over the API.',
      });
      await settle(call, row.id);
      return { message: 'endpoint paused', data: await viewNow(call, row) };
    },
  ),
  projectRoute(
    'POST /endpoints/:id/activate',
    'Activates a paused or inactive endpoint and sends its held deliveries.',
    { data: Endpoint, portal: 'managing' },
    async (call) => {
      const row = await setStatus(call, { status: 'active', reason: null });
      await settle(call, row.id);
      return { message: 'endpoint activated', data: await viewNow(call, row) };
    },
  ),
  projectRoute(
    'POST /endpoints/:id/reset_circuit_breaker',
    'Closes the circuit breaker of an endpoint and sends the deliveries that wait for it.',
    { data: Endpoint, portal: 'managing' },
    async (call) => {
      const row = await find(call);
      await closeBreaker(call);
      return { message: 'circuit breaker closed', data: await viewNow(call, row) };
    },
  ),
  projectRoute(
    'PUT /endpoints/:id/expire_secret',
    'Rotates the secret of an endpoint. The old secrets keep signing for `expiration` hours. Only this response contains the new secret.',
    { body: NewSecret, data: Endpoint, portal: 'managing' },
    async (call) => {
      const { database, project, sealer, id } = call;
      const { secret = generateSecret(), expiration: hours = 24 } = call.body;
      assertValid(secretProblems(secret));
      // Opening a stored secret proves that this is the encryption key of the agents.
      for (const { value } of (await find(call)).secrets.slice(0, 1))
        sealer.open(value, ['endpoints', id, 'secrets']);
      const record = sealSecret(secret, id, sealer);
      const row = found(
        await rotateSecret(database.knex, project.id, id, record, hours * 3_600_000),
        'endpoint',
        id,
      );
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

/** Throws `project_full`. Concurrent writes are not counted and can exceed the maximum. */
async function requireCertificateRoom({ database, project, config }: ProjectCall): Promise<void> {
  const { client_certificates_per_project: max } = config.limits;
  const full = {
    things: 'client certificates',
    max,
    setting: 'limits.client_certificates_per_project',
  };
  if ((await countClientCertificates(database.knex, project.id)) >= max)
    throw new GatewayError('project_full', full);
}

async function setStatus(
  { database, project, id }: ProjectCall,
  status: Parameters<typeof setEndpointStatus>[3],
): Promise<EndpointRow> {
  return found(await setEndpointStatus(database.knex, project.id, id, status), 'endpoint', id);
}
