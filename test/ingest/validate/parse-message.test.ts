import fc from 'fast-check';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { decode } from '#ingest/decode/decode';
import {
  checkNesting,
  parseIngestMessage,
  parseTransformOutput,
} from '#ingest/validate/parse-message';
import { rejectCodes, type Rejection } from '#ingest/validate/reject-codes';
import type { EventContent } from '#store/events/events';
import { seed } from '../../support/seed.js';

const ingest = suite('ingest/validate/parse-message');

const fixtures = fileURLToPath(new URL('../../fixtures/ingest-message', import.meta.url));
const MAX_BYTES = 2000;

function read(body: Uint8Array): EventContent | Rejection {
  const text = decode({ body }, MAX_BYTES) as string | Rejection;
  return typeof text === 'string' ? parseIngestMessage(text) : text;
}

function fixture(name: string): EventContent {
  const message = read(readFileSync(join(fixtures, `${name}.good.json`)));
  if ('code' in message) throw new Error(`${name} is refused: ${message.reason}`);
  return message;
}

function refusal(message: EventContent | Rejection): Rejection {
  if (!('code' in message)) throw new Error('the message is accepted');
  return message;
}

for (const file of readdirSync(fixtures).filter((name) => name.endsWith('.bad.json'))) {
  const name = basename(file, '.bad.json');
  ingest(
    `the bad message ${name} is refused with its sentence, which tells nothing of its content`,
    () => {
      const { code, reason } = refusal(read(readFileSync(join(fixtures, file))));
      assert.is(
        `${code}: ${reason}`,
        readFileSync(join(fixtures, `${name}.bad.txt`), 'utf8').trimEnd(),
      );
      assert.not.match(reason, 'hunter');
      assert.ok(code in rejectCodes);
    },
  );
}

for (const file of readdirSync(fixtures).filter((name) => name.endsWith('.good.json'))) {
  ingest(`the message ${file} is accepted`, () => {
    assert.type(fixture(basename(file, '.good.json')).eventType, 'string');
  });
}

ingest('every field is read, and data keeps its bytes', () => {
  assert.equal(fixture('every-field'), {
    eventType: 'order.paid',
    data: '{ "id": 9007199254740993, "price": 1.10, "z": [1, 2], "a": "\\u00e9" }',
    headers: { 'X-Shop': '7', 'x-gateway-message-type': 'single' },
    notes: null,
    messageType: 'single',
    idempotencyKey: 'order-7',
    ownerId: 'shop 7',
    endpointId: '0190c0de-0000-7000-8000-000000000001',
  });
});

ingest('what is left out has its default', () => {
  assert.equal(fixture('minimal'), {
    eventType: 'order.paid',
    data: '{}',
    headers: {},
    notes: null,
    messageType: 'single',
    idempotencyKey: null,
    ownerId: null,
    endpointId: null,
  });
});

ingest('null and the empty text mean that an optional field is absent', () => {
  assert.equal(fixture('nulls-and-empty-texts-mean-absent'), {
    ...fixture('minimal'),
    eventType: 'a',
  });
});

ingest('the message type is read whatever the case of its header and its value', () => {
  assert.is(fixture('broadcast').messageType, 'broadcast');
  assert.is(fixture('message-type-case').messageType, 'broadcast');
  for (const type of ['single', 'fanout', 'broadcast']) {
    const message = parseIngestMessage(
      JSON.stringify({
        event_type: 'a',
        data: {},
        custom_headers: { 'x-gateway-message-type': type },
      }),
    );
    assert.is((message as EventContent).messageType, type);
  }
});

ingest(
  'a header that the connection or the gateway sets is left out with a note; one that HTTP cannot carry still refuses the message',
  () => {
    const notesOf = (headers: object) => {
      const message = parseIngestMessage(
        JSON.stringify({ event_type: 'a', data: {}, custom_headers: headers }),
      );
      return 'code' in message ? message.reason : (JSON.parse(message.notes ?? '[]') as string[]);
    };
    assert.equal(
      notesOf({
        'x-shop': '7',
        Host: 'hunter2',
        'X-Gateway-Signature': 'hunter2',
        'Content-Type': 'text/plain',
      }),
      [
        'the header "Host" was omitted: the connection sets it',
        'the header "X-Gateway-Signature" was omitted: the gateway sets it',
      ],
    );
    assert.match(
      String(notesOf({ Host: 'a\r\nx-evil: 1' })),
      'custom_headers["Host"] has a value that HTTP cannot carry',
    );
    assert.match(
      String(notesOf({ Host: 7 })),
      'custom_headers["Host"] must be a string, not a number',
    );
    // 128 spellings of one name.
    const letters = Array.from('trailer').reduce<string[]>(
      (names, it) => names.flatMap((name) => [name + it, name + it.toUpperCase()]),
      [''],
    );
    const many = notesOf(Object.fromEntries(letters.map((name) => [name, 'hunter2'])));
    assert.is(many.length, 21);
    assert.is(many.at(-1), `${letters.length - 20} more headers were omitted`);
  },
);

ingest('the last of a repeated field counts, as in what JSON.parse checked', () => {
  assert.is(fixture('repeated-data').data, '{"last":2}');
});

ingest('a byte order mark is no part of the message', () => {
  assert.is(fixture('byte-order-mark').data, '{}');
});

ingest('a message as large as is allowed is accepted', () => {
  const text = '{"event_type":"a","data":{}}'.padEnd(MAX_BYTES);
  assert.not.ok('code' in read(Buffer.from(text)));
  assert.is(refusal(read(Buffer.from(`${text} `))).code, 'too_large');
});

ingest('size counts bytes, not characters', () => {
  assert.is(decode({ body: Buffer.from('é'.repeat(1000)) }, MAX_BYTES), 'é'.repeat(1000));
  assert.is(
    (decode({ body: Buffer.from('é'.repeat(1001)) }, MAX_BYTES) as Rejection).code,
    'too_large',
  );
});

ingest('a part of a larger buffer is read as the part that it is', () => {
  const whole = Buffer.from('x{"event_type":"a","data":{"b":1}}y');
  assert.is((read(whole.subarray(1, -1)) as EventContent).data, '{"b":1}');
});

ingest('the result of a transform is refused in its own words', () => {
  const { code, reason } = refusal(parseTransformOutput('{"data":{}}'));
  assert.is(code, 'invalid_transform_output');
  assert.is(
    reason,
    'The result of the transform function is not an ingest message: event_type is missing.',
  );
  assert.is(
    refusal(parseTransformOutput('[]')).reason,
    'The result of the transform function must be a JSON object with event_type and data, not an array.',
  );
  assert.is(
    refusal(parseTransformOutput(`{"data":${'['.repeat(300)}${']'.repeat(300)}}`)).code,
    'too_deep',
  );
});

ingest(
  'a text of a hundred thousand brackets is refused before anything recursive reads it',
  () => {
    assert.is(checkNesting('{"a":'.repeat(100_000))?.code, 'too_deep');
    assert.is(checkNesting('{"a":"[[[["}'), null);
  },
);

ingest('names that mean something to JavaScript are no fields', () => {
  const text = '{"__proto__":{"event_type":"a","data":{}}}';
  assert.match(refusal(parseIngestMessage(text)).reason, 'event_type is missing; data is missing');
  const message = parseIngestMessage(
    '{"event_type":"a","data":{"__proto__":{"x":1}}}',
  ) as EventContent;
  assert.is(message.data, '{"__proto__":{"x":1}}');
});

const property = { seed, numRuns: 2_000 };
/** A JSON text with whitespace wherever allowed. */
const spaced = fc
  .tuple(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(undefined, 1, '\t', ' \n\r'))
  .map(([value, space]) => JSON.stringify(value, null, space));

ingest('whatever bytes come, they are a message or are refused with a code and a sentence', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
    spaced.map((text) => Buffer.from(text)),
    fc
      .record(
        {
          event_type: fc.anything(),
          data: fc.anything(),
          custom_headers: fc.anything(),
          owner_id: fc.anything(),
        },
        { requiredKeys: [] },
      )
      .map((value) =>
        Buffer.from(
          JSON.stringify(value, (_, member: unknown) =>
            typeof member === 'bigint' ? String(member) : member,
          ),
        ),
      ),
  );
  fc.assert(
    fc.property(bytes, (body) => {
      const message = read(body);
      if (!('code' in message))
        return typeof message.eventType === 'string' && message.data.startsWith('{');
      return (
        message.code in rejectCodes &&
        /^The message [^]+\.$/.test(message.reason) &&
        message.reason.length < 2_000
      );
    }),
    property,
  );
});

ingest(
  'data is the very text that stands in the message, wherever it stands and whatever stands around it',
  () => {
    const names = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom('__proto__', 'constructor', 'event_type2', 'dat', 'data2', '"data"', 'a"b'),
    );
    const others = fc.array(fc.tuple(names, spaced), { maxLength: 4 });
    const space = fc.constantFrom('', ' ', '\n\t', '\r\n ');
    const data = fc
      .dictionary(names, fc.jsonValue({ maxDepth: 3 }))
      .chain((value) => fc.constantFrom(JSON.stringify(value), JSON.stringify(value, null, 2)));
    const key = fc.constantFrom('"data"', '"d\\u0061ta"', '"\\u0064\\u0061\\u0074\\u0061"');
    fc.assert(
      fc.property(others, others, space, data, key, (before, behind, gap, text, name) => {
        const member = ([other, value]: readonly [string, string]) =>
          `${gap}${JSON.stringify(other)}${gap}:${gap}${value}${gap}`;
        const list = [
          ...before.map(member),
          `${gap}${name}${gap}:${gap}${text}${gap}`,
          ...behind.map(member),
          '"event_type":"a"',
        ];
        fc.pre(
          ![...before, ...behind].some(([other]) =>
            ['data', 'owner_id', 'endpoint_id', 'idempotency_key', 'custom_headers'].includes(
              other,
            ),
          ),
        );
        assert.is(
          (parseIngestMessage(`${gap}{${list.join(',')}}${gap}`) as EventContent).data,
          text,
        );
      }),
      property,
    );
  },
);

ingest('what is accepted fits into a column of Postgres and into a line of HTTP', () => {
  const odd = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1 }),
    fc.string({ unit: 'grapheme', minLength: 1 }),
    fc.constantFrom('\0', '\ud800', '\x1e', '\r\n', 'ü', 'x\tx', 'x:'),
  );
  // A single odd text refuses a message: most are usual, so that many messages with headers are
  // accepted.
  const mostly = (...usual: string[]) =>
    fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: odd });
  const message = fc.record({
    event_type: mostly('order.paid'),
    data: fc.constant({}),
    owner_id: mostly('acme', 'ü'),
    idempotency_key: mostly('once'),
    endpoint_id: mostly('019ab3c4-5d6e-7f70-9123-456789abcdef'),
    custom_headers: fc.dictionary(mostly('X-Shop', 'x-tenant'), mostly('7', 'a b', 'é'), {
      maxKeys: 3,
    }),
  });
  let withHeaders = 0;
  let refused = 0;
  fc.assert(
    fc.property(message, (given) => {
      const accepted = parseIngestMessage(JSON.stringify(given));
      if ('code' in accepted) return void refused++;
      for (const name of [
        accepted.eventType,
        accepted.ownerId,
        accepted.idempotencyKey,
        accepted.endpointId,
      ]) {
        assert.ok(
          // eslint-disable-next-line no-control-regex
          name !== null && name.isWellFormed() && !/[\0-\x1f\x7f]/.test(name),
          JSON.stringify(name),
        );
      }
      for (const pair of Object.entries(accepted.headers)) {
        withHeaders++;
        assert.not.match(pair.join(''), /[\0\r\n]|[^\0-\xff]/);
      }
    }),
    property,
  );
  assert.ok(withHeaders > 100 && refused > 100, `${withHeaders} headers, ${refused} refused`);
});

ingest.run();
