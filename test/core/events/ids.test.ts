import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { clampTime, eventDeliveryId, eventId, isId, newId, timeOfId } from '#core/events/ids';

const ids = suite('core/events/ids');

const SOURCE = '0190c0de-0000-7000-8000-000000000001';
const ENDPOINT = '0190c0de-0000-7000-8000-000000000002';
const SUBSCRIPTION = '0190c0de-0000-7000-8000-000000000003';
const YEAR_2200 = Date.UTC(2200, 0, 1);

ids(
  'an event has the same id on every redelivery, and another for other coordinates, source, time or ordinal',
  () => {
    const id = eventId(SOURCE, 'orders/0/1', 1_700_000_000_000);
    assert.is(eventId(SOURCE, 'orders/0/1', 1_700_000_000_000, 0), id);
    const others = [
      eventId(ENDPOINT, 'orders/0/1', 1_700_000_000_000),
      eventId(SOURCE, 'orders/0/2', 1_700_000_000_000),
      eventId(SOURCE, 'orders/0/1', 1_700_000_000_001),
      eventId(SOURCE, 'orders/0/1', 1_700_000_000_000, 1),
    ];
    assert.is(new Set([id, ...others]).size, 5);
  },
);

ids('digits do not move from the coordinates into the ordinal', () => {
  assert.is.not(eventId(SOURCE, 'orders/0/1', 0, 11), eventId(SOURCE, 'orders/0/11', 0, 1));
});

ids(
  'a delivery has the same id for the same event, endpoint and subscription, and keeps the time of its event',
  () => {
    const event = eventId(SOURCE, 'orders/0/1', 1_700_000_000_000);
    const id = eventDeliveryId(event, ENDPOINT, SUBSCRIPTION);
    assert.is(eventDeliveryId(event, ENDPOINT, SUBSCRIPTION), id);
    assert.is(timeOfId(id), 1_700_000_000_000);
    assert.is(
      new Set([
        id,
        eventDeliveryId(event, ENDPOINT, null),
        eventDeliveryId(event, SUBSCRIPTION, SUBSCRIPTION),
        event,
      ]).size,
      4,
    );
  },
);

ids('every id is a UUID of its version and variant that begins with its time', () => {
  for (const timeMs of [0, 1, 255, 1_700_000_000_000, YEAR_2200]) {
    for (let n = 0; n < 200; n++) {
      const event = eventId(SOURCE, `orders/0/${n}`, timeMs);
      assert.match(event, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      assert.is(timeOfId(event), timeMs);
      const fresh = newId(timeMs);
      assert.match(fresh, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      assert.is(timeOfId(fresh), timeMs);
      assert.ok(isId(event) && isId(fresh));
    }
  }
});

ids(
  'a hundred thousand events of one millisecond have distinct ids, and so have a hundred thousand new ids',
  () => {
    const made = new Set<string>();
    for (let n = 0; n < 100_000; n++)
      made.add(eventId(SOURCE, `orders/0/${n}`, 1_700_000_000_000)).add(newId(1_700_000_000_000));
    assert.is(made.size, 200_000);
  },
);

ids('new ids of one millisecond sort in the order in which they were made', () => {
  const made = Array.from({ length: 100_000 }, () => newId(1_700_000_000_000));
  assert.equal([...made].sort(), made);
});

ids('ids sort by their times as texts', () => {
  const times = [0, 1, 4095, 65_536, 1_700_000_000_000, 1_700_000_000_001, YEAR_2200];
  for (const make of [newId, (timeMs: number) => eventId(SOURCE, String(timeMs), timeMs)]) {
    const made = times.map(make);
    assert.equal([...made].sort(), made);
  }
});

ids('the time of a message is brought into the range that ids and partitions can hold', () => {
  assert.is(clampTime(1_700_000_000_000.7), 1_700_000_000_000);
  assert.is(clampTime(0), 0);
  assert.is(clampTime(YEAR_2200), YEAR_2200);
  assert.is(clampTime(YEAR_2200 + 1), YEAR_2200);
  assert.is(clampTime(Number.MAX_SAFE_INTEGER), YEAR_2200);
  for (const nonsense of [-1, -1e15, NaN, Infinity, -Infinity]) assert.is(clampTime(nonsense), 0);
  // A mistake of plugins in JavaScript.
  assert.is(clampTime(undefined as unknown as number), 0);
});

ids('only the lower-case form of a UUID counts as an id', () => {
  assert.ok(isId('0190c0de-0000-7000-8000-000000000001'));
  for (const text of [
    '',
    'x',
    '0190C0DE-0000-7000-8000-000000000001',
    '{0190c0de-0000-7000-8000-000000000001}',
    '0190c0de00007000800000000000000000',
    ' 0190c0de-0000-7000-8000-000000000001',
    '0190c0de-0000-7000-8000-000000000001\n',
  ]) {
    assert.not.ok(isId(text), text);
  }
});

ids.run();
