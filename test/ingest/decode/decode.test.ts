import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { decode } from '#ingest/decode/decode';

const decoding = suite('ingest/decode/decode');

const FORM = 'application/x-www-form-urlencoded';

const textOf = (body: string | Uint8Array, contentType?: string, maxBytes = 1_000) =>
  decode({ body: Buffer.from(body), contentType }, maxBytes);

decoding('JSON, other text and what has no content type are text, without a promise', () => {
  for (const contentType of [undefined, 'application/json', 'application/a+json; v=1', 'text/xml'])
    assert.is(textOf('{"a":1}', contentType), '{"a":1}');
});

decoding('a form is an object of its fields, or the value of its only field payload', async () => {
  assert.is(textOf('a=1&b=2&b=%C3%A9', FORM), '{"a":"1","b":["2","é"]}');
  assert.is(textOf('payload=%7B%22a%22%3A1%7D', `${FORM}; charset=utf-8`), '{"a":1}');
  for (const text of ['{"a":"="}', 'no form']) assert.is(textOf(text, FORM), text);
  assert.is(await textOf('no form', 'multipart/form-data; boundary=b'), 'no form');
});

decoding('what is empty, too large or not UTF-8 is refused, also once it is decoded', () => {
  assert.equal(
    [
      textOf(''),
      textOf('x'.repeat(1_001)),
      textOf(Buffer.from([0xff])),
      textOf('payload=', FORM),
      textOf(`a=${'%00'.repeat(200)}`, FORM),
    ].map((it) => (it as { code: string }).code),
    ['empty', 'too_large', 'not_utf8', 'empty', 'too_large'],
  );
});

decoding.run();
