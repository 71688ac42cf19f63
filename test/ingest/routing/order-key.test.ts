import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { orderKeysOf } from '#ingest/routing/order-key';
import type { Endpoint, Project } from '#ingest/routing/project';

const keys = suite('ingest/routing/order-key');

const event = {
  message: '{"key":"m-1"}',
  headers: { 'x-order': 'h-1' },
  data: '{"order":{"id":7,"lines":[{"no":1},{"no":2}]},"empty":"","none":null,"text":"7"}',
};

function keyBy(ordering: string | null, ofSubscription?: string) {
  const orderings = new Map(ofSubscription === undefined ? [] : [['s', ofSubscription]]);
  return orderKeysOf({ orderings } as unknown as Project, event)({ ordering } as Endpoint, 's');
}

const textBy = (ordering: string) => keyBy(ordering)?.orderText;

keys('a key is that of the message, or a value of the headers or the data', () => {
  assert.is(textBy('message.key'), 'm-1');
  const group = { ...event, message: '{"attributes":{"MessageGroupId":"g-1"}}' };
  const of = orderKeysOf({ orderings: new Map() } as unknown as Project, group);
  assert.is(of({ ordering: 'message.key' } as Endpoint, null)?.orderText, 'g-1');
  assert.is(textBy('headers.X-Order'), 'h-1');
  assert.is(textBy('data.order.id'), '7');
  assert.is(textBy('data.order'), '{"id":7,"lines":[{"no":1},{"no":2}]}');
  assert.is(textBy('data.order.lines.no'), '[1,2]');
});

keys('an event without a value is not ordered', () => {
  for (const path of ['data.missing', 'data.order.missing', 'data.empty', 'data.none', 'headers.b'])
    assert.is(keyBy(path), null, path);
  assert.is(keyBy(null), null);
});

keys('equal texts have the same digest, and a subscription replaces its endpoint', () => {
  assert.is(keyBy('data.order.id')!.orderKey, keyBy('data.text')!.orderKey);
  assert.match(keyBy('data.text')!.orderKey, /^[0-9a-f]{32}$/);
  assert.is(keyBy('message.key', 'data.text')!.orderText, '7');
});

keys('of a long key, people see the beginning, and the digest is of all', () => {
  const long = (end: string) =>
    orderKeysOf({ orderings: new Map() } as unknown as Project, {
      ...event,
      message: JSON.stringify({ key: 'x'.repeat(500) + end }),
    })({ ordering: 'message.key' } as Endpoint, null)!;
  assert.is(long('a').orderText.length, 200);
  assert.is.not(long('a').orderKey, long('b').orderKey);
});

keys.run();
