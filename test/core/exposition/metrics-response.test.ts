import { gunzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { silentLog } from '#core/logging/log';
import { createMeter } from '#core/metrics/meter';
import { metricsResponse } from '#core/exposition/metrics-response';

const answer = suite('core/exposition/metrics-response');

const nothing = () => undefined;
const large = '# a line of the exposition\n'.repeat(1_000);

/** What is answered with this token and this backend, and what is logged. */
function answering({ token, expose = () => Promise.resolve(large) }: { token?: string; expose?: () => Promise<string> } = {}) {
  const errors: object[] = [];
  const config = resolveConfig({ env: {}, file: { ...(token === undefined ? {} : { metrics: { bearer_token: token } }) } }).config;
  const backend = {
    ...{ add: nothing, set: nothing, observe: nothing, clear: nothing },
    expose: async () => ({ contentType: 'text/plain; version=0.0.4', body: await expose() }),
  };
  const log = { ...silentLog, error: (fields: object) => void errors.push(fields) };
  const respond = metricsResponse({ config, plugins: { meter: createMeter(backend) }, log });
  return { errors, get: (headers: Record<string, string> = {}) => respond({ headers }) };
}

answer('without a token anybody is shown the exposition', async () => {
  const { status, headers, body } = await answering().get();
  assert.equal([status, headers['content-type'], body.toString()], [200, 'text/plain; version=0.0.4', large]);
  assert.is(headers['content-encoding'], undefined);
});

answer('with a token nobody else is, and is told the setting and not the token', async () => {
  const { get } = answering({ token: 'long and secret 日本' });
  const wrong = ['Bearer', 'Bearer ', 'Bearer long', 'Bearer long and secret', 'Basic bG9uZw==', 'long and secret 日本', ''];
  for (const headers of [{}, ...wrong.map((authorization) => ({ authorization }))]) {
    const refused = await get(headers);
    assert.equal([refused.status, refused.headers['www-authenticate']], [401, 'Bearer realm="metrics"'], JSON.stringify(headers));
    assert.match(refused.body.toString(), /metrics\.bearer_token \(GATEWAY_METRICS_BEARER_TOKEN, --metrics-bearer-token\)/);
    assert.not.match(refused.body.toString(), 'secret');
  }
  // As Node reads the bytes of a header.
  const bytes = Buffer.from('long and secret 日本').toString('latin1');
  for (const scheme of ['Bearer', 'bearer', 'Bearer ']) assert.is((await get({ authorization: `${scheme} ${bytes}` })).status, 200, scheme);
});

answer('the exposition is compressed for who takes gzip', async () => {
  const { get } = answering();
  for (const accepted of ['gzip', 'deflate, gzip;q=1.0, *;q=0.5', 'br, GZIP', '*']) {
    const { headers, body } = await get({ 'accept-encoding': accepted });
    assert.is(headers['content-encoding'], 'gzip', accepted);
    assert.is(gunzipSync(body).toString(), large);
    assert.ok(body.length < large.length / 10);
  }
  for (const accepted of ['', 'identity', 'gzip;q=0', 'gzip; q=0.000', 'deflate, br', 'gzipped']) {
    const { headers, body } = await get({ 'accept-encoding': accepted });
    assert.equal([headers['content-encoding'], body.toString()], [undefined, large], accepted);
  }
  const small = await answering({ expose: () => Promise.resolve('# small\n') }).get({ 'accept-encoding': 'gzip' });
  assert.is(small.headers['content-encoding'], undefined);
});

answer('others have a turn before a text of megabytes is copied, and another before it is sent', async () => {
  const turns: string[] = [];
  const { get } = answering({
    expose: () => {
      setImmediate(() => {
        turns.push('one');
        setImmediate(() => turns.push('two'));
      });
      return Promise.resolve(large);
    },
  });
  await get();
  assert.equal(turns, ['one', 'two']);
});

answer('a text of megabytes is copied in turns, and no character of it is cut in two', async () => {
  const piece = 512 * 1024;
  for (const text of [
    `${'x'.repeat(piece - 1)}🙂${'日本'.repeat(piece)}`,
    '🙂'.repeat(2 * piece),
    `\ud83d${'ü'.repeat(2 * piece)}\ude42`,
  ]) {
    let isAnswered = false;
    let turns = 0;
    const count = () => {
      turns += 1;
      if (!isAnswered) setImmediate(count);
    };
    const { body } = await answering({
      expose: () => {
        setImmediate(count);
        return Promise.resolve(text);
      },
    }).get();
    isAnswered = true;
    assert.ok(body.equals(Buffer.from(text)));
    assert.ok(turns > text.length / piece, `${turns} turns`);
  }
});

answer('a backend that fails is answered with 500, without its reason, and logged when that begins', async () => {
  let fails = true;
  const { get, errors } = answering({
    expose: () => (fails ? Promise.reject(new Error('no place at db.internal')) : Promise.resolve(large)),
  });
  for (let at = 0; at < 2; at++) {
    const { status, headers, body } = await get();
    assert.equal([status, headers['content-type']], [500, 'text/plain; charset=utf-8']);
    assert.match(body.toString(), 'failed to produce the exposition');
    assert.not.match(body.toString(), 'db.internal');
  }
  assert.is(errors.length, 1);
  assert.match(String((errors[0] as { error: Error }).error), 'db.internal');
  fails = false;
  assert.is((await get()).status, 200);
  fails = true;
  assert.is((await get()).status, 500);
  assert.is(errors.length, 2);
});

answer.run();
