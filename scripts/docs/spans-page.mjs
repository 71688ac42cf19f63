// @ts-check
import { spans } from '#core/tracing/spans';
import { code, MADE, table } from './markdown.mjs';
import { attributes, meanings } from './spans.mjs';

/** @typedef {import('#core/tracing/spans').SpanName} SpanName */
/** @typedef {import('#core/tracing/spans').SpanRow} SpanRow */

const INTRODUCTION = `With a [tracer](../guides/tracing.md) the gateway emits these spans. Without one it emits none, and passes an incoming \`traceparent\` on unchanged.

A trace reaches from the producer to the webhook. The gateway reads [W3C trace context](https://www.w3.org/TR/trace-context/) (\`traceparent\`, \`tracestate\`) from the headers of a
Kafka record, the attributes of an SQS message, or the headers of a request to \`POST /events\`. Without these it reads the custom headers of the event, so a transform function may set it. The
first span is its child. Without a valid \`traceparent\` a new trace starts, and an invalid one is dropped. An event that was created without a tracer and arrived without a trace starts
one with its first attempt. Each webhook request carries the \`traceparent\` of its delivery attempt; \`tracestate\` is passed on unchanged.

The sample rate applies to traces that start in the gateway, once for the whole trace; traces of a producer keep its decision. Of an unrecorded trace of a producer only the context
continues, with the flag \`00\`. Spans are emitted after their work is committed: a message returned to its broker has none, and a duplicate has no creation span. Names, sentences and
attributes never quote content of messages, headers, functions or endpoints; the full reason is with the quarantined message or the delivery attempt.`;

export function spansPage() {
  const rows = /** @type {[SpanName, SpanRow][]} */ (Object.entries(spans));
  return [
    '# Spans',
    MADE,
    INTRODUCTION,
    `## Spans\n\n${table(
      ['Span', 'Kind', 'Meaning', 'Attributes'],
      rows.map(([name, { kind, attributes: of }]) => [
        code(name),
        kind,
        meanings[name],
        of.map(code).join(', '),
      ]),
    )}`,
    `## Attributes\n\n${table(
      ['Attribute', 'Meaning', 'Present'],
      Object.entries(attributes).map(([name, [meaning, when]]) => [
        code(name),
        meaning,
        when === undefined ? 'always' : `when ${when}`,
      ]),
    )}`,
  ]
    .join('\n\n')
    .concat('\n');
}
