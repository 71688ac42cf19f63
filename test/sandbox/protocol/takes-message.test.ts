import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { takesMessage } from '#sandbox/protocol/takes-message';

const takes = suite('sandbox/protocol/takes-message');

takes('only a text that declares one plain parameter gets no message', () => {
  for (const text of [
    'function transform(payload) { return { event_type: "a", data: payload }; }',
    'function transform() { return null; }',
    '// a comment\nasync function  transform ( $p ) { }',
  ])
    assert.is(takesMessage(text), false, text);
});

takes('every other text may use its second argument', () => {
  for (const text of [
    'function transform(payload, message) { }',
    'function transform({ id }, { key }) { }',
    'const transform = (payload, message) => null;',
    'const f = (payload, message) => null; let transform = f;',
    'function transform(payload) { return arguments[1]; }',
    'function transform(payload) { return \\u0061rguments[1]; }',
    'function transform(...all) { }',
    '// function transform(payload)\nfunction transform(payload, message) { }',
    '',
  ])
    assert.is(takesMessage(text), true, text);
});

takes.run();
