import type { Outcome } from '@gateway/plugin';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { always, eventually, must } from '../run/rule.js';
import { numbers, texts, type SourceRule } from './bench.js';

/** Multiples of `withinMs` (10 s) for a process to start, and a broker to redeliver. */
const TAKES_OVER = 6;

const LEASES = 2.5;

export const acknowledgingRules: Readonly<Record<string, SourceRule>> = {
  'ends-when-everything-has-settled': {
    sentence:
      'After its signal has aborted, `run` hands over nothing more, waits until every message has settled, and resolves within ten seconds of that; the next run hands over what was not acknowledged, and nothing that was.',
    needs: ['keeps-the-window'],
    test: async (bench) => {
      const { run: idle } = await bench.start({ workers: 2 });
      const { place, run: first } = await bench.hold(numbers(20), 2, { window: 4 });
      await idle.until(() => idle.states.length === 0 && 'it reports nothing');
      first.abort();
      // One message settles right after the abort, the others while the plugin waits for them.
      const [oldest] = first.held();
      first.settle('accepted', (it) => it === oldest);
      const late = () => first.handed.filter((handed) => handed.late).length;
      await first.stays(
        () =>
          (first.end && '`run` ended with a message unsettled') ||
          (late() > 0 && `${late()} messages were handed over after the signal had aborted`),
      );
      await Promise.all([first.stop('accepted'), idle.stop()]);
      const accepted = first.bodies();
      await bench.untilUnacknowledged(place, 20 - first.distinct());
      const second = bench.run(place.connection);
      const lost = () =>
        numbers(20).filter((body) => !accepted.includes(body) && !second.bodies().includes(body))
          .length;
      await second.until(
        () =>
          lost() > 0 &&
          `the first run ended, and ${lost()} of the ${20 - first.distinct()} messages that it had not acknowledged are lost`,
      );
      const again = () => accepted.filter((body) => second.bodies().includes(body)).length;
      await second.stays(
        () =>
          again() > 0 &&
          `the first run ended, and ${again()} messages that it had acknowledged came again`,
      );
    },
  },
  'acknowledges-what-settled-and-nothing-else': {
    sentence:
      'A message is acknowledged once it has settled as `accepted`, `duplicate`, `dropped` or `quarantined`, in whichever order; in a topic, once those before it have too. Every other one comes again in the next run, the same in coordinates and timestamp.',
    needs: ['ends-when-everything-has-settled'],
    test: async (bench) => {
      const outcomes = [
        'later',
        'accepted',
        'duplicate',
        'dropped',
        'quarantined',
      ] satisfies Outcome[];
      const { place, run: first } = await bench.hold(outcomes);
      const isUntouched = (otherwise: string) =>
        first.stays(async () => (await place.unacknowledged()) < outcomes.length && otherwise);
      await isUntouched('a message that has not settled was acknowledged');
      first.settle('later', ({ body }) => body === 'later');
      await isUntouched('a message that settled as `later` was acknowledged');
      // The newest one.
      first.settle('quarantined', ({ body }) => body === 'quarantined');
      await bench.untilUnacknowledged(place, bench.isTopic ? 5 : 4);
      await first.stop('later');
      const second = bench.run(place.connection, {
        answer: (body) => (body === 'later' ? 'accepted' : (body as Outcome)),
      });
      const due = outcomes.filter((body) => bench.isTopic || body !== 'quarantined');
      const missing = () => due.filter((body) => !second.bodies().includes(body)).join(', ');
      await second.until(
        () =>
          missing() !== '' &&
          `of the messages that were not acknowledged, those to settle as ${missing()} did not come again`,
      );
      await bench.untilUnacknowledged(place, 0);
      for (const { body, message } of second.handed) {
        must(
          due.some((it) => it === body),
          `a message had settled as ${body} and came again`,
        );
        const before = first.handed.find((it) => it.body === body)!.message;
        for (const field of ['coordinates', 'timestamp'] as const)
          must(
            before[field] === message[field],
            `a message was redelivered, and its ${field} changed from ${before[field]} to ${message[field]}`,
          );
      }
    },
  },
  'takes-over-from-a-dead-reader': {
    sentence:
      'When a reader is killed, another one of the same source is handed every message that was not acknowledged.',
    needs: ['acknowledges-what-settled-and-nothing-else'],
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
      await second.untilRead(5, 'a reader was killed; ', bench.withinMs * TAKES_OVER);
    },
  },
  'keeps-a-message-that-takes-long': {
    sentence:
      'A message that takes longer to settle than the lease of the broker is not handed over a second time meanwhile.',
    needs: ['acknowledges-what-settled-and-nothing-else'],
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
  'keeps-two-sources-apart': {
    sentence:
      'Two sources run at once: each gets its own messages, and the end of one does not end the other.',
    needs: ['ends-when-everything-has-settled'],
    test: async (bench) => {
      const [one, two] = [await bench.open(), await bench.open()];
      const [first, second] = [bench.run(one.connection), bench.run(two.connection)];
      await one.send(texts(['for one']));
      await two.send(texts(['for two']));
      await first.untilHanded();
      await second.untilHanded();
      await first.stop();
      await two.send(texts(['for two again']));
      await second.until(
        () =>
          second.handed.length < 2 && 'one of two sources was ended, and the other no longer reads',
      );
      const strays = [
        ...first.bodies().filter((body) => body !== 'for one'),
        ...second.bodies().filter((body) => body === 'for one'),
      ];
      must(strays.length === 0, `a source got a message of the other: ${strays.join(', ')}`);
    },
  },
  'tells-lag-as-a-number-of-messages': {
    sentence:
      'If lag is reported, it is a whole number of messages for each partition, and null before `run` ends; `watch` reports it while nothing is read, and resolves when its signal aborts.',
    needs: ['ends-when-everything-has-settled'],
    test: async (bench) => {
      const { connection } = await bench.open({ partitions: 2, messages: bench.spread() });
      await bench.watch(connection, (lags) => {
        const sum = [...lags.values()].reduce<number>((total, it) => total + (it ?? 0), 0);
        return (
          sum !== 40 &&
          `40 messages wait and nothing reads; \`watch\` reported ${JSON.stringify([...lags])}`
        );
      });
      let going = false;
      const run = bench.run(connection, { window: 6, answer: () => (going ? 'accepted' : 'hold') });
      await run.untilHeld();
      // A plugin need not report: the contract asks for a report about every second.
      const deadline = performance.now() + 2.5 * bench.quietMs;
      const { length } = run.lags;
      while (performance.now() < deadline && run.lags.length === length) await sleep(20);
      run.abort();
      going = true;
      await run.stop('accepted');
      const last = new Map<string, number | null>();
      for (const { partition, messages } of run.lags) {
        must(
          messages === null || (Number.isSafeInteger(messages) && messages >= 0),
          `the lag of partition "${partition}" was reported as ${String(messages)}`,
        );
        last.set(partition, messages);
      }
      const kept = [...last].find(([, messages]) => messages !== null);
      must(
        kept === undefined,
        `\`run\` has ended, and the lag of partition "${kept?.[0]}" was not reported as null`,
      );
    },
  },
};
