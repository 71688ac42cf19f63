import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { captureException } from '@sentry/node';

/** Shared by all errors of a kind. */
const KIND = ['error.type', 'gateway.code', 'http.response.status_code'];
// https://docs.sentry.io/platforms/javascript/enriching-events/tags/
const TAG = /^[\w.:-]{1,32}$/;
const TAG_VALUE_MAX = 200;

/**
 * Reports exceptions on spans:
 * https://opentelemetry.io/docs/specs/semconv/exceptions/exceptions-spans/
 */
export const exceptions = {
  onStart: () => {},
  onEnd: (span: ReadableSpan) => {
    for (const { name, attributes = {} } of span.events) {
      if (name !== 'exception') continue;
      const { traceId, spanId } = span.spanContext();
      const error = errorOf(attributes);
      captureException(error, {
        contexts: { trace: { trace_id: traceId, span_id: spanId }, span: ownAttributes(span) },
        tags: { ...tagsOf(span), span: span.name },
        fingerprint: fingerprintOf(span, error),
      });
    }
  },
  forceFlush: () => Promise.resolve(),
  shutdown: () => Promise.resolve(),
};

function errorOf(attributes: Readonly<Record<string, unknown>>): Error {
  const text = (key: string) => (typeof attributes[key] === 'string' ? attributes[key] : undefined);
  const error = new Error(text('exception.message'));
  error.name = text('exception.type') ?? 'Error';
  error.stack = text('exception.stacktrace') ?? '';
  return error;
}

/**
 * Groups errors into one issue per kind. The message, in which hosts and ids vary, is used only
 * without a kind and a stack.
 */
function fingerprintOf(
  { name, attributes }: ReadableSpan,
  { name: type, stack, message }: Error,
): string[] {
  const kind = KIND.flatMap((key) => textOf(attributes[key]) ?? []);
  if (kind.length === 0 && stack) return ['{{ default }}', name];
  return [...new Set([name, type, ...(kind.length > 0 ? kind : [message])])];
}

/** Issues can be searched by tags. */
function tagsOf(span: ReadableSpan): Record<string, string> {
  const tags: Record<string, string> = {};
  for (const [key, value] of Object.entries(ownAttributes(span))) {
    const text = textOf(value);
    if (TAG.test(key) && text && text.length <= TAG_VALUE_MAX && !text.includes('\n'))
      tags[key] = text;
  }
  return tags;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined;
}

function ownAttributes({ attributes }: ReadableSpan): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(attributes).filter(([key]) => !key.startsWith('sentry.')),
  );
}
