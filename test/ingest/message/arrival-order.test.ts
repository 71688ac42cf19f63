import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ArrivalOrder } from '#ingest/message/arrival-order';
import type { SourceMessage } from '#ingest/message/source-message';

const order = suite('ingest/message/arrival-order');

const messageOf = (id: string, n: number) => ({ source: { id }, n }) as unknown as SourceMessage;

order('messages of a source are passed on as they came, in whatever order they are ready', () => {
  const given = fc.uniqueArray(fc.nat(30), { minLength: 1 });
  fc.assert(
    fc.property(given, fc.uniqueArray(fc.nat(30)), (ready, left) => {
      const passed: unknown[] = [];
      const it = new ArrivalOrder((message) => passed.push((message as { n?: number }).n));
      const messages = Array.from({ length: 31 }, (_, n) => messageOf(`s${n % 2}`, n));
      for (const message of messages) it.enter(message);
      for (const n of left) it.leave(messages[n]!);
      for (const n of ready) if (!left.includes(n)) it.ready(messages[n]!);
      for (const parity of [0, 1]) {
        const numbers = passed.filter((n) => (n as number) % 2 === parity);
        const all = messages.flatMap((_, n) => (n % 2 === parity && !left.includes(n) ? n : []));
        assert.equal(numbers, all.slice(0, numbers.length), 'a beginning of all');
        const next = all[numbers.length];
        assert.ok(next === undefined || !ready.includes(next), 'and as long as it can be');
      }
    }),
  );
});

order('what comes behind a message that stays with its broker stays there too', () => {
  const passed: SourceMessage[] = [];
  const it = new ArrivalOrder((message) => passed.push(message));
  const [first, second, third, other] = [
    messageOf('a', 1),
    messageOf('a', 2),
    messageOf('a', 3),
    messageOf('b', 1),
  ] as const;
  for (const message of [first, second, third, other]) it.enter(message);
  it.ready(first);
  it.ready(third);
  assert.equal(it.cut(second), [third]);
  it.ready(other);
  assert.equal(passed, [first, other]);
});

order('one that has not entered is passed on at once', () => {
  const passed: SourceMessage[] = [];
  const it = new ArrivalOrder((message) => passed.push(message));
  const one = messageOf('a', 1);
  it.ready(one);
  assert.equal(passed, [one]);
});

order.run();
