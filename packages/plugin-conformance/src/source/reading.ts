import { must } from '../run/judge.js';
import { endOf } from './plugin-run.js';
import { numbers, texts, type SourceRule } from './bench.js';

const LONG_BODY_BYTES = 200_000;
/** A clock may be wrong; seconds taken for milliseconds are wrong by decades. */
const CLOCKS_DIFFER_MS = 24 * 60 * 60_000;

/** What is handed over: every message, as it is, and named. */
export const readingRules: readonly SourceRule[] = [
  {
    name: 'reads-every-message',
    sentence: 'Every message is handed over, whichever partition it is in.',
    judge: async ({ open, second, run, until }) => {
      const place = await open(2);
      await place.send([...texts(numbers(20)), ...texts(numbers(20, 20), second)]);
      const reading = run(place.connection);
      await until(
        () => new Set(reading.bodies()).size === 40,
        () => `${new Set(reading.bodies()).size} of 40 messages were handed over${endOf(reading)}`,
      );
    },
  },
  {
    name: 'reports-reading',
    sentence: 'Health is told `reading` once the connection stands.',
    needs: ['reads-every-message'],
    judge: async ({ open, run, until }) => {
      const { connection } = await open();
      const reading = run(connection);
      await until(
        () => reading.states.at(-1)?.state === 'reading',
        () => `the states were: ${reading.states.map(({ state }) => state).join(', ') || 'none'}`,
      );
    },
  },
  {
    name: 'reads-until-it-is-told-to-end',
    sentence: 'Without messages `run` waits for some; it does not resolve before its signal aborts.',
    needs: ['reads-every-message'],
    judge: async ({ open, run, stays }) => {
      const { connection } = await open();
      const reading = run(connection);
      await stays(
        () => reading.end() === undefined,
        () => `nothing came, and \`run\` ended${endOf(reading)}`,
      );
    },
  },
  {
    name: 'hands-each-message-over-once',
    sentence: 'A message that is accepted is not handed over a second time.',
    needs: ['reports-reading', 'reads-until-it-is-told-to-end'],
    judge: async ({ open, second, run, until, stays }) => {
      const place = await open(2);
      const reading = run(place.connection, { window: 20, workers: 2 });
      // While workers come and share partitions out, a broker may hand a message to two of them.
      await until(
        () => reading.states.at(-1)?.state === 'reading',
        () => `it does not report reading${endOf(reading)}`,
      );
      await place.send([...texts(numbers(20)), ...texts(numbers(20, 20), second)]);
      await until(
        () => new Set(reading.bodies()).size === 40,
        () => `${new Set(reading.bodies()).size} of 40 messages were handed over${endOf(reading)}`,
      );
      await stays(
        () => reading.handed.length === 40,
        () => `${reading.handed.length - 40} messages were handed over a second time`,
      );
    },
  },
  {
    name: 'names-messages-apart',
    sentence: 'Coordinates differ for different messages of a source, also for equal bodies, in other partitions and with other workers.',
    needs: ['reads-every-message'],
    judge: async ({ open, second, run, until }) => {
      const place = await open(2);
      const same = Array<string>(50).fill('the same');
      await place.send([...texts(same), ...texts(same, second)]);
      const reading = run(place.connection, { workers: 2 });
      await until(
        () => reading.handed.length >= 100,
        () => `${reading.handed.length} of 100 messages were handed over${endOf(reading)}`,
      );
      const names = new Set(reading.handed.map(({ message }) => message.coordinates));
      must(names.size === 100, `100 messages have ${names.size} different coordinates`);
    },
  },
  {
    name: 'names-messages-plainly',
    sentence: 'Coordinates are text, not empty and without control characters.',
    needs: ['reads-every-message'],
    judge: async ({ open, run, untilHanded }) => {
      const place = await open();
      await place.send(texts(['one']));
      const reading = run(place.connection);
      await untilHanded(reading);
      const coordinates: unknown = reading.handed[0]?.message.coordinates;
      must(typeof coordinates === 'string' && coordinates !== '', `the coordinates are ${JSON.stringify(coordinates)}`);
      must(!/\p{Cc}/u.test(coordinates), `the coordinates have a control character: ${JSON.stringify(coordinates)}`);
    },
  },
  {
    name: 'tells-the-time-in-milliseconds',
    sentence: 'The timestamp is when the broker got the message, in milliseconds since 1970.',
    needs: ['reads-every-message'],
    judge: async ({ open, run, untilHanded }) => {
      const place = await open();
      await place.send(texts(['one']));
      const reading = run(place.connection);
      await untilHanded(reading);
      const timestamp = reading.handed[0]?.message.timestamp ?? NaN;
      must(Math.abs(timestamp - Date.now()) < CLOCKS_DIFFER_MS, `a message that was sent just now has the timestamp ${timestamp}`);
    },
  },
  bodyRule({
    name: 'keeps-the-bytes-of-a-body',
    sentence: 'A body is handed over byte for byte: spaces, line breaks, numbers as they are written, other scripts, 200 kB.',
    bodies: [
      '{ "price": 1.10,\r\n\t"big": 9007199254740993, "a": 1, "a": 2 }\n',
      '  ü 日本 \u00e9 e\u0301  ',
      'x'.repeat(LONG_BODY_BYTES),
    ].map((text) => Buffer.from(text)),
  }),
  bodyRule({
    name: 'keeps-a-body-that-is-no-text',
    sentence: 'A body that is not UTF-8 is handed over byte for byte.',
    bodies: [Buffer.from([0, 255, 254, 10, 13, 0xc3, 0x28, 0xed, 0xa0, 0x80])],
    carried: ({ binary }) => binary,
    what: 'text alone',
  }),
  bodyRule({
    name: 'keeps-an-empty-body',
    sentence: 'A message without a body is handed over with no bytes.',
    bodies: [Buffer.alloc(0)],
    carried: ({ empty }) => empty,
    what: 'no empty bodies',
  }),
  {
    name: 'hands-headers-over',
    sentence: 'The headers of a message are handed over as text, under the names they were sent with.',
    needs: ['reads-every-message'],
    lacks: ({ rig }) => (rig.headers === false ? 'the rig says that the broker has no headers' : undefined),
    judge: async ({ open, run, untilHanded }) => {
      const place = await open();
      const headers = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'X-Origin': 'Zürich' };
      await place.send([{ body: Buffer.from('one'), headers, partition: 0 }]);
      const reading = run(place.connection);
      await untilHanded(reading);
      const given = reading.handed[0]?.message.headers ?? {};
      for (const [name, value] of Object.entries(headers)) {
        must(given[name] === value, `the header ${name}: ${value} was handed over as ${JSON.stringify(given[name]) ?? 'nothing'}`);
      }
      const other = Object.entries(given).find(([, value]) => typeof value !== 'string');
      must(!other, `the header ${other?.[0]} is no text`);
    },
  },
  {
    name: 'keeps-the-order',
    sentence: 'Messages come in the order in which they were sent; of a topic those of one partition.',
    needs: ['hands-each-message-over-once'],
    lacks: ({ rig }) => ((rig.ordered ?? rig.shape === 'topic') ? undefined : 'the rig says that the broker keeps no order'),
    judge: async ({ open, rig, second, run, until }) => {
      const place = await open(2);
      const sent = [numbers(150), ...(rig.shape === 'topic' ? [numbers(150, 1000)] : [])];
      await place.send(sent.flatMap((bodies, at) => texts(bodies, at === 0 ? 0 : second)));
      const reading = run(place.connection, { window: 7 });
      const total = sent.flat().length;
      await until(
        () => reading.handed.length >= total,
        () => `${reading.handed.length} of ${total} messages were handed over${endOf(reading)}`,
      );
      for (const bodies of sent) {
        const came = reading.bodies().filter((body) => bodies.includes(body));
        const at = came.findIndex((body, index) => body !== bodies[index]);
        must(at < 0, `message ${bodies[at]} was to come, and ${came[at]} came`);
      }
    },
  },
];

function bodyRule(about: {
  name: string;
  sentence: string;
  bodies: readonly Buffer[];
  carried?: (bodies: { readonly binary?: boolean; readonly empty?: boolean }) => boolean | undefined;
  what?: string;
}): SourceRule {
  const { name, sentence, bodies, carried } = about;
  return {
    name,
    sentence,
    needs: ['reads-every-message'],
    lacks: ({ rig }) => (carried?.(rig.bodies ?? {}) === false ? `the rig says that the broker carries ${about.what}` : undefined),
    judge: async ({ open, run, until }) => {
      const place = await open();
      await place.send(bodies.map((body) => ({ body, headers: {}, partition: 0 })));
      const reading = run(place.connection);
      await until(
        () => reading.handed.length >= bodies.length,
        () => `${reading.handed.length} of ${bodies.length} messages were handed over${endOf(reading)}`,
      );
      for (const body of bodies) {
        const found = reading.handed.some(({ message }) => body.equals(message.body));
        must(found, `a body of ${body.length} bytes (${JSON.stringify(body.subarray(0, 60).toString('latin1'))}) was changed`);
      }
    },
  };
}
