import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { jsonMistake } from '#core/json/json-mistake';

const mistake = suite('core/json/json-mistake');

function told(text: string): string {
  try {
    JSON.parse(text);
  } catch (error) {
    return jsonMistake(text, error as Error);
  }
  return 'no mistake';
}

mistake('the place of a mistake is a line and a column', () => {
  assert.is(told('{\n  "a": 1,\n}'), 'line 3, column 1: expected double-quoted property name');
  assert.is(
    told('{ "a": 1 "b": 2 }'),
    "line 1, column 10: expected ',' or '}' after property value",
  );
  assert.is(told('{\n  // a comment\n}'), "line 2, column 3: expected property name or '}'");
  assert.is(told('{ "a": /* no */ 1 }'), 'line 1, column 8: unexpected "/"');
  assert.is(told('{ "a": True }'), 'line 1, column 8: unexpected "T"');
  assert.is(
    told('{ "a": 1 } }'),
    'line 1, column 12: unexpected non-whitespace character after JSON',
  );
});

mistake('a text that ends too early says so', () => {
  assert.is(told('{ "a":'), 'it ends too early');
  assert.is(told(''), 'it ends too early');
});

mistake('nothing of the text around is passed on', () => {
  for (const text of [
    '{"key": hunter2}',
    '{"key": "hunter2", x}',
    '{"key": "hunter2',
    '["hunter2" "hunter2"]',
  ]) {
    assert.not.match(told(text), 'hunter');
  }
});

mistake.run();
