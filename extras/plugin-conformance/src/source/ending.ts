import { must } from '../run/rule.js';
import { numbers, texts, type SourceRule } from './bench.js';

export const endingRules: Readonly<Record<string, SourceRule>> = {
  'hands-nothing-over-after-the-abort': {
    sentence:
      'After the signal has aborted, no message is handed over, although the window has room.',
    needs: ['hands-over-without-waiting', 'stays-within-the-window'],
    test: async (bench) => {
      const { run } = await bench.hold(numbers(30), 2, { window: 4 });
      run.abort();
      run.settle('accepted');
      const late = () => run.handed.filter((handed) => handed.late).length;
      await run.stays(
        () => late() > 0 && `${late()} messages were handed over after the signal had aborted`,
      );
    },
  },
  'waits-for-what-it-has-handed-over': {
    sentence:
      '`run` does not resolve while a message is unsettled. (The gateway settles every message in time, at worst as `later`.)',
    test: async (bench) => {
      const { run } = await bench.hold();
      run.abort();
      await run.stays(() => run.end && '`run` ended with a message unsettled');
    },
  },
  'ends-when-everything-has-settled': {
    sentence:
      '`run` resolves within ten seconds after its signal aborted and every message settled; an idle run does too.',
    test: async (bench) => {
      const { run: busy } = await bench.hold(numbers(3), 1);
      const { run: idle } = await bench.start({ workers: 2 });
      await idle.until(() => idle.states.length === 0 && 'it reports nothing');
      await Promise.all([busy.stop('accepted'), idle.stop()]);
    },
  },
  'acknowledges-what-settles-while-it-ends': {
    sentence: 'Messages that settle after the abort are acknowledged before `run` resolves.',
    needs: [
      'hands-over-without-waiting',
      'acknowledges-what-has-settled',
      'waits-for-what-it-has-handed-over',
      'ends-when-everything-has-settled',
    ],
    test: async (bench) => {
      const { place, run } = await bench.hold(numbers(3));
      run.abort();
      // One message settles right after the abort, the others while the plugin waits for them.
      run.settle('accepted', ({ body }) => body === '0');
      await new Promise((resolve) => setTimeout(resolve, 300));
      await run.stop('accepted');
      await bench.untilUnacknowledged(place, 0);
    },
  },
  'goes-on-where-it-ended': {
    sentence:
      '`run` can be called again: it hands over what was not acknowledged, and nothing that was.',
    needs: [
      'hands-nothing-over-after-the-abort',
      'acknowledges-what-settles-while-it-ends',
      'gives-a-refused-message-again',
      'hands-each-message-over-once',
    ],
    test: async (bench) => {
      const { connection } = await bench.open({ messages: texts(numbers(20)) });
      const first = bench.run(connection, {
        window: 4,
        answer: (_body, before) => (before < 10 ? 'accepted' : 'hold'),
      });
      await first.untilHanded(11);
      await first.stop('later');
      const accepted = first.handed
        .filter(({ outcome }) => outcome === 'accepted')
        .map(({ body }) => body);
      const second = bench.run(connection);
      const lost = () =>
        numbers(20).filter((body) => !accepted.includes(body) && !second.bodies().includes(body))
          .length;
      await second.until(
        () =>
          lost() > 0 &&
          `the first run ended, and ${lost()} of the ${20 - accepted.length} messages that it had not acknowledged are lost`,
      );
      const again = () => accepted.filter((body) => second.bodies().includes(body)).length;
      await second.stays(
        () =>
          again() > 0 &&
          `the first run ended, and ${again()} messages that it had acknowledged came again`,
      );
    },
  },
  'keeps-two-sources-apart': {
    sentence:
      'Two sources run at once: each gets its own messages, and the end of one does not end the other.',
    needs: ['hands-each-message-over-once', 'ends-when-everything-has-settled'],
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
};
