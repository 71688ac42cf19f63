import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EXPONENT, parseSearch, spellingsOf } from '#core/events/search';

const search = suite('core/events/search');

const DATA = '{"order":{"id":42,"ref":"A/1","total":99.50,"open":true},"items":[{"sku":"x 1"}]}';
const HEADERS = '{"x-shop":"acme"}';

/** Whether the search matches the event, and whether the texts let it pass. */
function finds(text: string, data = DATA): boolean {
  const { texts, matches } = parseSearch(text);
  const hasExponent = new RegExp(EXPONENT).test(data);
  const passes = texts.every(
    (it) => data.includes(it) || data.includes('\\u') || (/^\d+$/.test(it) && hasExponent),
  );
  const isMatch = matches!(data, HEADERS);
  assert.ok(passes || !isMatch, `the texts of ${text} exclude a match`);
  return isMatch;
}

search('conditions match by path, operator and value', () => {
  for (const text of [
    'data.order.id = 42',
    'data.order.id=42',
    'data.order.id = 42.0',
    'data.order.ref = A/1',
    'data.order.total = 99.5',
    'data.order.total >= 99 and data.order.id != 43',
    'data.order.open = true',
    'data.items.0.sku = "x 1" and headers.X-Shop = acme',
    'data.order',
    'data.missing != 1',
  ])
    assert.ok(finds(text), text);
  for (const text of [
    'data.order.id = 4',
    'data.order.id = "42"',
    'data.order.id > 42',
    'data.order.ref != A/1',
    'data.missing',
    'headers.x-shop = other',
    'data.order.id = 42 and data.order.open = false',
  ])
    assert.not.ok(finds(text), text);
});

search('a typed number is also found as a string, and values are found behind escapes', () => {
  assert.ok(finds('data.order.id = 42', '{"order":{"id":"42"}}'));
  assert.ok(finds('data.a = Renée', '{"\\u0061":"Ren\\u00e9e"}'));
  assert.ok(finds('data.a = "x/y"', '{"a":"x\\/y"}'));
  assert.ok(finds('data.id = 9007199254740993', '{"id":9007199254740993}'));
});

search('numbers are found whatever their spelling', () => {
  for (const [text, number] of [
    ['data.n = 100', '1E2'],
    ['data.n = 100', '10.0e+1'],
    ['data.n = 100', '100.00'],
    ['data.n = -5', '-50e-1'],
    ['data.n = 0.3', '0.29999999999999999'],
    ['data.n = 1e2', '100'],
    ['data.n = 42.0', '42'],
    ['data.n = 0', '-0'],
    ['data.n = 12000000000000000000', '1.2e19'],
  ] as const) {
    assert.ok(finds(text, `{"n":${number}}`), `${text} in ${number}`);
    assert.ok(finds(text, `{\n "m": [${number}], "n":\t${number} }`), `${text} in ${number}`);
  }
  assert.ok(!finds('data.n = 100', '{"n":1E3}'));
});

search('names that have a dot, and lists, are found as in filters', () => {
  const data =
    '{"a.b":{"c":1},"http":{"status.code":200},"tags":["vip","eu"],"items":[{"sku":"x"}]}';
  for (const text of [
    'data.http.status.code = 200',
    'data.a\\.b.c = 1',
    'data.http.status\\.code >= 200',
    'data.tags = vip',
    'data.tags != us',
    'data.items.sku = x',
    'data.items.sku',
  ])
    assert.ok(finds(text, data), text);
  for (const text of ['data.tags != vip', 'data.items.sku != x', 'data.http\\.status.code'])
    assert.not.ok(finds(text, data), text);
});

search('the spellings of a word are those of JSON', () => {
  for (const [word, data] of [
    ['über', '"\\u00FCber"'],
    ['über', '"\\u00fcb\\u0065r"'],
    ['a/b', '"a\\/b"'],
    ['a/b', '"a/b"'],
    ['say "hi"', '"say \\"hi\\""'],
    ['C:\\dir', '"C:\\\\dir"'],
    ['😀', '"\\ud83d\\uDE00"'],
    ['a.b*[c]^$(d)', '"a.b*[c]^\\u0024(d)"'],
    ['two\tcells', '"two\\tcells"'],
  ] as const)
    assert.match(data, new RegExp(spellingsOf(word)), word);
  assert.not.match('"axb"', new RegExp(spellingsOf('a.b')));
});

search('data that is not JSON matches nothing', () => {
  assert.not.ok(finds('data.order.id != 42', '{"order":'));
});

search('other text is a list of words', () => {
  assert.equal(parseSearch('order  42 "x = 1"'), { words: ['order', '42', 'x = 1'], texts: [] });
});

search('a mistake names its place and an example', () => {
  for (const [text, sentence] of [
    [
      'order.id = 42',
      /^needs a path that begins with data. or headers. at character 1, such as data/,
    ],
    ['data.order.id 42', /^needs one of =, !=, .* at character 15,/],
    ['data.order.id =', /^needs a value at character 16,/],
    ['data.order.id = "4', /^needs a value at character 17,/],
    ['data.note = two words', /^needs "and", or quotes .* at character 17,/],
    ['data.a = 1 and', /^needs a path .* at character 15,/],
  ] as const)
    assert.throws(() => parseSearch(text), sentence);
});

search.run();
