import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isHeaderName, isHeaderValue, isReservedHeader, travellingHeaders } from '@gateway/core/headers';

const headers = suite('core/headers');

headers('names are tokens of HTTP', () => {
  for (const name of ['x', 'X-Shop', 'x_y', "!#$%&'*+.^_`|~", '7']) assert.ok(isHeaderName(name), name);
  for (const name of ['', 'a b', 'a:b', 'ä', 'a\n', 'a\r\nb', '(a)', 'a,b', '\0', '\u017f', '\u212a'])
    assert.not.ok(isHeaderName(name), JSON.stringify(name));
});

headers('values are what one line of HTTP can carry', () => {
  for (const value of ['', 'a b', '\t', 'é', '\xff', '{"a":1}']) assert.ok(isHeaderValue(value), JSON.stringify(value));
  for (const value of ['a\nb', 'a\r', '\0', '\x7f', 'ŀ', '€', '😀', 'a\n']) assert.not.ok(isHeaderValue(value), JSON.stringify(value));
});

headers('custom headers go over those of the broker message, whatever their case', () => {
  assert.equal(travellingHeaders({ Tenant: 'a', traceparent: '00-1' }, { tenant: 'b', 'X-Shop': '7' }), {
    tenant: 'b',
    traceparent: '00-1',
    'x-shop': '7',
  });
});

headers('what the gateway or the connection owns does not travel, from neither side', () => {
  const names = [
    'Host',
    'Content-Length',
    'Content-Type',
    'Transfer-Encoding',
    'Connection',
    'Upgrade',
    'User-Agent',
    'Webhook-Id',
    'WEBHOOK-TIMESTAMP',
    'webhook-signature',
    'X-Gateway-Message-Type',
    'Expect',
  ];
  for (const name of names) {
    assert.ok(isReservedHeader(name), name);
    assert.equal(travellingHeaders({ [name]: 'x' }, { [name]: 'x' }), {}, name);
  }
  assert.not.ok(isReservedHeader('x-shop'));
});

headers('a header of the broker message that HTTP cannot carry stays behind', () => {
  assert.equal(travellingHeaders({ 'bad name': 'x', good: 'y', emoji: '😀', line: 'a\nb' }, {}), { good: 'y' });
});

headers('names that mean something to JavaScript do no harm', () => {
  const custom = JSON.parse('{"__proto__":"a","constructor":"b"}') as Record<string, string>;
  for (const travelling of [travellingHeaders(custom, {}), travellingHeaders({}, custom)]) {
    assert.is(Object.getPrototypeOf(travelling), Object.prototype);
    assert.is(JSON.stringify(travelling), '{"__proto__":"a","constructor":"b"}');
  }
});

headers.run();
