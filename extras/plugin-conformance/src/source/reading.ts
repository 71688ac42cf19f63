import { must } from '../run/rule.js';
import { numbers, texts, type SourceRule } from './bench.js';

/**
 * The largest allowed difference between a timestamp and this machine's clock. Clocks may differ,
 * but a timestamp in seconds is off by decades.
 */
const CLOCKS_DIFFER_MS = 24 * 60 * 60_000;

const HEADERS = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'X-Origin': 'Zürich',
};
const TEXTS = [
  '{ "price": 1.10,\r\n\t"big": 9007199254740993, "a": 1, "a": 2 }\n',
  '  ü 日本 \u00e9 e\u0301  ',
  'x'.repeat(200_000),
];
const BINARY = [0, 255, 254, 10, 13, 0xc3, 0x28, 0xed, 0xa0, 0x80];

export const readingRules: Readonly<Record<string, SourceRule>> = {
  'reads-each-message-once': {
    sentence:
      '`run` reports `reading` once it is connected, waits for messages, and hands each accepted one over once, whichever partition it is in.',
    test: async (bench) => {
      const { place, run } = await bench.start({ partitions: 2, window: 20, workers: 2 });
      // Send only once the plugin reads, because a broker may deliver twice while workers join.
      await run.untilReading();
      await run.stays(() => run.end && 'no message came, and `run` ended');
      await place.send(bench.spread());
      await run.untilRead(40);
      await run.stays(
        () =>
          run.handed.length !== 40 &&
          `${run.handed.length - 40} messages were handed over a second time`,
      );
    },
  },
  'hands-over-what-was-sent': {
    sentence:
      'A message has its body byte for byte, its headers as text under the names they were sent with, the time when the broker received it in milliseconds since 1970, and coordinates that no other message of the source has.',
    test: async (bench) => {
      const { bodies: carried = {}, headers: hasHeaders = true } = bench.rig;
      const { binary = true, empty = true } = carried;
      const headers: Record<string, string> = hasHeaders ? HEADERS : {};
      const bodies = [
        ...TEXTS.map((text) => Buffer.from(text)),
        ...(binary ? [Buffer.from(BINARY)] : []),
        ...(empty ? [Buffer.alloc(0)] : []),
      ];
      const same = Array<string>(50).fill('the same');
      const messages = [
        ...bodies.map((body) => ({ body, headers, partition: 0 })),
        ...texts(same),
        ...bench.second(same),
      ];
      const { run } = await bench.start({ partitions: 2, messages, workers: 2 });
      const names = () => new Set(run.handed.map(({ message }) => message.coordinates)).size;
      await run.until(
        () =>
          names() < messages.length &&
          `${messages.length} messages were sent, and the ${run.handed.length} that were handed over have ${names()} different coordinates`,
      );
      for (const body of bodies) {
        const handed = run.handed.find(({ message }) => body.equals(message.body));
        const shown = JSON.stringify(body.subarray(0, 60).toString('latin1'));
        must(handed !== undefined, `a body of ${body.length} bytes (${shown}) was changed`);
        const { timestamp, headers: given } = handed.message;
        must(
          Math.abs(timestamp - Date.now()) < CLOCKS_DIFFER_MS,
          `a message that was sent just now has the timestamp ${timestamp}`,
        );
        for (const [name, value] of Object.entries(headers))
          must(
            given[name] === value,
            `the header ${name}: ${value} was handed over as ${JSON.stringify(given[name]) ?? 'nothing'}`,
          );
        const other = Object.entries(given).find(([, value]) => typeof value !== 'string');
        must(!other, `the header ${other?.[0]} is not a string`);
      }
    },
  },
  'keeps-the-order': {
    sentence:
      'Messages are handed over in the order in which they were sent; in a topic, within each partition.',
    skip: ({ ordered, shape }) =>
      (ordered ?? shape === 'topic') ? undefined : 'the rig says that the broker keeps no order',
    test: async (bench) => {
      const sent = [numbers(150), bench.isTopic ? numbers(150, 1000) : []];
      const { run } = await bench.start({
        partitions: 2,
        messages: [...texts(sent[0]!), ...bench.second(sent[1]!)],
        window: 7,
      });
      await run.untilHanded(sent.flat().length);
      for (const bodies of sent) {
        const came = run.bodies().filter((body) => bodies.includes(body));
        const at = came.findIndex((body, index) => body !== bodies[index]);
        must(at < 0, `message ${bodies[at]} was expected, and ${came[at]} came`);
      }
    },
  },
  'keeps-the-window': {
    sentence:
      'While messages wait, between half of `window` and all of it are unsettled, per partition of a topic or per worker of a queue; when some settle, those behind them are handed over.',
    test: async (bench) => {
      const cases = [
        { window: 5, workers: 2, least: 3, most: 10 },
        { window: 1, workers: 1, least: 1, most: bench.isTopic ? 2 : 1 },
      ].map(async ({ window, workers, least, most }) => {
        const { place, run } = await bench.start({
          partitions: 2,
          window,
          workers,
          answer: () => 'hold',
        });
        await run.untilReading();
        await place.send(bench.spread());
        await run.untilHeld(least);
        const readers = bench.isTopic ? '2 partitions' : `${workers} worker(s)`;
        const tooMany = () =>
          run.held().length > most &&
          `with a window of ${window} and ${readers}, ${run.held().length} messages were handed over while none settled`;
        await run.stays(tooMany);
        // After one message settles, one more may be handed over.
        const [first] = run.held();
        run.settle('accepted', (it) => it === first);
        await run.stays(tooMany);
        await run.until(() => {
          run.settle('accepted');
          return (
            run.distinct() !== 40 &&
            `the window was full, then every message settled, and ${run.distinct()} of 40 were handed over`
          );
        });
      });
      await Promise.all(cases);
    },
  },
  'goes-on-around-a-stuck-message': {
    sentence:
      'A message that does not settle holds up no other message of a queue, and in a topic none of another partition.',
    needs: ['keeps-the-window'],
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
