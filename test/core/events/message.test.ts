import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  MESSAGE_PART_BYTES_MAX,
  messageOf,
  partsOfStored,
  storedMessage,
} from '#core/events/message';

const message = suite('core/events/message');

const PLACE = { coordinates: 'orders/2/41', occurredAtMs: 1_700_000_000_000, sourceId: 'a' };
const attributes = { topic: 'orders', partition: '2', offset: '41' };

message(
  'an event of Kafka has topic, partition and offset of its coordinates, and stores the key',
  () => {
    assert.is(storedMessage({ ...PLACE, attributes, key: null }), null);
    const stored = storedMessage({ ...PLACE, attributes, key: Buffer.from('o-1 "é"') });
    assert.is(stored, '{"key":"o-1 \\"é\\""}');
    const place = { timestamp: PLACE.occurredAtMs, topic: 'orders', partition: 2, offset: 41 };
    assert.equal(messageOf({ ...PLACE, message: stored }), { key: 'o-1 "é"', ...place });
    assert.equal(messageOf(PLACE), { key: null, ...place });
  },
);

message('a key that is not UTF-8 is base64', () => {
  const key = Buffer.from([0xff, 0, 1]);
  const stored = storedMessage({ ...PLACE, attributes, key });
  assert.is(stored, '{"key":"/wAB","key_encoding":"base64"}');
  assert.equal(partsOfStored(stored).key, key);
});

message('attributes that the coordinates do not have, and a query, are stored', () => {
  const others = { MessageGroupId: 'g', ApproximateReceiveCount: '2' };
  const stored = storedMessage({
    coordinates: 'a-b',
    key: Buffer.from('g'),
    attributes: others,
    query: { type: 'x' },
  });
  const expected = { key: 'g', attributes: others, query: { type: 'x' } };
  assert.equal(messageOf({ ...PLACE, coordinates: 'a-b', message: stored }), {
    timestamp: PLACE.occurredAtMs,
    ...expected,
  });
  assert.equal(partsOfStored(stored), { ...expected, key: Buffer.from('g') });
  assert.equal(partsOfStored(null), { key: null, attributes: undefined, query: undefined });
});

message('a part that is too large is named, not stored', () => {
  const key = Buffer.alloc(MESSAGE_PART_BYTES_MAX, 'k');
  const stored = storedMessage({ coordinates: 'a-b', key, query: { n: '1' } });
  assert.is(stored, '{"query":{"n":"1"},"omitted":["key"]}');
});

message('an event without a source has no message', () => {
  assert.is(messageOf({ ...PLACE, sourceId: null, coordinates: 'api' }), undefined);
});

message.run();
