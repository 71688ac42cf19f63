import {
  decodeChunk,
  decodeReply,
  encodeChunk,
  encodeReply,
  FrameReader,
  HEAD_BYTES,
  type Reply,
} from '#sandbox/protocol/protocol';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('sandbox/protocol/protocol');

const reply: Reply = {
  chunk: 5,
  first: 2,
  answers: [
    { kind: 'object', json: '{"a":"ü\\n😀"}', logs: ['a line\nwith a break'], durationMs: 0.5 },
    { kind: 'array', items: ['{}', '{"b":"ß"}'], logs: [], durationMs: 1 },
    { kind: 'dropped', logs: [], durationMs: 0 },
    { kind: 'refused', code: 'threw', reason: 'It threw.', logs: [], durationMs: 0 },
  ],
};

test('a chunk arrives as it was sent, whatever is in its payloads', () => {
  const chunk = {
    id: 9,
    key: 'k\n',
    text: 'x\n"ü"',
    payloads: ['"ü😀"', '', '{"a":\n1}', '"\u2028"'],
  };
  const frame = encodeChunk(chunk);
  assert.is(frame.readUInt32LE(0), frame.length - HEAD_BYTES);
  assert.equal(decodeChunk(frame.subarray(HEAD_BYTES)), chunk);
  const bytes = Buffer.from([0xff, 0, 0x0a, 0xe9]);
  const mixed = { ...chunk, payloads: ['"ü"', bytes, '', bytes.subarray(1)] };
  assert.equal(decodeChunk(encodeChunk(mixed).subarray(HEAD_BYTES)), mixed);
});

test('half of a surrogate pair does not shift the payloads after it', () => {
  const frame = encodeChunk({ id: 1, key: '', text: '', payloads: ['"\ud800"', '"next"'] });
  assert.equal(decodeChunk(frame.subarray(HEAD_BYTES)).payloads, ['"\ufffd"', '"next"']);
});

test('a reply arrives as it was sent', () => {
  assert.equal(decodeReply(encodeReply(reply).subarray(HEAD_BYTES)), reply);
});

test('frames are put together from pieces of any size', () => {
  const bytes = Buffer.concat([
    encodeReply(reply),
    encodeReply({ ...reply, first: 7 }),
    encodeReply({ ...reply, answers: [] }),
  ]);
  for (const step of [1, 3, 64, bytes.length]) {
    const reader = new FrameReader(10_000);
    const bodies: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += step)
      bodies.push(...reader.push(bytes.subarray(at, at + step)));
    assert.equal(
      bodies.map((body) => decodeReply(body).first),
      [2, 7, 2],
    );
  }
});

test('a frame that claims to be huge is refused before it is read', () => {
  assert.throws(
    () => new FrameReader(1000).push(Buffer.from([0xff, 0xff, 0xff, 0x7f])),
    /malformed reply/,
  );
});

const malformed: Record<string, string> = {
  'no line': '{"chunk":1,"first":0,"answers":[]}',
  'no JSON': 'x\n',
  'no record': '5\n',
  'a negative index': '{"chunk":1,"first":-1,"answers":[]}\n',
  'an unknown kind': '{"chunk":1,"first":0,"answers":[{"kind":"x","logs":[],"durationMs":1}]}\n',
  'a text shorter than its size':
    '{"chunk":1,"first":0,"answers":[{"kind":"object","sizes":[9],"logs":[],"durationMs":1}]}\n{}',
  'a text longer than its size':
    '{"chunk":1,"first":0,"answers":[{"kind":"object","sizes":[1],"logs":[],"durationMs":1}]}\n{}',
  'a size that is no number':
    '{"chunk":1,"first":0,"answers":[{"kind":"object","sizes":["2"],"logs":[],"durationMs":1}]}\n{}',
  'a log that is no text':
    '{"chunk":1,"first":0,"answers":[{"kind":"dropped","logs":[1],"durationMs":1}]}\n',
  'an unknown refusal':
    '{"chunk":1,"first":0,"answers":[{"kind":"refused","code":"toString","reason":"","logs":[],"durationMs":1}]}\n',
};

for (const [name, body] of Object.entries(malformed)) {
  test(`a reply with ${name} is refused`, () => {
    assert.throws(() => decodeReply(Buffer.from(body)));
  });
}

test.run();
