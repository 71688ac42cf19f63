import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { emitSpan, spans } from '@gateway/core/spans';

const table = suite('core/spans');

table('the spans of the specification are in the table', () => {
  const specified = [
    'event.creation.success',
    'event.creation.error',
    'dynamic.event.creation.success',
    'dynamic.event.creation.error',
    'dynamic.event.subscription.matching.error',
    'meta_event_delivery',
  ];
  assert.equal(Object.keys(spans).sort(), specified.sort());
});

table('without a tracer the trace context that came is passed on', () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  assert.is(emitSpan('meta_event_delivery', { startedAt: Date.now(), traceparent }), traceparent);
  assert.is(emitSpan('event.creation.error', { startedAt: Date.now(), error: new Error('x') }), undefined);
});

table('a trace context that is none is no parent', () => {
  for (const traceparent of ['', 'rubbish', '00-xyz-1-01']) {
    assert.is(emitSpan('meta_event_delivery', { startedAt: Date.now(), traceparent }), traceparent);
  }
});

table.run();
