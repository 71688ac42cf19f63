import fc from 'fast-check';

/** A message from a careless or malicious sender. */
export interface HostileMessage {
  /** The unusual or invalid property. */
  readonly kind: string;
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string | Buffer>>;
  /** The text of `data` that must arrive unchanged; null if the message must be refused. */
  readonly data: string | null;
}

export type Via = 'kafka' | 'sqs' | 'api';

/** Part of every message's content: must not appear in any log. */
export const CANARY = 'hunter2-canary';

/** The message limit of the tested gateway, so that some messages are too large. */
export const MAX_BYTES = 16_384;

interface Kind {
  /** Default: all. SQS carries only text, and the API has specific fields. */
  readonly via?: readonly Via[];
  /** Generates a message that carries this number. */
  readonly make: (
    n: number,
  ) => fc.Arbitrary<Omit<HostileMessage, 'kind' | 'body'> & { readonly body: Buffer | string }>;
}

const dataOf = (n: number, more = '') => `{"n":${n},"note":"${CANARY}"${more && `,${more}`}}`;
/** Builds a message from members given as JSON text; omits undefined members. */
const text = (members: Readonly<Record<string, string | undefined>>) =>
  `{${Object.entries(members)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `"${name}":${value}`)
    .join(',')}}`;
const good = (n: number) => text({ event_type: '"order.created"', data: dataOf(n) });
const withHeaders = (n: number, headers: string) =>
  text({ event_type: '"order.created"', data: dataOf(n), custom_headers: headers });
const refused = <T extends Buffer | string>(bodies: fc.Arbitrary<T>) =>
  bodies.map((body) => ({ body, data: null }));
const place = (length: number) => fc.nat({ max: length });

const control = fc
  .integer({ min: 0, max: 0x1f })
  .map((code) => `\\u${code.toString(16).padStart(4, '0')}`);
const lone = fc.integer({ min: 0xd800, max: 0xdfff }).map((code) => `\\u${code.toString(16)}`);
const notText = fc.constantFrom('1', '0.5', 'true', '[]', '["a"]', '{}', '{"a":1}');
const anything = fc.json({ maxDepth: 3 });

/** Members that other languages and careless parsers change; they must arrive unchanged. */
const oddMembers = [
  '"a":9007199254740993',
  '"a":-9007199254740993.0',
  '"a":1.10',
  '"a":1e999',
  '"a":-0',
  '"a":1E+2',
  `"a":${'7'.repeat(400)}`,
  '"a":0.1000000000000000055511151231257827',
  '"__proto__":{"admin":true}',
  '"constructor":{"prototype":{"admin":true}}',
  '"hasOwnProperty":1,"toString":null,"valueOf":0',
  '"a":1,"a":2,"a":1',
  '"a":"\\ud800"',
  '"a":"\\udc00\\ud83d"',
  '"\\ud800":1',
  '"a":"\\u0000"',
  '"a":"\\u001e\\u001f\\u007f"',
  '"":{"":[]}',
  '"a":"\\/\\u0061\\b"',
  '"a":"\u2028\u2029\ufeff\u200bé漢"',
  '"a" : [ 1 ,\t2 ,\r\n3 ]',
  `"a":${'['.repeat(150)}${']'.repeat(150)}`,
];

/** Names reserved for the connection or the gateway. */
const forbidden = [
  'Connection',
  'Keep-Alive',
  'Proxy-Connection',
  'Proxy-Authorization',
  'Transfer-Encoding',
  'TE',
  'Trailer',
  'Upgrade',
  'Host',
  'Expect',
  'Content-Length',
  'Content-Encoding',
  'Accept-Encoding',
  'Webhook-Id',
  'Webhook-Timestamp',
  'Webhook-Signature',
  'X-Gateway-Signature',
];
/** The value of headers that must not arrive. */
export const FORGED = 'forged';
const withForged = (n: number) =>
  fc
    .tuple(fc.shuffledSubarray(forbidden, { minLength: 1 }), fc.constantFrom('', '"x-a":"kept",'))
    .map(([names, before]) =>
      withHeaders(n, `{${before}${names.map((name) => `"${name}":"${FORGED}"`).join(',')}}`),
    );

const kinds: Readonly<Record<string, Kind>> = {
  truncated: {
    make: (n) => refused(place(good(n).length - 2).map((at) => good(n).slice(0, at + 1))),
  },
  'garbage behind it': {
    make: (n) =>
      refused(
        fc.constantFrom('}', ',', 'x', '{}', ' null', ']', '\n{').map((more) => good(n) + more),
      ),
  },
  'a NUL byte in it': {
    via: ['kafka', 'api'],
    make: (n) =>
      refused(place(good(n).length).map((at) => `${good(n).slice(0, at)}\0${good(n).slice(at)}`)),
  },
  'bytes that are not UTF-8': {
    via: ['kafka', 'api'],
    make: (n) =>
      refused(
        fc
          .tuple(
            place(good(n).length),
            fc.constantFrom([0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0xf5, 0x80]),
          )
          .map(([at, bytes]) => {
            const whole = Buffer.from(good(n));
            return Buffer.concat([whole.subarray(0, at), Buffer.from(bytes), whole.subarray(at)]);
          }),
      ),
  },
  'UTF-16': {
    via: ['kafka', 'api'],
    make: (n) =>
      refused(fc.constantFrom('', '\ufeff').map((mark) => Buffer.from(mark + good(n), 'utf16le'))),
  },
  'no bytes': { via: ['kafka', 'api'], make: () => refused(fc.constant('')) },
  'random bytes': {
    via: ['kafka', 'api'],
    make: () =>
      refused(
        fc
          .uint8Array({ minLength: 1, maxLength: 200 })
          .map((bytes) => Buffer.from([0x80, ...bytes])),
      ),
  },
  'huge nesting': {
    make: (n) =>
      refused(
        fc
          .tuple(
            fc.integer({ min: 250, max: 5_000 }),
            fc.constantFrom(['[', ']'], ['{"a":', '0}'], ['[', '']),
          )
          .map(([depth, [open, close]]) =>
            text({
              event_type: '"a"',
              data: dataOf(
                n,
                `"a":${open.repeat(Math.min(depth, 2_000))}${close.repeat(Math.min(depth, 2_000))}`,
              ),
            }),
          ),
      ),
  },
  'no object': {
    make: () =>
      refused(
        fc.oneof(
          notText.filter((it) => !it.startsWith('{')),
          fc.constantFrom('null', '""', '"text"', '-1e9'),
        ),
      ),
  },
  'nearly JSON': {
    make: (n) =>
      refused(
        fc.constantFrom(
          good(n).replaceAll('"', "'"),
          good(n).replace(`${n}`, 'NaN'),
          good(n).replace(`${n}`, '-Infinity'),
          good(n).replace(`${n}`, 'undefined'),
          good(n).replace(`${n}`, `0${n}`),
          good(n).replace(`${n}`, `+${n}`),
          good(n).replace(`${n}`, '.5'),
          good(n).replace(`${n}`, '0x1f'),
          good(n).replace('}}', ',}}'),
          good(n).replace('"event_type"', 'event_type'),
          `// comment\n${good(n)}`,
          `\ufeff\ufeff${good(n)}`,
          good(n).replace(CANARY, `${CANARY}\n`),
          good(n).replace(CANARY, `${CANARY}\\x41`),
        ),
      ),
  },
  'a field missing': {
    make: (n) =>
      refused(fc.constantFrom('{}', text({ data: dataOf(n) }), text({ event_type: '"a"' }))),
  },
  'event_type of a wrong type': {
    make: (n) =>
      refused(
        fc
          .oneof(notText, fc.constant('null'), fc.constant('""'))
          .map((it) => text({ event_type: it, data: dataOf(n) })),
      ),
  },
  'data of a wrong type': {
    make: () =>
      refused(
        fc
          .constantFrom('null', '1', '"a"', 'true', '[]', '[{}]')
          .map((data) => text({ event_type: '"a"', data })),
      ),
  },
  'a name of a wrong type': {
    make: (n) =>
      refused(
        fc
          .tuple(fc.constantFrom('idempotency_key', 'owner_id', 'endpoint_id'), notText)
          .map(([name, value]) => text({ event_type: '"a"', data: dataOf(n), [name]: value })),
      ),
  },
  'custom_headers of a wrong type': {
    make: (n) =>
      refused(
        fc.oneof(
          fc.constantFrom('1', '"x-a: 1"', '[]', '["x-a"]', 'true').map((it) => withHeaders(n, it)),
          fc.oneof(notText, fc.constant('null')).map((it) => withHeaders(n, `{"x-a":${it}}`)),
        ),
      ),
  },
  'a control character in a name': {
    make: (n) =>
      refused(
        fc
          .tuple(fc.constantFrom('event_type', 'idempotency_key'), control)
          .map(([name, it]) => text({ event_type: '"a"', data: dataOf(n), [name]: `"a${it}b"` })),
      ),
  },
  'half a surrogate pair in a name': {
    make: (n) =>
      refused(
        fc
          .tuple(fc.constantFrom('event_type', 'idempotency_key'), lone)
          .map(([name, it]) => text({ event_type: '"a"', data: dataOf(n), [name]: `"a${it}b"` })),
      ),
  },
  'a name that is too long': {
    make: (n) =>
      refused(
        fc
          .integer({ min: 513, max: 3_000 })
          .map((length) => text({ event_type: `"${'é'.repeat(length)}"`, data: dataOf(n) })),
      ),
  },
  'a header that splits': {
    make: (n) =>
      refused(
        fc
          .constantFrom(
            'a\\r\\nx-evil: 1',
            'a\\nx-evil: 1',
            'a\\rx-evil: 1',
            '\\r\\n\\r\\nPOST / HTTP/1.1',
            'a\\u0000b',
            '€',
            '\\ud800',
            '\\u007f',
            'ŊŊ',
          )
          .map((value) => withHeaders(n, `{"x-a":"${value}"}`)),
      ),
  },
  'a header with no name': {
    make: (n) =>
      refused(
        fc
          .constantFrom('', 'a b', 'a:b', 'x-evil: 1\\r\\nx-a', 'é', 'a\\u0000', '(a)', ' x')
          .map((name) => withHeaders(n, `{"${name}":"1"}`)),
      ),
  },
  'a header that no message may set': {
    via: ['kafka', 'sqs'],
    make: (n) => withForged(n).map((body) => ({ body, data: dataOf(n) })),
  },
  'a header that no call may set': { via: ['api'], make: (n) => refused(withForged(n)) },
  'an unknown message type': {
    make: (n) =>
      refused(
        fc
          .constantFrom('', 'broadcasting', 'all', '__proto__')
          .map((it) => withHeaders(n, `{"x-gateway-message-type":"${it}"}`)),
      ),
  },
  'too large': {
    make: (n) =>
      refused(
        fc
          .integer({ min: MAX_BYTES, max: MAX_BYTES + 5_000 })
          .map((size) => text({ event_type: '"a"', data: dataOf(n, `"a":"${'x'.repeat(size)}"`) })),
      ),
  },
  'any JSON but a message': {
    via: ['kafka', 'sqs'],
    make: () => refused(anything.map((it) => (it === '' ? '0' : it))),
  },

  'odd data': {
    make: (n) =>
      fc
        .tuple(
          fc.shuffledSubarray(oddMembers, { minLength: 1, maxLength: 3 }),
          fc.constantFrom('', ' ', '\r\n\t'),
        )
        .map(([members, space]) => {
          const data = dataOf(n, members.join(`,${space}`));
          return {
            body: `${space}{${space}"event_type":"order.created",${space}"data":${space}${data}${space}}${space}`,
            data,
          };
        }),
  },
  'any data': {
    make: (n) =>
      anything.map((it) => {
        const data = dataOf(n, `"any":${it}`);
        return { body: text({ event_type: '"order.created"', data }), data };
      }),
  },
  'fields twice': {
    make: (n) =>
      fc
        .constantFrom('"event_type":7,"data":[],', '"data":{"n":-1},', '"event_type":"\\u0000",')
        .map((before) => {
          const data = dataOf(n);
          return { body: `{${before}${good(n).slice(1)}`, data };
        }),
  },
  'letters beyond the first plane': {
    via: ['kafka', 'api'],
    make: (n) => {
      const data = dataOf(n, '"😀":"\u{10ffff}"');
      return fc.constant({ body: text({ event_type: '"order.😀"', data }), data });
    },
  },
  'fields in other letters': {
    make: (n) => {
      const data = dataOf(n);
      return fc.constant({
        body: `{"\\u0065vent_type":"order.created","d\\u0061ta":${data}}`,
        data,
      });
    },
  },
  'a byte order mark': {
    via: ['kafka', 'sqs'],
    make: (n) => fc.constant({ body: `\ufeff${good(n)}`, data: dataOf(n) }),
  },
  'members of nobody': {
    via: ['kafka', 'sqs'],
    make: (n) =>
      fc
        .constantFrom(
          '"__proto__":{"event_type":"x","custom_headers":{"x-evil":"1"}}',
          '"constructor":1',
          '"a":null',
        )
        .map((it) => ({ body: `{${it},${good(n).slice(1)}`, data: dataOf(n) })),
  },
  'headers with names of JavaScript': {
    make: (n) =>
      fc.constant({
        body: withHeaders(n, '{"__proto__":"kept","constructor":"kept","toString":"kept"}'),
        data: dataOf(n),
      }),
  },
  'broker headers that HTTP cannot carry': {
    via: ['kafka'],
    make: (n) =>
      fc.constant({
        body: good(n),
        data: dataOf(n),
        headers: {
          'x-a': 'a\r\nx-evil: 1',
          'x-evil: 1\r\nx-b': '1',
          'x-c': Buffer.from([0xff, 0xfe]),
          '': 'empty',
          connection: FORGED,
          'webhook-signature': FORGED,
          traceparent: '\r\n',
        },
      }),
  },
};

/**
 * Generates `count` messages, cycling through all kinds that `via` can carry, numbered from `from`;
 * deterministic for a seed.
 */
export function hostileMessages(
  via: Via,
  { seed, count, from }: { seed: number; count: number; from: number },
): HostileMessage[] {
  const usable = Object.entries(kinds).filter(([, kind]) => !kind.via || kind.via.includes(via));
  return Array.from({ length: count }, (_, k) => {
    const [kind, { make }] = usable[k % usable.length]!;
    const n = from + k;
    const [made] = fc.sample(make(n), { numRuns: 1, seed: seed + n });
    return { kind, ...made!, body: Buffer.from(made!.body) };
  });
}
