import { PassThrough } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { bodyRoom, type ReceivedBody } from '#server/http/body-room';
import { until, within } from '../../support/until.js';

const bodies = suite('server/http/body-room');

const MB = 1024 * 1024;
const LIMIT = 2 * MB;
const link = { id: 'link', isStranger: false };

function request(headers: Record<string, string> = {}): PassThrough & IncomingMessage {
  return Object.assign(new PassThrough({ highWaterMark: 16 * 1024 }), {
    headers,
  }) as unknown as PassThrough & IncomingMessage;
}

async function outcome(body: Promise<ReceivedBody>): Promise<string | number> {
  return body.then(
    ({ bytes }) => bytes.length,
    (error: { code: string }) => error.code,
  );
}

bodies('a body of many small chunks is whole', async () => {
  const receive = bodyRoom({ messageBytes: MB, timeoutSeconds: 10 });
  const sent = request();
  const body = receive(sent, { limit: LIMIT, sender: link });
  const text = Array.from({ length: 5_000 }, (_, n) => `${n},`);
  for (const part of text) sent.write(part);
  sent.end();
  assert.is((await body).bytes.toString(), text.join(''));
});

bodies('a body that never ends, is cut off, compressed or too large is refused', async () => {
  const receive = bodyRoom({ messageBytes: MB, timeoutSeconds: 1 });
  const begun = { slow: request(), cut: request(), endless: request() };
  const [slow, cut, endless] = Object.values(begun).map((it) =>
    outcome(receive(it, { limit: 100, sender: link })),
  );
  begun.slow.write('{');
  begun.cut.destroy();
  begun.endless.write('x'.repeat(101));
  assert.is(await cut, 'bad_body');
  assert.is(await endless, 'body_too_large');
  assert.is(await outcome(receive(begun.cut, { limit: 100, sender: link })), 'bad_body');
  assert.is(
    await outcome(receive(request({ 'content-encoding': 'gzip' }), { limit: 100, sender: link })),
    'unsupported_media_type',
  );
  assert.is(await within(slow!, 5_000, 'the end of a slow body'), 'body_slow');
});

bodies(
  'a sender without room for more has its slow bodies given up, while those of others arrive',
  async () => {
    const receive = bodyRoom({ messageBytes: MB, timeoutSeconds: 60 });
    const stalled = Array.from({ length: 20 }, () => {
      const sent = request();
      const body = outcome(receive(sent, { limit: LIMIT, sender: link }));
      sent.write(Buffer.alloc(MB));
      return body;
    });
    await delay(50);
    const other = request();
    const body = receive(other, {
      limit: LIMIT,
      sender: { id: 'another link', isStranger: false },
    });
    other.end('{}');
    assert.is((await within(body, 500, 'the body of another sender')).bytes.length, 2);
    const late = request();
    const own = receive(late, { limit: LIMIT, sender: link });
    late.end('{}');
    assert.is((await within(own, 5_000, 'a quick body of the same sender')).bytes.length, 2);
    let given = 0;
    for (const it of stalled) void it.then((code) => code === 'body_slow' && given++);
    await until('only those to be given up that leave room', () => given >= 4);
  },
);

bodies(
  'bodies of a sender that wait for their work keep further ones from being read until there is room',
  async () => {
    const receive = bodyRoom({ messageBytes: MB, timeoutSeconds: 60 });
    const whole: ReceivedBody[] = [];
    for (let n = 0; n < 17; n++) {
      const sent = request();
      const body = receive(sent, { limit: LIMIT, sender: link });
      sent.end(Buffer.alloc(MB));
      whole.push(await body);
    }
    const [first, second] = [request(), request()];
    const bodiesOf = [first, second].map((it) => receive(it, { limit: LIMIT, sender: link }));
    for (const it of [first, second]) it.end(Buffer.alloc(MB));
    await until('the second to be stopped', () => second.isPaused());
    for (const it of whole) it.release();
    for (const it of await Promise.all(bodiesOf)) assert.is(it.bytes.length, MB);
  },
);

bodies.run();
