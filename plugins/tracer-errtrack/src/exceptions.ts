import type { SpanContext } from '@opentelemetry/api';
import { captureException } from '@sentry/node';

/** What is needed of a span that has ended. */
interface EndedSpan {
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string; readonly attributes?: Readonly<Record<string, unknown>> }[];
  spanContext(): SpanContext;
}

/** Reports the exceptions that were recorded on spans: https://opentelemetry.io/docs/specs/semconv/exceptions/exceptions-spans/ */
export const exceptions = {
  onStart: () => {},
  onEnd: (span: EndedSpan) => {
    for (const { name, attributes = {} } of span.events) {
      if (name !== 'exception') continue;
      const { traceId, spanId } = span.spanContext();
      captureException(errorOf(attributes), {
        contexts: { trace: { trace_id: traceId, span_id: spanId }, span: { ...span.attributes } },
        tags: { span: span.name },
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
