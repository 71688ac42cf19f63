import type { Outcome } from '@gateway/plugin';
import { randomUUID } from 'node:crypto';
import { always, eventually, must } from '../run/rule.js';
import { numbers, texts, type SourceRule } from './bench.js';

/** Multiples of `withinMs` (10 s) for a process to start, and a broker to redeliver. */
const TAKES_OVER = 6;

const LEASES = 2.5;

export const acknowledgingRules: Readonly<Record<string, SourceRule>> = {
  'acknowledges-only-after-the-outcome': {
    sentence: 'A message is not acknowledged before it has settled.',
    test: async (bench) => {
      const { place, run } = await bench.hold();
      await run.stays(
        async () =>
          (await place.unacknowledged()) !== 1 && 'a message that has not settled was acknowledged',
      );
    },
  },
  'acknowledges-what-has-settled': {
    sentence:
      'A message that settles as `accepted`, `duplicate`, `dropped` or `quarantined` is acknowledged, while the source goes on.',
    needs: ['acknowledges-only-after-the-outcome'],
    test: async (bench) => {
      const place = await bench.open({
        messages: texts(['accepted', 'duplicate', 'dropped', 'quarantined'] satisfies Outcome[]),
      });
      bench.run(place.connection, { answer: (body) => body as Outcome });
      await bench.untilUnacknowledged(place, 0);
    },
  },
  'does-not-acknowledge-what-was-refused': {
    sentence: 'A message that settles as `later` is not acknowledged.',
    needs: ['acknowledges-only-after-the-outcome'],
    test: async (bench) => {
      const { place, run } = await bench.hold();
      run.abort();
      run.settle('later');
      await run.stays(
        async () =>
          (await place.unacknowledged()) !== 1 &&
          'a message that settled as `later` was acknowledged',
      );
    },
  },
  'gives-a-refused-message-again': {
    sentence: 'A message that was not acknowledged is handed over again by the next run.',
    needs: ['does-not-acknowledge-what-was-refused', 'ends-when-everything-has-settled'],
    test: async (bench) => {
      const { connection } = await bench.open({ messages: texts(numbers(3)) });
      const first = bench.run(connection, { answer: () => 'later' });
      await first.untilHanded();
      await first.stop();
      await bench.run(connection).untilRead(3, 'none was acknowledged, then ');
    },
  },
  'acknowledges-what-settled-and-nothing-else': {
    sentence:
      'Only settled messages are acknowledged, in whichever order they settle; in a topic, only those up to the first unsettled one.',
    needs: [
      'hands-over-without-waiting',
      'acknowledges-what-has-settled',
      'gives-a-refused-message-again',
    ],
    test: async (bench) => {
      const { place, run: first } = await bench.hold(numbers(4), 2, { window: 10 });
      // Settle only the newest unsettled message.
      const settled = first.held().at(-1)!.body;
      first.settle('accepted', ({ body }) => body === settled);
      await bench.untilUnacknowledged(place, bench.isTopic ? 4 : 3);
      await first.stop('later');
      const second = bench.run(place.connection);
      const missing = () =>
        numbers(4).filter((body) => body !== settled && !second.bodies().includes(body));
      await second.until(
        () =>
          missing().length > 0 &&
          `of the messages that had not settled, ${missing().join(', ')} did not come again`,
      );
      must(
        bench.isTopic || !second.bodies().includes(settled),
        `message ${settled} had settled and came again`,
      );
    },
  },
  'takes-over-from-a-dead-reader': {
    sentence:
      'When a reader is killed, another one of the same source is handed every message that was not acknowledged.',
    needs: ['gives-a-refused-message-again'],
    skip: ({ reader }) => (reader === undefined ? 'the rig has no `reader`' : undefined),
    test: async (bench) => {
      const { connection } = await bench.open({ messages: texts(numbers(5)) });
      const sourceId = randomUUID();
      const first = await bench.openReader(connection, sourceId);
      await eventually(() => {
        must(first.end === undefined, `${first.end}`);
        return first.handed === 0 && 'the reader that is to be killed was handed no message';
      }, bench.withinMs * TAKES_OVER);
      await first.kill();
      const second = bench.run(connection, { sourceId });
      const problem = () =>
        second.distinct() < 5 &&
        `a reader was killed, and ${second.distinct()} of 5 messages were handed to the next one`;
      await second.until(problem, bench.withinMs * TAKES_OVER);
    },
  },
  'keeps-coordinates-on-redelivery': {
    sentence: 'A redelivered message has the same coordinates, timestamp and body.',
    needs: ['gives-a-refused-message-again'],
    test: async (bench) => {
      const { place, run: first } = await bench.hold();
      await first.stop('later');
      const second = bench.run(place.connection);
      await second.untilHanded();
      const [before, after] = [first.handed[0]!, second.handed[0]!];
      for (const field of ['coordinates', 'timestamp'] as const) {
        const [was, is] = [before.message[field], after.message[field]];
        must(
          was === is,
          `the message was redelivered, and its ${field} changed from ${was} to ${is}`,
        );
      }
      must(before.body === after.body, 'the message was redelivered with another body');
    },
  },
  'keeps-a-message-that-takes-long': {
    sentence:
      'A message that takes longer to settle than the lease of the broker is not handed over a second time meanwhile.',
    needs: ['acknowledges-what-has-settled'],
    skip: ({ leaseMs }) => (leaseMs === undefined ? 'the rig has no `leaseMs`' : undefined),
    test: async (bench) => {
      const { leaseMs = 0 } = bench.rig;
      const { place, run } = await bench.hold(['slow'], 1, { workers: 2 });
      await always(
        () => run.handed.length !== 1 && `it was handed over again; the lease is ${leaseMs} ms`,
        leaseMs * LEASES,
      );
      run.settle('accepted');
      await bench.untilUnacknowledged(place, 0);
    },
  },
};
