import type { Outcome } from '@gateway/plugin';
import { must } from '../run/judge.js';
import { always } from '../run/wait.js';
import { endOf } from './plugin-run.js';
import { numbers, texts, type SourceRule } from './bench.js';

/** A message is held for so many times what the broker waits. */
const LEASES = 2.5;

/** When a message is acknowledged, and what happens to one that is not. */
export const acknowledgingRules: readonly SourceRule[] = [
  {
    name: 'acknowledges-only-after-the-outcome',
    sentence: 'A message is not acknowledged while its outcome is not known.',
    needs: ['reads-every-message'],
    judge: async ({ open, run, until, stays }) => {
      const place = await open();
      await place.send(texts(['one']));
      const reading = run(place.connection, { answer: () => 'hold' });
      await until(
        () => reading.handed.length === 1,
        () => `the message was not handed over${endOf(reading)}`,
      );
      await stays(
        async () => (await place.unacknowledged()) === 1,
        () => 'the broker has an acknowledgement for a message that has not settled',
      );
    },
  },
  {
    name: 'acknowledges-what-has-settled',
    sentence:
      'A message is acknowledged when its outcome is `accepted`, `duplicate`, `dropped` or `quarantined`, and while the source goes on.',
    needs: ['acknowledges-only-after-the-outcome'],
    judge: async ({ open, run, untilUnacknowledged }) => {
      const place = await open();
      const outcomes: readonly Outcome[] = ['accepted', 'duplicate', 'dropped', 'quarantined'];
      await place.send(texts(outcomes));
      run(place.connection, { answer: (body) => body as Outcome });
      await untilUnacknowledged(place, 0);
    },
  },
  {
    name: 'does-not-acknowledge-what-was-refused',
    sentence: 'A message whose outcome is `later` is not acknowledged.',
    needs: ['acknowledges-only-after-the-outcome'],
    judge: async ({ open, run, until, stays }) => {
      const place = await open();
      await place.send(texts(['one']));
      const reading = run(place.connection, { answer: () => 'hold' });
      await until(
        () => reading.handed.length === 1,
        () => `the message was not handed over${endOf(reading)}`,
      );
      reading.abort();
      reading.settle('later');
      await stays(
        async () => (await place.unacknowledged()) === 1,
        () => 'the broker has an acknowledgement for a message that was refused',
      );
    },
  },
  {
    name: 'gives-a-refused-message-again',
    sentence: 'A message that was not acknowledged comes again in the next run.',
    needs: ['does-not-acknowledge-what-was-refused', 'ends-when-everything-has-settled'],
    judge: async ({ open, run, until, withinMs }) => {
      const place = await open();
      await place.send(texts(numbers(3)));
      const first = run(place.connection, { answer: () => 'later' });
      await until(
        () => first.handed.length > 0,
        () => `no message was handed over${endOf(first)}`,
      );
      await first.stop(withinMs);
      const second = run(place.connection);
      await until(
        () => new Set(second.bodies()).size === 3,
        () => `${new Set(second.bodies()).size} of 3 messages came again${endOf(second)}`,
      );
    },
  },
  {
    name: 'acknowledges-what-settled-and-nothing-else',
    sentence:
      'An acknowledgement is for the message that has settled, in whichever order messages settle; of a topic for those before which everything has.',
    needs: ['hands-over-without-waiting', 'acknowledges-what-has-settled', 'gives-a-refused-message-again'],
    judge: async ({ open, rig, run, until, untilUnacknowledged, withinMs }) => {
      const place = await open();
      await place.send(texts(numbers(4)));
      const first = run(place.connection, { window: 10, answer: () => 'hold' });
      await until(
        () => first.held().length >= 2,
        () => `${first.held().length} of 4 messages were handed over while none settled${endOf(first)}`,
      );
      // The newest settles, the older ones do not.
      const settled = first.held().at(-1)?.body ?? '';
      first.settle('accepted', ({ body }) => body === settled);
      await untilUnacknowledged(place, rig.shape === 'topic' ? 4 : 3);
      first.abort();
      first.settle('later');
      await first.stop(withinMs);
      const second = run(place.connection);
      const others = numbers(4).filter((body) => body !== settled);
      await until(
        () => others.every((body) => second.bodies().includes(body)),
        () =>
          `of the messages that had not settled, ${others.filter((body) => !second.bodies().includes(body)).join(', ')} did not come again`,
      );
      must(rig.shape === 'topic' || !second.bodies().includes(settled), `message ${settled} had settled and came again`);
    },
  },
  {
    name: 'keeps-coordinates-on-redelivery',
    sentence: 'A message that comes again has the same coordinates, timestamp and body.',
    needs: ['gives-a-refused-message-again'],
    judge: async ({ open, run, until, withinMs, untilHanded }) => {
      const place = await open();
      await place.send(texts(['one']));
      const first = run(place.connection, { answer: () => 'hold' });
      await untilHanded(first);
      first.abort();
      first.settle('later');
      await first.stop(withinMs);
      const second = run(place.connection);
      await until(
        () => second.handed.length > 0,
        () => `the message did not come again${endOf(second)}`,
      );
      const [before, after] = [first.handed[0]?.message, second.handed[0]?.message];
      for (const field of ['coordinates', 'timestamp'] as const) {
        must(before?.[field] === after?.[field], `${field} was ${before?.[field]}, and ${after?.[field]} when the message came again`);
      }
      must(first.handed[0]?.body === second.handed[0]?.body, 'the body was another one when the message came again');
    },
  },
  {
    name: 'keeps-a-message-that-takes-long',
    sentence: 'A message that takes longer to settle than the broker waits is not handed over a second time meanwhile.',
    needs: ['acknowledges-what-has-settled'],
    lacks: ({ rig }) => (rig.leaseMs === undefined ? 'the rig has no `leaseMs`' : undefined),
    judge: async ({ open, rig, run, untilUnacknowledged, untilHanded }) => {
      const place = await open();
      await place.send(texts(['slow']));
      const reading = run(place.connection, { workers: 2, answer: () => 'hold' });
      await untilHanded(reading);
      await always(() => reading.handed.length === 1, {
        forMs: (rig.leaseMs ?? 0) * LEASES,
        reason: () => `it was handed over again, and the broker waits ${rig.leaseMs} ms`,
      });
      reading.settle('accepted');
      await untilUnacknowledged(place, 0);
    },
  },
];
