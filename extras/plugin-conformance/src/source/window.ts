import { must } from '../run/rule.js';
import { numbers, texts, type SourceRule } from './bench.js';

export const windowRules: Readonly<Record<string, SourceRule>> = {
  'hands-over-without-waiting': {
    sentence:
      'A message is handed over without waiting for the previous one to settle: at least half of the window is unsettled at a time.',
    test: async (bench) => void (await bench.hold(numbers(40), 5, { window: 10 })),
  },
  'stays-within-the-window': {
    sentence:
      'At most `window` messages are unsettled, per partition of a topic or per worker of a queue; with a window of 1, one.',
    needs: ['reports-reading', 'reads-until-it-is-told-to-end'],
    test: async (bench) => {
      const cases = [
        { window: 5, workers: 2, most: 10 },
        { window: 1, workers: 1, most: bench.isTopic ? 2 : 1 },
      ].map(async ({ window, workers, most }) => {
        const { place, run } = await bench.start({
          partitions: 2,
          window,
          workers,
          answer: () => 'hold',
        });
        // Send only once the plugin reads, because a broker may deliver twice while workers join.
        await run.untilReading();
        await place.send(bench.spread());
        await run.untilHeld();
        const readers = bench.isTopic ? '2 partitions' : `${workers} worker(s)`;
        const tooMany = () =>
          run.held().length > most &&
          `with a window of ${window} and ${readers}, ${run.held().length} messages were handed over while none settled`;
        await run.stays(tooMany);
        // After one message settles, one more may be handed over.
        const [first] = run.held();
        run.settle('accepted', (it) => it === first);
        await run.stays(tooMany);
      });
      await Promise.all(cases);
    },
  },
  'reads-on-when-something-settles': {
    sentence: 'A full window is a pause: when messages settle, those behind them are handed over.',
    needs: ['hands-over-without-waiting', 'stays-within-the-window'],
    test: async (bench) => {
      const { run } = await bench.hold(numbers(30), 2, { window: 4 });
      // Give the plugin time to pause before the messages settle.
      await run.stays(() => run.end && 'no message settled for a while, and `run` ended');
      await run.until(() => {
        run.settle('accepted');
        return (
          run.distinct() !== 30 &&
          `the window was full, then every message settled, and ${run.distinct()} of 30 were handed over`
        );
      });
    },
  },
  'goes-on-around-a-stuck-message': {
    sentence:
      'A message that does not settle holds up no other message of a queue, and in a topic none of another partition.',
    needs: ['hands-over-without-waiting'],
    test: async (bench) => {
      const { run } = await bench.start({
        partitions: 2,
        messages: [...texts(['stuck']), ...bench.second(numbers(20))],
        window: 6,
        answer: (body) => (body === 'stuck' ? 'hold' : 'accepted'),
      });
      const others = () => numbers(20).filter((body) => run.bodies().includes(body)).length;
      const where = bench.isTopic ? 'in the other partition' : 'others';
      await run.until(
        () =>
          others() < 20 &&
          `one message did not settle, and ${others()} of the 20 ${where} were handed over`,
      );
      must(run.bodies().includes('stuck'), 'the message that does not settle was not handed over');
    },
  },
};
