import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  formatTraceparent,
  parseTraceparent,
  traceContextOf,
  traceIdOf,
} from '#core/tracing/trace-context';

const context = suite('core/tracing/trace-context');

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const VALID = `00-${TRACE}-${SPAN}-01`;

context('a traceparent is read, and written as it was', () => {
  assert.equal(parseTraceparent(VALID), {
    traceId: TRACE,
    spanId: SPAN,
    traceFlags: 1,
    isRemote: true,
  });
  for (const text of [VALID, `00-${TRACE}-${SPAN}-00`])
    assert.is(formatTraceparent(parseTraceparent(text)!), text);
});

context('of the flags only "sampled" is kept', () => {
  assert.is(parseTraceparent(`00-${TRACE}-${SPAN}-03`)?.traceFlags, 1);
  assert.is(parseTraceparent(`00-${TRACE}-${SPAN}-fe`)?.traceFlags, 0);
});

context('a later version is read by what it has in common, and goes on as version 00', () => {
  for (const text of [
    `cc-${TRACE}-${SPAN}-01`,
    `01-${TRACE}-${SPAN}-01-what-the-future-will-be-like`,
  ])
    assert.is(formatTraceparent(parseTraceparent(text)!), VALID, text);
});

context('what W3C calls invalid is none', () => {
  const invalid = {
    nothing: '',
    rubbish: 'rubbish',
    'upper case': VALID.toUpperCase(),
    'an upper-case trace id': `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    'version ff': `ff-${TRACE}-${SPAN}-01`,
    'a trace id of zeros': `00-${'0'.repeat(32)}-${SPAN}-01`,
    'a span id of zeros': `00-${TRACE}-${'0'.repeat(16)}-01`,
    'more than version 00 has': `${VALID}-more`,
    'no dash behind a later version': `01-${TRACE}-${SPAN}-01more`,
    'no flags': `00-${TRACE}-${SPAN}`,
    'a short trace id': `00-${TRACE.slice(1)}-${SPAN}-01`,
    'a space in front': ` ${VALID}`,
    'a line behind': `${VALID}\n`,
  };
  for (const [name, text] of Object.entries(invalid))
    assert.is(parseTraceparent(text), undefined, name);
  assert.is(parseTraceparent(undefined), undefined);
});

context('it is found in headers of any case, with the state beside it', () => {
  const found = traceContextOf({ other: 'x', Traceparent: VALID, TraceState: 'vendor=1,other=2' });
  assert.is(found?.spanId, SPAN);
  assert.is(found?.traceState?.serialize(), 'vendor=1,other=2');
  assert.is(traceIdOf({ TRACEPARENT: VALID }), TRACE);
});

context('a state without a valid parent is nothing', () => {
  assert.is(traceContextOf({ traceparent: 'rubbish', tracestate: 'vendor=1' }), undefined);
  assert.is(traceIdOf({ tracestate: 'vendor=1' }), undefined);
});

context.run();
