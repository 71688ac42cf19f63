import { createTraceState, TraceFlags, type SpanContext } from '@opentelemetry/api';

// https://www.w3.org/TR/trace-context/#traceparent-header: letters are lower case; later versions may append fields, this one may not.
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/s;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);

/** Reads a `traceparent`; undefined for none, and for one that W3C calls invalid. */
export function parseTraceparent(text: string | null | undefined): SpanContext | undefined {
  if (!text) return undefined;
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === 'ff' || (version === '00' && more !== undefined) || traceId === NO_TRACE || spanId === NO_SPAN) return undefined;
  return { traceId, spanId, traceFlags: parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
}

/** The `traceparent` of a span. */
export function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${isSampled({ traceFlags }) ? '01' : '00'}`;
}

export function isSampled({ traceFlags }: Pick<SpanContext, 'traceFlags'>): boolean {
  return (traceFlags & TraceFlags.SAMPLED) !== 0;
}

/**
 * Where the sender of these headers stood in its trace. Names of headers may be in any case. A `tracestate` counts only beside a `traceparent`
 * that is valid.
 */
export function traceContextOf(headers: Readonly<Record<string, string>>): SpanContext | undefined {
  const context = parseTraceparent(headerOf(headers, 'traceparent'));
  const state = context && headerOf(headers, 'tracestate');
  return state ? { ...context, traceState: createTraceState(state) } : context;
}

/** Puts a trace context into headers that travel on from it, in place of the one that they carried. */
export function carryTrace(headers: Record<string, string>, context: SpanContext): void {
  headers['traceparent'] = formatTraceparent(context);
  const state = context.traceState?.serialize();
  if (state) headers['tracestate'] = state;
  else if ('tracestate' in headers) delete headers['tracestate'];
}

/** Takes a trace context out of headers that shall carry none, such as one that is malformed. */
export function dropTrace(headers: Record<string, string>): void {
  for (const name of ['traceparent', 'tracestate']) if (name in headers) delete headers[name];
}

/** The trace that these headers belong to, for a line of the log; undefined when they carry none. */
export function traceIdOf(headers: Readonly<Record<string, string>>): string | undefined {
  return parseTraceparent(headerOf(headers, 'traceparent'))?.traceId;
}

/** @param name in lower case */
function headerOf(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  const value = headers[name];
  if (value !== undefined) return value;
  for (const given in headers) if (given.length === name.length && given.toLowerCase() === name) return headers[given];
  return undefined;
}
