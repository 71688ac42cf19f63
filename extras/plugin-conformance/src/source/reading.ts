import { must } from '../run/rule.js';
import { numbers, texts, type SourceRule } from './bench.js';

const LONG_BODY_BYTES = 200_000;
/**
 * The largest allowed difference between a timestamp and this machine's clock. Clocks may differ,
 * but a timestamp in seconds is off by decades.
 */
const CLOCKS_DIFFER_MS = 24 * 60 * 60_000;

export const readingRules: Readonly<Record<string, SourceRule>> = {
  'reads-every-message': {
    sentence: 'Every message is handed over, whichever partition it is in.',
    test: async (bench) => {
      const { run } = await bench.start({ partitions: 2, messages: bench.spread() });
      await run.untilRead(40);
    },
  },
  'reports-reading': {
    sentence: '`reading` is reported once the plugin is connected.',
    test: async (bench) => {
      const { connection } = await bench.open();
      await bench.run(connection).untilReading();
    },
  },
  'reads-until-it-is-told-to-end': {
    sentence:
      'Without messages `run` waits for some; it does not resolve before its signal aborts.',
    test: async (bench) => {
      const { run } = await bench.start();
      await run.stays(() => run.end && 'no message came, and `run` ended');
    },
  },
  'hands-each-message-over-once': {
    sentence: 'An accepted message is not handed over a second time.',
    needs: ['reports-reading', 'reads-until-it-is-told-to-end'],
    test: async (bench) => {
      const { place, run } = await bench.start({ partitions: 2, window: 20, workers: 2 });
      // Send only once the plugin reads, because a broker may deliver twice while workers join.
      await run.untilReading();
      await place.send(bench.spread());
      await run.untilRead(40);
      await run.stays(
        () =>
          run.handed.length !== 40 &&
          `${run.handed.length - 40} messages were handed over a second time`,
      );
    },
  },
  'names-messages-apart': {
    sentence:
      'Different messages of a source have different coordinates, also with equal bodies, in other partitions and with several workers.',
    test: async (bench) => {
      const same = Array<string>(50).fill('the same');
      const { run } = await bench.start({
        partitions: 2,
        messages: [...texts(same), ...bench.second(same)],
        workers: 2,
      });
      await run.untilHanded(100);
      const names = new Set(run.handed.map(({ message }) => message.coordinates));
      must(names.size === 100, `100 messages have ${names.size} different coordinates`);
    },
  },
  'tells-the-time-in-milliseconds': {
    sentence: 'The timestamp is when the broker received the message, in milliseconds since 1970.',
    test: async (bench) => {
      const { timestamp } = await bench.readOne();
      must(
        Math.abs(timestamp - Date.now()) < CLOCKS_DIFFER_MS,
        `a message that was sent just now has the timestamp ${timestamp}`,
      );
    },
  },
  'keeps-the-bytes-of-a-body': {
    sentence:
      'A body is handed over byte for byte: white space, numbers as they are written, other scripts, 200 kB, and none or no text where the broker carries them.',
    test: async (bench) => {
      const { binary = true, empty = true } = bench.rig.bodies ?? {};
      const bodies = [
        '{ "price": 1.10,\r\n\t"big": 9007199254740993, "a": 1, "a": 2 }\n',
        '  ü 日本 \u00e9 e\u0301  ',
        'x'.repeat(LONG_BODY_BYTES),
        ...(binary ? [Buffer.from([0, 255, 254, 10, 13, 0xc3, 0x28, 0xed, 0xa0, 0x80])] : []),
        ...(empty ? [''] : []),
      ].map((body) => Buffer.from(body));
      const messages = bodies.map((body) => ({ body, headers: {}, partition: 0 }));
      const { run } = await bench.start({ messages });
      await run.untilHanded(bodies.length);
      for (const body of bodies)
        must(
          run.handed.some(({ message }) => body.equals(message.body)),
          `a body of ${body.length} bytes (${JSON.stringify(body.subarray(0, 60).toString('latin1'))}) was changed`,
        );
    },
  },
  'hands-headers-over': {
    sentence:
      'The headers of a message are handed over as text, under the names they were sent with.',
    skip: ({ headers }) =>
      headers === false ? 'the rig says that the broker has no headers' : undefined,
    test: async (bench) => {
      const headers = {
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        'X-Origin': 'Zürich',
      };
      const { headers: given } = await bench.readOne(headers);
      for (const [name, value] of Object.entries(headers)) {
        must(
          given[name] === value,
          `the header ${name}: ${value} was handed over as ${JSON.stringify(given[name]) ?? 'nothing'}`,
        );
      }
      const other = Object.entries(given).find(([, value]) => typeof value !== 'string');
      must(!other, `the header ${other?.[0]} is not a string`);
    },
  },
  'keeps-the-order': {
    sentence:
      'Messages are handed over in the order in which they were sent; in a topic, within each partition.',
    needs: ['hands-each-message-over-once'],
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
};
