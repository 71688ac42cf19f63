import { must } from '../run/judge.js';
import { endOf } from './plugin-run.js';
import { numbers, texts, type SourceRule } from './bench.js';

/** What happens when the signal aborts, and after that. */
export const endingRules: readonly SourceRule[] = [
  {
    name: 'hands-nothing-over-after-the-abort',
    sentence: 'When the signal has aborted, no further message is handed over, although room becomes free.',
    needs: ['hands-over-without-waiting', 'stays-within-the-window'],
    judge: async ({ open, run, until, stays }) => {
      const place = await open();
      await place.send(texts(numbers(30)));
      const reading = run(place.connection, { window: 4, answer: () => 'hold' });
      await until(
        () => reading.held().length >= 2,
        () => `${reading.held().length} messages were handed over`,
      );
      reading.abort();
      reading.settle('accepted');
      await stays(
        () => !reading.handed.some(({ late }) => late),
        () => `${reading.handed.filter(({ late }) => late).length} messages were handed over after the signal had aborted`,
      );
    },
  },
  {
    name: 'waits-for-what-it-has-handed-over',
    sentence:
      '`run` does not resolve while something that it handed over has not settled. (The gateway settles everything in time, with `later` at worst.)',
    needs: ['reads-every-message'],
    judge: async ({ open, run, until, stays }) => {
      const place = await open();
      await place.send(texts(['one']));
      const reading = run(place.connection, { answer: () => 'hold' });
      await until(
        () => reading.held().length === 1,
        () => `the message was not handed over${endOf(reading)}`,
      );
      reading.abort();
      await stays(
        () => reading.end() === undefined,
        () => `\`run\` ended with a message unsettled${endOf(reading)}`,
      );
    },
  },
  {
    name: 'ends-when-everything-has-settled',
    sentence: '`run` resolves within ten seconds after its signal aborted and everything settled; so does one that had nothing to do.',
    needs: ['reads-every-message'],
    judge: async ({ open, run, until, withinMs }) => {
      const [busy, idle] = [await open(), await open()];
      await busy.send(texts(numbers(3)));
      const [reading, waiting] = [run(busy.connection, { answer: () => 'hold' }), run(idle.connection, { workers: 2 })];
      await until(
        () => reading.held().length > 0 && waiting.states.length > 0,
        () => 'nothing was handed over',
      );
      reading.abort();
      reading.settle('accepted');
      await Promise.all([reading.stop(withinMs), waiting.stop(withinMs)]);
    },
  },
  {
    name: 'acknowledges-what-settles-while-it-ends',
    sentence: 'What settles after the abort is acknowledged before `run` resolves.',
    needs: [
      'hands-over-without-waiting',
      'acknowledges-what-has-settled',
      'waits-for-what-it-has-handed-over',
      'ends-when-everything-has-settled',
    ],
    judge: async ({ open, run, until, withinMs, untilUnacknowledged }) => {
      const place = await open();
      await place.send(texts(numbers(3)));
      const reading = run(place.connection, { answer: () => 'hold' });
      await until(
        () => reading.held().length === 3,
        () => `${reading.held().length} of 3 messages were handed over while none settled`,
      );
      reading.abort();
      // Those that settle with the abort, and those that settle when the plugin is already waiting.
      reading.settle('accepted', ({ body }) => body === '0');
      await new Promise((resolve) => setTimeout(resolve, 300));
      reading.settle('accepted');
      await reading.stop(withinMs);
      await untilUnacknowledged(place, 0);
    },
  },
  {
    name: 'goes-on-where-it-ended',
    sentence: '`run` can be called again: the next run hands over what was not acknowledged, and nothing that was.',
    needs: [
      'hands-nothing-over-after-the-abort',
      'acknowledges-what-settles-while-it-ends',
      'gives-a-refused-message-again',
      'hands-each-message-over-once',
    ],
    judge: async ({ open, run, until, stays, withinMs }) => {
      const place = await open();
      await place.send(texts(numbers(20)));
      const first = run(place.connection, { window: 4, answer: (_body, before) => (before < 10 ? 'accepted' : 'hold') });
      await until(
        () => first.handed.length > 10,
        () => `${first.handed.length} of 20 messages were handed over${endOf(first)}`,
      );
      first.abort();
      first.settle('later');
      await first.stop(withinMs);
      const accepted = first.handed.filter(({ outcome }) => outcome === 'accepted').map(({ body }) => body);
      const rest = numbers(20).filter((body) => !accepted.includes(body));
      const second = run(place.connection);
      await until(
        () => rest.every((body) => second.bodies().includes(body)),
        () =>
          `after an end, ${rest.filter((body) => !second.bodies().includes(body)).length} of ${rest.length} messages are lost${endOf(second)}`,
      );
      await stays(
        () => !accepted.some((body) => second.bodies().includes(body)),
        () => `after an end, ${accepted.filter((body) => second.bodies().includes(body)).length} messages came that were acknowledged`,
      );
    },
  },
  {
    name: 'keeps-two-sources-apart',
    sentence: 'Two sources are read at once, each gets its own messages, and the end of one is not the end of the other.',
    needs: ['hands-each-message-over-once', 'ends-when-everything-has-settled'],
    judge: async ({ open, run, until, withinMs }) => {
      const [one, two] = [await open(), await open()];
      const [first, second] = [run(one.connection), run(two.connection)];
      await one.send(texts(['for one']));
      await two.send(texts(['for two']));
      await until(
        () => first.handed.length > 0 && second.handed.length > 0,
        () => `two sources were read, and got ${first.handed.length} and ${second.handed.length} of one message each${endOf(first)}`,
      );
      await first.stop(withinMs);
      await two.send(texts(['for two again']));
      await until(
        () => second.handed.length >= 2,
        () => `one of two sources was ended, and the other reads no more${endOf(second)}`,
      );
      const strays = [...first.bodies().filter((body) => body !== 'for one'), ...second.bodies().filter((body) => body === 'for one')];
      must(strays.length === 0, `a source got a message of the other: ${strays.join(', ')}`);
    },
  },
  {
    name: 'leaves-its-arguments-as-they-are',
    sentence: 'The connection and the settings are not changed.',
    needs: ['ends-when-everything-has-settled'],
    judge: async ({ open, rig, plugin, settings, run, withinMs, untilHanded }) => {
      const place = await open();
      const given = { connection: structuredClone(place.connection), settings: structuredClone(settings) };
      const before = JSON.stringify(given);
      await plugin.check(given.connection, { settings: given.settings, signal: new AbortController().signal }).catch(() => undefined);
      await place.send(texts(['one']));
      const reading = run(given.connection, { settings: given.settings });
      await untilHanded(reading);
      await reading.stop(withinMs);
      must(JSON.stringify(given) === before, `the ${rig.shape}'s connection or settings were changed`);
    },
  },
];
