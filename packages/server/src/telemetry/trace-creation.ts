import type { IncomingHttpHeaders } from 'node:http';
import { isGatewayError } from '@gateway/core/errors';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import { carryTrace, creationErrorSpan, creationSpan, endSpan, isSampled, openSpanTracer, traceContextOf } from '@gateway/core/tracing';

/** What became of the creation of an event over the API. */
interface Created {
  readonly id: string;
  readonly duplicate: boolean;
}

interface Creation {
  readonly projectId: string;
  readonly eventType: string;
  /** Its endpoints are to be found by matching subscriptions. */
  readonly dynamic: boolean;
  readonly requestHeaders: IncomingHttpHeaders;
  /** Headers of the event: the trace goes on in them, from the span of its creation. */
  readonly headers: Record<string, string>;
}

/**
 * Makes an event that is created over the API. With a tracer, its trace begins here, or goes on from what the request or the headers of the event
 * tell of; without one, the event is only made.
 *
 * @param make makes it, with the headers as they are by then
 */
export async function traceCreation<Made extends Created>(
  { tracer: active }: Pick<ActivatedPlugins, 'tracer'>,
  { projectId, eventType, dynamic, requestHeaders, headers }: Creation,
  make: () => Promise<Made>,
): Promise<Made> {
  if (!active) return make();
  const parent = traceContextOf(traceHeaders(requestHeaders)) ?? traceContextOf(headers);
  if (parent && !isSampled(parent)) {
    carryTrace(headers, parent);
    return make();
  }
  const tracer = openSpanTracer();
  const startedAtMs = Date.now();
  const place = { 'gateway.project': projectId, 'gateway.event_type': eventType };
  const open = tracer.start(creationSpan(dynamic), { startedAtMs, parent });
  carryTrace(headers, open.context);
  try {
    const created = await make();
    // A span of an event that was there already is never ended, so it is never seen.
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

/** Neither sentence of an error goes on: they may name what the request holds. */
function failure(error: unknown, place: { 'gateway.project': string; 'gateway.event_type': string }) {
  // The caller's mistake, who is told: nothing that an operator should be woken for.
  if (isGatewayError(error)) {
    const { code } = error;
    return { attributes: { ...place, 'gateway.code': code }, error: { type: code, sentence: 'The API refused the event.', told: true } };
  }
  const { code } = (error ?? {}) as { code?: unknown };
  return { attributes: place, error: { type: typeof code === 'string' ? code : 'error', sentence: 'The event could not be stored.' } };
}
