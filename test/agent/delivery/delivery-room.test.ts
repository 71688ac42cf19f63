import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DeliveryRoom } from '#agent/delivery/delivery-room';
import type { InFlightDelivery } from '#agent/model/delivery';

const rooms = suite('agent/delivery/delivery-room');

const MB = 1024 * 1024;
const body = Buffer.alloc(MB);
let made = 0;

function delivery(projectId: string, endpointId: string, of = body): InFlightDelivery {
  return {
    projectId,
    id: String(made++),
    occurredAtMs: 0,
    eventId: 'e',
    endpointId,
    subscriptionId: null,
    isTransformed: false,
    attempts: 0,
    eventType: 't',
    sourceId: null,
    traceparent: null,
    orderKey: null,
    headers: {},
    body: of,
    agentId: 1,
  };
}

const roomOf = (deliveries = 4_000) => new DeliveryRoom({ bytes: 32 * MB, deliveries });

/**
 * Adds deliveries for `endpoints` endpoints of each project in rotation until no capacity remains.
 * Returns the added deliveries.
 */
function fill(
  room: DeliveryRoom,
  projects: readonly string[],
  endpoints: number,
  answers = false,
  of = body,
): InFlightDelivery[] {
  const added: InFlightDelivery[] = [];
  for (let before = -1; before < added.length;) {
    before = added.length;
    for (let n = 0; n < endpoints; n++)
      for (const projectId of projects) {
        const one = delivery(projectId, `${projectId}/${n}`, of);
        if (!room.has(one, answers)) continue;
        room.add(one);
        added.push(one);
      }
  }
  return added;
}

rooms('a project alone has nearly all, and without an answer leaves the reserve', () => {
  assert.is(fill(roomOf(), ['a'], 100, true).length, 28);
  assert.is(fill(roomOf(), ['a'], 1, true).length, 27, 'for one endpoint less');
  assert.is(fill(roomOf(), ['a'], 100).length, 21);
  assert.is(fill(roomOf(), ['a'], 1).length, 20);
});

for (const endpoints of [1, 100])
  for (const projects of [1, 2, 10])
    rooms(
      `beside ${projects} projects that fill it by ${endpoints} endpoints others have room`,
      () => {
        const room = roomOf();
        const names = Array.from({ length: projects }, (_, n) => `attacker ${n}`);
        const held = fill(room, names, endpoints).length;
        assert.ok(held <= 25, `${held} MB held`);
        assert.ok(room.has(delivery('neighbour', 'answers'), true));
        assert.ok(room.ofProject('neighbour', true).bytes > 4 * MB);
        assert.ok(
          room.has(delivery('neighbour', 'unknown'), false),
          'also the first of an unknown endpoint',
        );
        assert.ok(fill(room, ['neighbour'], 5, true).length >= 6, 'and not only one');
        assert.not.ok(
          room.has(delivery(names[0]!, 'another'), false),
          'another endpoint is no way out',
        );
      },
    );

rooms('many small deliveries are bounded like few large ones', () => {
  const small = Buffer.alloc(10);
  const room = roomOf(4_000);
  assert.is(fill(room, ['a'], 100, false, small).length, 2_626);
  assert.ok(room.left > 0);
  assert.ok(room.has(delivery('neighbour', 'answers'), true));
});

rooms('headers count like bodies', () => {
  const room = roomOf();
  room.add({ ...delivery('a', 'a/1'), headers: { 'x-large': 'x'.repeat(31 * MB) } });
  assert.is(room.left, 0);
});

rooms('what is larger than all goes out when its project holds nothing', () => {
  const room = roomOf();
  const huge = delivery('a', 'a/1', Buffer.alloc(40 * MB));
  assert.ok(room.has(huge, false));
  room.add(huge);
  assert.is(room.left, 0);
  assert.not.ok(room.has(delivery('b', 'b/1'), true));
  room.remove(huge.id);
  assert.is(room.left, 4_000);
});

rooms(
  'a project is busy while its endpoints have room for a commit, and never by endpoints that hang',
  () => {
    for (const others of [0, 1, 5]) {
      const room = roomOf();
      const names = Array.from({ length: others }, (_, n) => `other ${n}`);
      fill(room, ['hangs', ...names], 10);
      assert.not.ok(['hangs', ...names].some((name) => room.isBusy(name)));
    }
    const room = roomOf();
    let held = 0;
    for (; !room.isBusy('a'); held++) room.add(delivery('a', 'a/1'));
    assert.is(held, 22);
    for (; room.has(delivery('a', 'a/1'), true); held++) room.add(delivery('a', 'a/1'));
    assert.is(held, 27);
    assert.not.ok(room.isBusy('b'));
  },
);

rooms('a project that holds nothing gets one into the reserve, not a batch', () => {
  const room = roomOf();
  for (let n = 0; n < 25; n++) room.add(delivery(`p${n}`, `p${n}/1`));
  assert.equal(room.ofProject('new', false), { bytes: 1, deliveries: 1 });
  const first = delivery('new', 'new/1');
  assert.ok(room.has(first, false));
  room.add(first);
  assert.not.ok(room.has(delivery('new', 'new/2'), false));
  assert.ok(room.ofProject('new', false).bytes <= 0);
});

rooms('what is removed, or added again, is counted once', () => {
  const room = roomOf();
  const all = fill(room, ['a', 'b'], 3, true);
  for (const one of all) room.add(one);
  for (const { id } of all) room.add({ ...delivery('a', 'a/0'), id });
  for (const { id } of [...all, ...all]) room.remove(id);
  assert.equal([room.size, room.left, room.free(true)], [0, 4_000, 32 * MB]);
  assert.is(room.ofProject('a', true).bytes, 28 * MB);
});

rooms.run();
