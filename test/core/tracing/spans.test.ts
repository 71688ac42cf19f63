import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  endSpan,
  openSpanTracer,
  creationErrorSpan,
  creationSpan,
  spans,
  type SpanName,
  type SpanRow,
} from '#core/tracing/spans';
import { attributes as attributeTexts, meanings } from '../../../scripts/docs/spans.mjs';
import { carryTrace, parseTraceparent } from '#core/tracing/trace-context';

const table = suite('core/tracing/spans');

const rows = Object.entries<SpanRow>(spans);

table('the spans of the specification are in the table', () => {
  const specified = [
    'event.creation.success',
    'event.creation.error',
    'dynamic.event.creation.success',
    'dynamic.event.creation.error',
    'dynamic.event.subscription.matching.error',
    'meta_event_delivery',
  ];
  for (const name of specified) assert.ok(name in spans, name);
  const creations = [true, false].flatMap((dynamic): string[] => [
    creationSpan(dynamic),
    creationErrorSpan(dynamic),
  ]);
  assert.equal(creations.sort(), specified.filter((name) => name.includes('creation')).sort());
});

table('every attribute has a meaning and a span', () => {
  const used = new Set(rows.flatMap(([, { attributes }]) => attributes));
  assert.equal([...used].sort(), Object.keys(attributeTexts).sort());
});

table(
  'names and attributes are lower case with dots, and attributes of our own have our prefix',
  () => {
    for (const [name, { attributes }] of rows) {
      assert.match(name, /^[a-z]+([._][a-z]+)*$/);
      assert.match(meanings[name as SpanName], /^[A-Z].*\.$/);
      assert.is(new Set(attributes).size, attributes.length, name);
    }
    for (const name of Object.keys(attributeTexts))
      assert.match(name, /^(gateway|messaging|http|server|error)(\.[a-z_]+)+$/);
  },
);

table('without a tracer nothing is recorded, and the trace context that came goes on', () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const parent = parseTraceparent(traceparent);
  const span = openSpanTracer().start('meta_event_delivery', { startedAtMs: Date.now(), parent });
  assert.not(span.recording);
  const headers: Record<string, string> = { traceparent: 'another', tracestate: 'of=another' };
  carryTrace(headers, span.context);
  assert.equal(headers, { traceparent });
  endSpan(span, {
    attributes: { 'gateway.attempt': 1 },
    endedAtMs: Date.now(),
    error: { type: 'timeout', sentence: 'It took too long.' },
  });
});

table.run();
