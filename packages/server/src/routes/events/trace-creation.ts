import type { IncomingHttpHeaders } from 'node:http';
import { isGatewayError } from '@gateway/core/errors';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import {
  carryTrace,
  creationErrorSpan,
  creationSpan,
  endSpan,
  isSampled,
  openSpanTracer,
  traceContextOf,
} from '@gateway/core/tracing';

interface CreationTrace {
  readonly projectId: string;
  readonly eventType: string;
  readonly dynamic: boolean;
  readonly requestHeaders: IncomingHttpHeaders;
  readonly headers: Record<string, string>;
}

/**
 * If a tracer is active, the event's headers first get a trace context that continues the trace of
 * the request or of those headers.
 */
export async function traceCreation<
  Created extends { readonly id: string; readonly duplicate: boolean },
>(
  { tracer: active }: Pick<ActivatedPlugins, 'tracer'>,
  { projectId, eventType, dynamic, requestHeaders, headers }: CreationTrace,
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
    // The span of a duplicate is never ended, and so never exported.
    if (open.recording && !created.duplicate)
      endSpan(open, {
        attributes: { ...place, 'gateway.event': created.id },
        endedAtMs: Date.now(),
      });
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

/** Omits the error message, which can quote the request. */
function failure(
  error: unknown,
  place: { 'gateway.project': string; 'gateway.event_type': string },
) {
  if (isGatewayError(error)) {
    // A rejected event is the caller's mistake, not an exception.
    const { code } = error;
    return {
      attributes: { ...place, 'gateway.code': code },
      error: { type: code, sentence: 'The API rejected the event.', told: true },
    };
  }
  const { code } = (error ?? {}) as { code?: unknown };
  return {
    attributes: place,
    error: {
      type: typeof code === 'string' ? code : 'error',
      sentence: 'The event could not be stored.',
    },
  };
}
