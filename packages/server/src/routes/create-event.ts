import type { IncomingHttpHeaders } from 'node:http';
import { isGatewayError, type InvalidField } from '@gateway/core/errors';
import { customHeaderProblem, MESSAGE_TYPE_HEADER, travellingHeaders } from '@gateway/core/events';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { carryTrace, creationErrorSpan, creationSpan, endSpan, isSampled, openSpanTracer, traceContextOf } from '@gateway/core/tracing';
import { createEvent as insertEvent, encodeSignal, type MessageType } from '@gateway/store/events';
import { measureIngest } from '../api/measure.js';
import type { ProjectCall } from '../api/route.js';
import type { Answer } from '../http/response.js';
import { assertValid } from '../http/validate.js';

interface EventBody {
  readonly event_type: string;
  readonly custom_headers?: Readonly<Record<string, string>>;
  readonly idempotency_key?: string;
}

/**
 * Commits an event, then signals it to the create-event queue without waiting: KV may be down. Answers 200 with the first event if the
 * idempotency key is taken. Throws `invalid_request` for wrong headers, or data of more than `ingest.max_message_bytes`.
 */
export async function createEvent(
  { database, config, plugins, usage, kv, log, project, body, raw, headers: requestHeaders }: ProjectCall<EventBody>,
  target: { messageType: MessageType; endpointId: string | null; ownerId: string | null },
): Promise<Answer> {
  const { custom_headers: custom = {}, event_type: eventType, idempotency_key: idempotencyKey = null } = body;
  const { max_message_bytes: limit, idempotency_window_seconds: windowSeconds } = config.ingest;
  const problems = headerProblems(custom);
  if (Buffer.byteLength(raw) > limit)
    problems.push({ field: 'data', sentence: `has more than ${limit} bytes, which is ingest.max_message_bytes` });
  const projectId = project.id;
  const headers = travellingHeaders({}, custom);
  const dynamic = target.messageType === 'single' && target.endpointId === null;
  const event = { projectId, ...target, eventType, idempotencyKey, headers, data: raw };
  const { id, duplicate } = await traceCreation(plugins, { projectId, eventType, dynamic, requestHeaders, headers }, () => {
    assertValid(problems);
    return measureIngest(plugins, projectId, () => insertEvent(database.pool, event, windowSeconds));
  });
  if (duplicate) return { status: 200, message: 'an event with this idempotency key is there already', data: { uid: id, duplicate } };
  usage.event(projectId, raw);
  // Not awaited: the reconciler finds an event whose signal is lost.
  kv.queue('create-event')
    .push([encodeSignal({ projectId, id })])
    .catch((error: unknown) => log.debug({ error }, 'KV is away: a created event is routed by the reconciler, a few seconds later.'));
  return { message: 'event created', data: { uid: id, duplicate } };
}

function headerProblems(custom: Readonly<Record<string, string>>): InvalidField[] {
  return Object.entries(custom).flatMap(([name, value]) => {
    const field = `custom_headers.${name}`;
    if (name.toLowerCase() === MESSAGE_TYPE_HEADER)
      return [{ field, sentence: 'is decided by the route here: /events, /events/fanout or /events/broadcast' }];
    const sentence = customHeaderProblem(name, value);
    return sentence === undefined ? [] : [{ field, sentence }];
  });
}

interface Creation {
  readonly projectId: string;
  readonly eventType: string;
  readonly dynamic: boolean;
  readonly requestHeaders: IncomingHttpHeaders;
  readonly headers: Record<string, string>;
}

/** Creates an event after the headers got the trace context. With a tracer, its trace continues that of the request or of its headers, or starts here. */
export async function traceCreation<Created extends { readonly id: string; readonly duplicate: boolean }>(
  { tracer: active }: Pick<ActivatedPlugins, 'tracer'>,
  { projectId, eventType, dynamic, requestHeaders, headers }: Creation,
  create: () => Promise<Created>,
): Promise<Created> {
  if (!active) return create();
  const parent = traceContextOf(traceHeaders(requestHeaders)) ?? traceContextOf(headers);
  if (parent && !isSampled(parent)) {
    carryTrace(headers, parent);
    return create();
  }
  const tracer = openSpanTracer();
  const startedAtMs = Date.now();
  const place = { 'gateway.project': projectId, 'gateway.event_type': eventType };
  const open = tracer.start(creationSpan(dynamic), { startedAtMs, parent });
  carryTrace(headers, open.context);
  try {
    const created = await create();
    // The span of a duplicate is never ended, so it is never exported.
    if (open.recording && !created.duplicate)
      endSpan(open, { attributes: { ...place, 'gateway.event': created.id }, endedAtMs: Date.now() });
    return created;
  } catch (error) {
    const span = tracer.start(creationErrorSpan(dynamic), { startedAtMs, parent });
    if (span.recording) endSpan(span, { ...failure(error, place), endedAtMs: Date.now() });
    throw error;
  }
}

function traceHeaders({ traceparent, tracestate }: IncomingHttpHeaders): Record<string, string> {
  return {
    ...(typeof traceparent === 'string' ? { traceparent } : {}),
    ...(tracestate === undefined ? {} : { tracestate: String(tracestate) }),
  };
}

/** Error messages are not exported: they may quote the request. */
function failure(error: unknown, place: { 'gateway.project': string; 'gateway.event_type': string }) {
  if (isGatewayError(error)) {
    // The caller's mistake, reported to the caller: not an exception.
    const { code } = error;
    return { attributes: { ...place, 'gateway.code': code }, error: { type: code, sentence: 'The API rejected the event.', told: true } };
  }
  const { code } = (error ?? {}) as { code?: unknown };
  return { attributes: place, error: { type: typeof code === 'string' ? code : 'error', sentence: 'The event could not be stored.' } };
}
