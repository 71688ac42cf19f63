import { createTraceState, TraceFlags, type SpanContext } from '@opentelemetry/api';

// A `traceparent` is lower-case. Versions after 00 may append fields:
// https://www.w3.org/TR/trace-context/#traceparent-header
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/s;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);

/** Parses a `traceparent`. Returns undefined if it is missing or invalid. */
export function parseTraceparent(text: string | null | undefined): SpanContext | undefined {
  if (!text) return undefined;
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (
    version === 'ff' ||
    (version === '00' && more !== undefined) ||
    traceId === NO_TRACE ||
    spanId === NO_SPAN
  )
    return undefined;
  return { traceId, spanId, traceFlags: parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
}

/** Formats a span context as a `traceparent`. */
export function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${isSampled({ traceFlags }) ? '01' : '00'}`;
}

export function isSampled({ traceFlags }: Pick<SpanContext, 'traceFlags'>): boolean {
  return (traceFlags & TraceFlags.SAMPLED) !== 0;
}

/**
 * Returns the sender's trace context from headers, whose names are matched case-insensitively.
 * Without a valid `traceparent`, ignores `tracestate`.
 */
export function traceContextOf(headers: Readonly<Record<string, string>>): SpanContext | undefined {
  const context = parseTraceparent(headerOf(headers, 'traceparent'));
  const state = context && headerOf(headers, 'tracestate');
  return state ? { ...context, traceState: createTraceState(state) } : context;
}

/** Sets or replaces the trace context in headers. */
export function carryTrace(headers: Record<string, string>, context: SpanContext): void {
  headers['traceparent'] = formatTraceparent(context);
  const state = context.traceState?.serialize();
  if (state) headers['tracestate'] = state;
  else if ('tracestate' in headers) delete headers['tracestate'];
}

/** Removes the trace context from headers. */
export function dropTrace(headers: Record<string, string>): void {
  for (const name of ['traceparent', 'tracestate']) if (name in headers) delete headers[name];
}

/** Returns the trace id in the headers, for the log, or undefined if there is none. */
export function traceIdOf(headers: Readonly<Record<string, string>>): string | undefined {
  return parseTraceparent(headerOf(headers, 'traceparent'))?.traceId;
}

/**
 * Finds a header case-insensitively.
 * @param name the name in lower case
 */
function headerOf(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  const value = headers[name];
  if (value !== undefined) return value;
  for (const given in headers)
    if (given.length === name.length && given.toLowerCase() === name) return headers[given];
  return undefined;
}
