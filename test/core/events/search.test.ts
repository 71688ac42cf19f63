import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseSearch } from '#core/events/search';

const search = suite('core/events/search');

const DATA = '{"order":{"id":42,"ref":"A/1","total":99.50,"open":true},"items":[{"sku":"x 1"}]}';
const HEADERS = '{"x-shop":"acme"}';

/** Whether the search matches the event, and whether the texts let it pass. */
function finds(text: string, data = DATA): boolean {
  const { texts, matches } = parseSearch(text);
  const passes = texts.every((it) => data.includes(it) || data.includes('\\u'));
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
