import { must } from '../run/judge.js';
import { endOf } from './plugin-run.js';
import { numbers, texts, type SourceRule } from './bench.js';

/** How many messages are out at a time, and what a message that does not settle may hold up. */
export const windowRules: readonly SourceRule[] = [
  {
    name: 'hands-over-without-waiting',
    sentence:
      'A message is handed over without waiting for the one before it to settle: at least half of the window is unsettled at a time.',
    needs: ['reads-every-message'],
    judge: async ({ open, run, until }) => {
      const place = await open();
      await place.send(texts(numbers(40)));
      const reading = run(place.connection, { window: 10, answer: () => 'hold' });
      await until(
        () => reading.held().length >= 5,
        () => `with a window of 10, ${reading.held().length} messages were handed over while none settled${endOf(reading)}`,
      );
    },
  },
  {
    name: 'stays-within-the-window',
    sentence:
      'No more than the window is handed over and unsettled, per partition of a topic or per worker of a queue; with a window of one, one.',
    needs: ['reports-reading', 'reads-until-it-is-told-to-end'],
    judge: async ({ open, rig, second, run, until, stays }) => {
      const readings = await Promise.all(
        [
          { window: 5, workers: 2, most: 10 },
          { window: 1, workers: 1, most: rig.shape === 'topic' ? 2 : 1 },
        ].map(async ({ window, workers, most }) => {
          const place = await open(2);
          const reading = run(place.connection, { window, workers, answer: () => 'hold' });
          // While workers come and share partitions out, a broker may hand a message to two of them.
          await until(
            () => reading.states.at(-1)?.state === 'reading',
            () => `it does not report reading${endOf(reading)}`,
          );
          await place.send([...texts(numbers(20)), ...texts(numbers(20, 20), second)]);
          return { window, workers, most, reading };
        }),
      );
      const tooMany = () => readings.find(({ most, reading }) => reading.held().length > most);
      const reason = () => {
        const { window, workers, reading } = tooMany() ?? readings[0]!;
        const each = rig.shape === 'topic' ? '2 partitions' : `${workers} ${workers === 1 ? 'worker' : 'workers'}`;
        return `with a window of ${window} and ${each}, ${reading.held().length} messages were handed over while none settled`;
      };
      await until(
        () => readings.every(({ reading }) => reading.held().length > 0),
        () => 'no message was handed over',
      );
      await stays(() => !tooMany(), reason);
      // Where one settles, one more may come, and no more than that.
      for (const { reading } of readings) reading.settle('accepted', (it) => it === reading.held()[0]);
      await stays(() => !tooMany(), reason);
    },
  },
  {
    name: 'reads-on-when-something-settles',
    sentence: 'A full window is a pause: when messages settle, those behind them are handed over.',
    needs: ['hands-over-without-waiting', 'stays-within-the-window'],
    judge: async ({ open, run, until, stays }) => {
      const place = await open();
      await place.send(texts(numbers(30)));
      const reading = run(place.connection, { window: 4, answer: () => 'hold' });
      await until(
        () => reading.held().length >= 2,
        () => `${reading.held().length} messages were handed over while none settled`,
      );
      // Long enough for the plugin to be paused.
      await stays(
        () => reading.end() === undefined,
        () => `nothing settled for a while, and \`run\` ended${endOf(reading)}`,
      );
      await until(
        () => {
          reading.settle('accepted');
          return new Set(reading.bodies()).size === 30;
        },
        () =>
          `the window had been full; then everything settled, and ${new Set(reading.bodies()).size} of 30 messages were handed over${endOf(reading)}`,
      );
    },
  },
  {
    name: 'runs-as-many-readers-as-it-is-told',
    sentence: 'With two workers a queue has two readers, each with a window of its own.',
    needs: ['hands-over-without-waiting', 'stays-within-the-window'],
    lacks: ({ rig }) => (rig.shape === 'topic' ? 'the window of a topic counts per partition, whatever the workers' : undefined),
    judge: async ({ open, run, until }) => {
      const place = await open();
      await place.send(texts(numbers(40)));
      const reading = run(place.connection, { window: 4, workers: 2, answer: () => 'hold' });
      await until(
        () => reading.held().length > 4,
        () => `with a window of 4 and 2 workers, ${reading.held().length} messages were handed over while none settled`,
      );
    },
  },
  {
    name: 'goes-on-after-a-poisonous-message',
    sentence: 'A message that is quarantined holds up none behind it.',
    needs: ['reads-every-message'],
    judge: async ({ open, run, until }) => {
      const place = await open();
      await place.send(texts(numbers(20)));
      const reading = run(place.connection, { window: 2, answer: (body) => (Number(body) % 3 === 0 ? 'quarantined' : 'accepted') });
      await until(
        () => new Set(reading.bodies()).size === 20,
        () => `every third message was quarantined, and ${new Set(reading.bodies()).size} of 20 were handed over${endOf(reading)}`,
      );
    },
  },
  {
    name: 'goes-on-around-a-stuck-message',
    sentence: 'A message that does not settle holds up no other of a queue, and of a topic none of another partition.',
    needs: ['hands-over-without-waiting', 'goes-on-after-a-poisonous-message'],
    judge: async ({ open, rig, second, run, until }) => {
      const place = await open(2);
      const stuck = 'stuck';
      await place.send([...texts([stuck]), ...texts(numbers(20), second)]);
      const reading = run(place.connection, { window: 6, answer: (body) => (body === stuck ? 'hold' : 'accepted') });
      await until(
        () => numbers(20).every((body) => reading.bodies().includes(body)),
        () =>
          `one message did not settle, and ${new Set(reading.bodies().filter((body) => body !== stuck)).size} of the 20 ` +
          `${rig.shape === 'topic' ? 'in the other partition' : 'others'} were handed over${endOf(reading)}`,
      );
      must(reading.bodies().includes(stuck), 'the message that does not settle was not handed over at all');
    },
  },
];
