import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  customHeaderProblem,
  headerOwner,
  isHeaderName,
  isHeaderValue,
  isReservedHeader,
  travellingHeaders,
} from '#core/events/headers';
import { DEFAULT_SIGNATURE } from '#store/config/projects';

const headers = suite('core/events/headers');

headers('names are tokens of HTTP', () => {
  for (const name of ['x', 'X-Shop', 'x_y', "!#$%&'*+.^_`|~", '7'])
    assert.ok(isHeaderName(name), name);
  for (const name of [
    '',
    'a b',
    'a:b',
    'ä',
    'a\n',
    'a\r\nb',
    '(a)',
    'a,b',
    '\0',
    '\u017f',
    '\u212a',
  ])
    assert.not.ok(isHeaderName(name), JSON.stringify(name));
});

headers('values are what one line of HTTP can carry', () => {
  for (const value of ['', 'a b', '\t', 'é', '\xff', '{"a":1}'])
    assert.ok(isHeaderValue(value), JSON.stringify(value));
  for (const value of ['a\nb', 'a\r', '\0', '\x7f', 'ŀ', '€', '😀', 'a\n'])
    assert.not.ok(isHeaderValue(value), JSON.stringify(value));
});

headers('custom headers go over those of the broker message, whatever their case', () => {
  assert.equal(
    travellingHeaders({ Tenant: 'a', traceparent: '00-1' }, { tenant: 'b', 'X-Shop': '7' }),
    {
      tenant: 'b',
      traceparent: '00-1',
      'x-shop': '7',
    },
  );
});

headers('what the gateway or the connection owns does not travel, from neither side', () => {
  const names = [
    'Host',
    'Content-Length',
    'Content-Encoding',
    'Transfer-Encoding',
    'Connection',
    'Upgrade',
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

headers('every header has one owner: the connection, the gateway or the message', () => {
  for (const name of ['Host', 'content-length', 'Transfer-Encoding', 'TE', 'Proxy-Authorization'])
    assert.is(headerOwner(name), 'the connection', name);
  for (const name of [
    'Content-Encoding',
    'webhook-id',
    'WEBHOOK-SIGNATURE',
    DEFAULT_SIGNATURE.header,
  ]) {
    assert.is(headerOwner(name), 'the gateway', name);
    assert.equal(travellingHeaders({}, { [name]: 'x' }), {}, name);
  }
  for (const name of [
    'X-Shop',
    'Authorization',
    'traceparent',
    'tracestate',
    'Cookie',
    'X-Gateway-Message-Type',
    '__proto__',
  ])
    assert.is(headerOwner(name), undefined, name);
});

headers('a custom header that HTTP cannot carry is told in a sentence', () => {
  assert.is(customHeaderProblem('a b', 'x'), 'is not a header name');
  assert.is(
    customHeaderProblem('a', 'x\n'),
    'has a value that HTTP cannot carry (control characters or letters beyond Latin-1)',
  );
});

headers('a message may set its content type and user agent, a broker may not', () => {
  const given = { 'Content-Type': 'application/cloudevents+json', 'USER-AGENT': 'shop/7' };
  assert.equal(travellingHeaders({}, given), {
    'content-type': 'application/cloudevents+json',
    'user-agent': 'shop/7',
  });
  assert.equal(travellingHeaders(given, {}), {});
  for (const name of Object.keys(given)) assert.is(headerOwner(name), undefined);
});

headers('a project may call its plain signature as it is called by default', () => {
  assert.not.ok(isReservedHeader(DEFAULT_SIGNATURE.header));
});

headers('a header of the broker message that HTTP cannot carry stays behind', () => {
  assert.equal(travellingHeaders({ 'bad name': 'x', good: 'y', emoji: '😀', line: 'a\nb' }, {}), {
    good: 'y',
  });
});

headers('names that mean something to JavaScript do no harm', () => {
  const custom = JSON.parse('{"__proto__":"a","constructor":"b"}') as Record<string, string>;
  for (const travelling of [travellingHeaders(custom, {}), travellingHeaders({}, custom)]) {
    assert.is(Object.getPrototypeOf(travelling), Object.prototype);
    assert.is(JSON.stringify(travelling), '{"__proto__":"a","constructor":"b"}');
  }
});

headers.run();
