import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EndpointQueue, SLOW_AFTER_MS } from '#agent/flow-control/endpoint-queue';
import { DeliveriesInFlight } from '#agent/delivery/in-flight';
import type { InFlightDelivery } from '#agent/model/delivery';

const queue = suite('agent/delivery/in-flight');

function delivery(number: number): InFlightDelivery {
  return {
    projectId: 'p',
    id: String(number),
    occurredAtMs: 0,
    eventId: 'e',
    endpointId: 'a',
    subscriptionId: null,
    isTransformed: false,
    attempts: 0,
    eventType: 't',
    sourceId: null,
    traceparent: null,
    orderKey: null,
    headers: {},
    body: Buffer.alloc(0),
    agentId: 1,
  };
}

const numbers = (deliveries: readonly InFlightDelivery[]) => deliveries.map(({ id }) => Number(id));

queue('deliveries leave in the order in which they came, however many', () => {
  const one = new EndpointQueue('a', 'p');
  let next = 0;
  let expected = 0;
  // Ten thousand are added in uneven batches while others are removed.
  for (let turn = 0; next < 10_000; turn++) {
    for (let k = 0; k < (turn % 7) * 3; k++) one.push(delivery(next++));
    for (let k = 0; k < (turn % 5) * 3; k++) {
      const taken = one.shift();
      if (taken) assert.is(Number(taken.id), expected++);
    }
    assert.is(one.waiting, next - expected);
  }
  for (let taken = one.shift(); taken; taken = one.shift()) assert.is(Number(taken.id), expected++);
  assert.is(expected, next);
  assert.is(one.waiting, 0);
  assert.is(one.shift(), undefined);
});

queue('all but those that have waited longest are taken, whatever left before', () => {
  const one = new EndpointQueue('a', 'p');
  for (let n = 0; n < 10; n++) one.push(delivery(n));
  one.shift();
  one.shift();
  assert.equal(numbers(one.takeAllBut(3)), [5, 6, 7, 8, 9]);
  assert.is(one.waiting, 3);
  assert.is(one.shift()?.id, '2');
  one.push(delivery(10));
  assert.equal(numbers(one.takeAllBut(0)), [3, 4, 10]);
  assert.is(one.waiting, 0);
  assert.is(one.shift(), undefined);
  one.push(delivery(11));
  assert.is(one.shift()?.id, '11');
  assert.equal(one.takeAllBut(5), []);
});

queue('an endpoint is slow as long as its oldest request is', () => {
  const one = new EndpointQueue('a', 'p');
  assert.not.ok(one.isSlow(1e9));
  const [first, second] = [{ startedAtMs: 0 }, { startedAtMs: 500 }];
  one.begin(first);
  one.begin(second);
  assert.is(one.sending, 2);
  assert.not.ok(one.isSlow(SLOW_AFTER_MS));
  assert.ok(one.isSlow(SLOW_AFTER_MS + 1));
  one.end(first);
  assert.not.ok(one.isSlow(SLOW_AFTER_MS + 1));
  assert.ok(one.isSlow(SLOW_AFTER_MS + 501));
  one.end(second);
  one.end(second);
  assert.is(one.sending, 0);
  assert.not.ok(one.isSlow(1e9));
});

function inFlightOf(maxOutstanding = 10): DeliveriesInFlight {
  const releaser = { release: () => undefined, claimedAgain: () => undefined };
  return new DeliveriesInFlight({
    lease: { agentId: 1 },
    releaser,
    maxOutstanding,
    maxOutstandingBytes: 32 * 1024 * 1024,
  });
}

queue('what is reserved takes room until it is held and recorded, or cancelled', () => {
  const inFlight = inFlightOf();
  const [one, other] = [delivery(1), delivery(2)];
  inFlight.reserve(one);
  inFlight.reserve(other);
  assert.is(inFlight.room, 8);
  inFlight.add([one]);
  inFlight.cancel([other]);
  assert.equal([inFlight.room, inFlight.counts().waiting], [9, 1]);
  const again = delivery(1);
  inFlight.reserve(again);
  inFlight.cancel([again]);
  assert.ok(inFlight.has(one.id), 'a repeat of what is held frees nothing');
  // Claimed again before the answer about its first attempt arrived.
  inFlight.add([{ ...one, attempts: 1 }]);
  inFlight.recorded([{ id: one.id, number: 1 }]);
  assert.ok(inFlight.has(one.id));
  inFlight.recorded([{ id: one.id, number: 2 }]);
  assert.is(inFlight.room, 10);
});

queue('an endpoint has the reserve while it answers, and no longer when a request hangs', () => {
  const inFlight = inFlightOf();
  inFlight.add(Array.from({ length: 8 }, (_, n) => ({ ...delivery(n), endpointId: String(n) })));
  assert.ok(inFlight.isReserve);
  const its = inFlight.queues.get('0')!;
  assert.not.ok(inFlight.hasRoomFor(its));
  inFlight.release([1, 2, 3].map(delivery));
  inFlight.add([1, 2, 3].map((n) => ({ ...delivery(n), projectId: 'other' })));
  inFlight.setPrompt(its, true);
  assert.ok(inFlight.hasRoomFor(its));
  its.begin({ startedAtMs: performance.now() - SLOW_AFTER_MS - 1 });
  assert.not.ok(inFlight.hasRoomFor(its));
});

queue(
  'who waits for room of a project or an endpoint is told once, when something of it is recorded',
  () => {
    const inFlight = inFlightOf();
    const told: string[] = [];
    inFlight.onRoom((projectId) => told.push(projectId));
    inFlight.add([
      delivery(1),
      delivery(2),
      { ...delivery(3), projectId: 'other', endpointId: 'b' },
      { ...delivery(4), endpointId: 'c' },
    ]);
    inFlight.awaitRoom('p');
    inFlight.recorded([{ id: '3', number: 1 }]);
    assert.equal(told, []);
    inFlight.recorded(['1', '2'].map((id) => ({ id, number: 1 })));
    assert.equal(told, ['p']);
    inFlight.awaitRoom('c');
    inFlight.release([delivery(4)]);
    assert.equal(told, ['p', 'p']);
  },
);

queue.run();
