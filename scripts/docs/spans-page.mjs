// @ts-check
import { spanAttributes, spans } from '#core/tracing/spans';
import { code, MADE, table } from './markdown.mjs';

/** @typedef {import('#core/tracing/spans').SpanAttribute} SpanAttribute */
/** @typedef {import('#core/tracing/spans').SpanRow} SpanRow */

const INTRODUCTION = `With a tracer ([\`tracer.type\`](configuration.md#tracer)) the gateway emits these spans. Without one it emits none, and a \`traceparent\` that came with
a message goes on to the webhook as it came.

A trace goes from the producer to the webhook. The gateway reads [W3C trace context](https://www.w3.org/TR/trace-context/) (\`traceparent\`, \`tracestate\`) in the headers of a Kafka
record, in the message attributes of an SQS message, and in the headers of a request to \`POST /events\`; where there is none, in the custom headers
of the event, so that a transform function may set it. The first span is its child. Without a valid \`traceparent\` a new trace begins, and what is invalid does not go on.
An event that was created by a process without a tracer, and came with no trace, begins one with its first attempt.
The \`traceparent\` of each webhook request is that of its delivery attempt; \`tracestate\` goes with it unchanged.

The sample rate decides about traces that begin in the gateway, once for the whole trace; traces of a producer keep its decision. Of a trace that is not recorded
only the context goes on, with the flag \`00\`; nothing else is made for it, errors included.

Spans are emitted when what they tell of is committed: a message that goes back to its broker has none, and a duplicate has no span of a creation. Names, sentences and attributes
never quote what a message, its headers, a transform function or an endpoint said; the reason in full is with the quarantined message or the delivery attempt.`;

/** The page of all spans, with their attributes. */
export function spansPage() {
  /** @type {[string, SpanRow][]} */
  const rows = Object.entries(spans);
  /** @type {[string, SpanAttribute][]} */
  const attributes = Object.entries(spanAttributes);
  return [
    '# Spans',
    MADE,
    INTRODUCTION,
    `## Spans\n\n${table(
      ['Span', 'Kind', 'Meaning', 'Attributes'],
      rows.map(([name, { kind, summary, attributes: of }]) => [code(name), kind, summary, of.map(code).join(', ')]),
    )}`,
    `## Attributes\n\n${table(
      ['Attribute', 'Meaning', 'Present'],
      attributes.map(([name, { meaning, when }]) => [code(name), meaning, when === undefined ? 'always' : `when ${when}`]),
    )}`,
  ]
    .join('\n\n')
    .concat('\n');
}
