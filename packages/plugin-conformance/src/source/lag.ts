import { must } from '../run/judge.js';
import { endOf, type Run } from './plugin-run.js';
import { numbers, texts, type SourceRule, type Stage } from './bench.js';

/** The contract says about once a second, which is what is watched by default. */
const TELLING_PATIENCE = 2.5;

/** What is told of messages that were not read. A plugin may say nothing at all of it. */
export const lagRules: readonly SourceRule[] = [
  {
    name: 'reads-without-lag',
    sentence: 'Without `context.lag`, which is absent while metrics are off, messages are read all the same.',
    needs: ['reads-every-message'],
    judge: async ({ open, run, untilHanded }) => {
      const place = await open();
      await place.send(texts(['one']));
      await untilHanded(run(place.connection, { wantsLag: false }));
    },
  },
  {
    name: 'tells-lag-as-a-number-of-messages',
    sentence: 'The reported lag of a partition is a whole number of messages, not negative, or null.',
    needs: ['reads-every-message'],
    judge: async (stage) => {
      const { reading, goOn } = await holdSome(stage);
      await untilLagIsTold(stage, reading);
      goOn();
      await untilLagIsTold(stage, reading);
      for (const { partition, messages } of reading.lags) {
        must(typeof partition === 'string', `lag was told of a partition that is no text: ${String(partition)}`);
        const counts = messages === null || (Number.isSafeInteger(messages) && messages >= 0);
        must(counts, `the lag of partition "${partition}" was told as ${String(messages)}`);
      }
    },
  },
  {
    name: 'forgets-lag-when-it-ends',
    sentence: 'Each partition whose lag was told is forgotten with null before `run` ends, and nothing is told after that.',
    needs: ['ends-when-everything-has-settled', 'waits-for-what-it-has-handed-over'],
    judge: async (stage) => {
      const { reading, goOn } = await holdSome(stage);
      await untilLagIsTold(stage, reading);
      reading.abort();
      goOn();
      await reading.stop(stage.withinMs);
      const last = new Map(reading.lags.map(({ partition, messages }) => [partition, messages]));
      const kept = [...last].filter(([, messages]) => messages !== null).map(([partition]) => `"${partition}"`);
      must(kept.length === 0, `\`run\` has ended, and the lag of partition ${kept.join(', ')} stands`);
      const told = reading.lags.length;
      await stage.stays(
        () => reading.lags.length === told,
        () => 'lag was told after `run` had ended',
      );
    },
  },
];

/** A run that has some messages in hand and more before it; `goOn` accepts what it has and what still comes. */
async function holdSome({ open, second, run, until }: Stage): Promise<{ reading: Run; goOn(): void }> {
  const place = await open(2);
  await place.send([...texts(numbers(20)), ...texts(numbers(20, 20), second)]);
  let going = false;
  const reading = run(place.connection, { window: 5, answer: () => (going ? 'accepted' : 'hold') });
  await until(
    () => reading.held().length > 0,
    () => `no message was handed over${endOf(reading)}`,
  );
  const goOn = () => {
    going = true;
    reading.settle('accepted');
  };
  return { reading, goOn };
}

/** Gives the plugin some time to tell once more. It may say nothing at all. */
async function untilLagIsTold({ quietMs }: Stage, { lags }: Run): Promise<void> {
  const deadline = performance.now() + TELLING_PATIENCE * quietMs;
  const before = lags.length;
  while (performance.now() < deadline && lags.length === before) await new Promise((resolve) => setTimeout(resolve, quietMs / 20));
}
