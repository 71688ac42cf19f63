import { createTraceState, TraceFlags, type SpanContext } from '@opentelemetry/api';

// Lower-case. Versions after 00 may append fields:
// https://www.w3.org/TR/trace-context/#traceparent-header
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/s;
const NO_TRACE = '0'.repeat(32);
const NO_SPAN = '0'.repeat(16);

/** Undefined if missing or invalid. */
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

export function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${isSampled({ traceFlags }) ? '01' : '00'}`;
}

export function isSampled({ traceFlags }: Pick<SpanContext, 'traceFlags'>): boolean {
  return (traceFlags & TraceFlags.SAMPLED) !== 0;
}

/**
 * Header names match case-insensitively. Without a valid `traceparent`, `tracestate` is ignored.
 */
export function traceContextOf(headers: Readonly<Record<string, string>>): SpanContext | undefined {
  const context = parseTraceparent(headerOf(headers, 'traceparent'));
  const state = context && headerOf(headers, 'tracestate');
  return state ? { ...context, traceState: createTraceState(state) } : context;
}

export function carryTrace(headers: Record<string, string>, context: SpanContext): void {
  headers['traceparent'] = formatTraceparent(context);
  const state = context.traceState?.serialize();
  if (state) headers['tracestate'] = state;
  else if ('tracestate' in headers) delete headers['tracestate'];
}

export function dropTrace(headers: Record<string, string>): void {
  for (const name of ['traceparent', 'tracestate']) if (name in headers) delete headers[name];
}

export function traceIdOf(headers: Readonly<Record<string, string>>): string | undefined {
  return parseTraceparent(headerOf(headers, 'traceparent'))?.traceId;
}

/** @param name in lower case */
function headerOf(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  const value = headers[name];
  if (value !== undefined) return value;
  for (const given in headers)
    if (given.length === name.length && given.toLowerCase() === name) return headers[given];
  return undefined;
}
