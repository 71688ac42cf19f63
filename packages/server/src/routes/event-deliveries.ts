import { Type } from '@sinclair/typebox';
import { GatewayError } from '@gateway/core/errors';
import {
  findDeliveryAttempt,
  findEventDelivery,
  listDeliveryAttempts,
  listEventDeliveries,
  resendEventDelivery,
  type DeliveryAttemptRow,
  type EventDeliveryRow,
} from '@gateway/store/deliveries';
import { pageQuery, pageRequest, pageView } from '../http/pagination.js';
import type { Parts } from '../http/server-context.js';
import { RawJson } from '../http/raw-json.js';
import { projectRoute, type ProjectCall, type Route } from '../http/route.js';
import { closed, Id, oneOf } from '../http/schema.js';
import { span, spanQuery } from '../http/time-span.js';

const STATUSES = ['scheduled', 'processing', 'retry', 'success', 'failure', 'discarded'] as const;

const DeliveryQuery = Type.Object(
  {
    ...pageQuery,
    ...spanQuery,
    status: Type.Optional(Type.Array(oneOf(STATUSES))),
    endpointId: Type.Optional(Id),
    eventId: Type.Optional(Id),
  },
  closed,
);
const ResendQuery = Type.Object({ force: Type.Optional(Type.Boolean({ description: 'Also sends again what was delivered.' })) }, closed);

function view({
  id,
  event_id,
  event_type,
  endpoint_id,
  endpoint_name,
  endpoint_url,
  endpoint_status,
  next_attempt_at,
  ...row
}: EventDeliveryRow): unknown {
  return {
    uid: id,
    ...row,
    event_id,
    endpoint_id,
    // Held deliveries have no time; the status of the endpoint tells why.
    next_attempt_at: next_attempt_at instanceof Date ? next_attempt_at : null,
    event_metadata: { uid: event_id, event_type },
    endpoint_metadata: { uid: endpoint_id, name: endpoint_name, url: endpoint_url, status: endpoint_status },
  };
}

/** The response body is cut to `max_response_size`: what an agent with a larger one, or an earlier one, has stored is not shown whole. */
function attemptView({ id, response_headers, response_body, error_class, ...row }: DeliveryAttemptRow, { config }: Parts): unknown {
  return {
    uid: id,
    ...row,
    response_body: response_body === null ? null : firstBytes(response_body, config.max_response_size * 1024),
    status: error_class === null,
    error_class,
    response_headers: response_headers === null ? null : new RawJson(response_headers),
  };
}

export const eventDeliveryRoutes: readonly Route[] = [
  projectRoute(
    { method: 'get', path: '/eventdeliveries', summary: 'Lists event deliveries by the time of their messages.', query: DeliveryQuery },
    async (call) => {
      const { parts, project, query } = call;
      const request = pageRequest(query);
      const { status: statuses, endpointId, eventId } = query;
      const page = await listEventDeliveries(parts.database.pool, project.id, { statuses, endpointId, eventId, ...span(query) }, request);
      return { message: 'event deliveries', data: pageView(page, request, view) };
    },
  ),
  projectRoute({ method: 'get', path: '/eventdeliveries/:id', summary: 'Shows an event delivery.' }, async (call) => ({
    message: 'event delivery',
    data: view(await find(call)),
  })),
  projectRoute(
    { method: 'get', path: '/eventdeliveries/:id/deliveryattempts', summary: 'Lists the attempts of a delivery, newest first.' },
    async (call) => {
      const { id } = await find(call);
      const attempts = await listDeliveryAttempts(call.parts.database.pool, call.project.id, id);
      return { message: 'delivery attempts', data: { content: attempts.map((row) => attemptView(row, call.parts)) } };
    },
  ),
  projectRoute(
    { method: 'get', path: '/eventdeliveries/:id/deliveryattempts/:attempt_id', summary: 'Shows a delivery attempt.' },
    async ({ parts, project, params }) => {
      const { id = '', attempt_id: attemptId = '' } = params;
      const row = await findDeliveryAttempt(parts.database.pool, project.id, id, attemptId);
      if (!row) throw new GatewayError('not_found', { thing: 'delivery attempt', id: attemptId });
      return { message: 'delivery attempt', data: attemptView(row, parts) };
    },
  ),
  projectRoute(
    {
      method: 'put',
      path: '/eventdeliveries/:id/resend',
      summary: 'Sends a delivery again that has failed or was discarded.',
      query: ResendQuery,
    },
    async (call) => {
      const { parts, project, query } = call;
      const delivery = await find(call);
      const refusal = resendRefusal(delivery, query.force === true);
      if (refusal) throw new GatewayError('conflict', refusal);
      const from = query.force ? (['failure', 'discarded', 'success'] as const) : (['failure', 'discarded'] as const);
      if (!(await resendEventDelivery(parts.database.pool, project.id, delivery.id, from))) {
        throw new GatewayError('conflict', { sentence: 'the event delivery has just changed its status' });
      }
      return { message: 'event delivery scheduled', data: view(await find(call)) };
    },
  ),
];

/** As much of a text as fits into so many bytes of UTF-8, to the end of a character. */
function firstBytes(text: string, max: number): string {
  const bytes = Buffer.from(text);
  return bytes.length <= max ? text : new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, max), { stream: true });
}

async function find({ parts, project, params }: ProjectCall): Promise<EventDeliveryRow> {
  const { id = '' } = params;
  const row = await findEventDelivery(parts.database.pool, project.id, id);
  if (!row) throw new GatewayError('not_found', { thing: 'event delivery', id });
  return row;
}

function resendRefusal({ status, endpoint_status }: EventDeliveryRow, isForced: boolean): { sentence: string; fix: string } | undefined {
  if (endpoint_status === 'deleted') return { sentence: 'its endpoint was deleted', fix: 'send the event to another endpoint' };
  if (endpoint_status === 'inactive') return { sentence: 'its endpoint is inactive', fix: 'activate the endpoint first' };
  switch (status) {
    case 'failure':
    case 'discarded':
      return undefined;
    case 'success':
      return isForced ? undefined : { sentence: 'the event delivery was delivered already', fix: 'add ?force=true to send it again' };
    case 'scheduled':
    case 'processing':
    case 'retry':
      return { sentence: `the event delivery is ${status}: it will be attempted without this`, fix: 'wait for the attempt' };
  }
}
