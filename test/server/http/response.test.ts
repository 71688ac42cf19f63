import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RawJson, stringify } from '#server/http/response';

const raw = suite('server/http/response');

raw('raw text stands in the answer as it is', () => {
  assert.is(
    stringify({ a: new RawJson('{ "n" : 1.10 }'), b: [new RawJson('9007199254740993'), null] }),
    '{"a":{ "n" : 1.10 },"b":[9007199254740993,null]}',
  );
});

raw('without raw text it is JSON.stringify', () => {
  const value = { a: [1, 'x', null, { b: new Date(0) }], c: undefined };
  assert.is(stringify(value), JSON.stringify(value));
});

raw('replacement patterns and marks in the values of users stay what they are', () => {
  const tricky = { text: '$& $1 raw-json-0 "raw-json-"', data: new RawJson('"$& $1"') };
  assert.equal(JSON.parse(stringify(tricky)), { text: tricky.text, data: '$& $1' });
});

raw.run();
