import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { RequestFailure } from '#agent/destinations/http/failure';
import { resultOf, retryAfterSeconds } from '#agent/destinations/http/outcome';
import type { RequestResult } from '#agent/destinations/http/sender';

const outcome = suite('agent/destinations/http/outcome');

const classify = (answer: Partial<RequestResult>) =>
  resultOf(
    { status: null, headers: {}, body: '', failure: null, ...answer },
    'https://example.com',
    Date.UTC(2026, 10, 21),
    5,
  );
const byStatus = (status: number, headers = {}) => classify({ status, headers });

outcome('each status has one outcome', () => {
  for (let status = 200; status < 600; status++)
    assert.is(
      byStatus(status).outcome,
      status < 300 ? 'delivered' : status === 410 ? 'gone' : 'retry',
      String(status),
    );
});

outcome('a request that was not answered, or answered with a redirect, is retried', () => {
  const failure: RequestFailure = { class: 'status', message: 'a redirect' };
  assert.is(classify({ status: 302, failure }).outcome, 'retry');
  const { outcome: of, code, headers } = classify({ failure: { class: 'dns', message: 'no' } });
  assert.equal([of, code, headers], ['retry', null, null]);
});

outcome('an answer that was cut is recorded by its status, with a remark', () => {
  const remark = 'example.com closed the connection in the middle of its answer.';
  const told = (status: number) => {
    const { outcome: of, code, failure, detail, body } = classify({ status, body: 'hal', remark });
    return [of, code, failure, detail, body];
  };
  assert.equal(told(200), ['delivered', 200, null, remark, 'hal']);
  assert.equal(told(503), ['retry', 503, 'status', `The endpoint answered 503. ${remark}`, 'hal']);
});

outcome('Retry-After counts for a retry alone, from the end of the attempt', () => {
  const after = (status: number) =>
    byStatus(status, { 'retry-after': 'Sat, 21 Nov 2026 00:00:10 GMT' }).afterSeconds;
  assert.equal([200, 410, 429, 503].map(after), [null, null, 9.995, 9.995]);
});

outcome(
  'failures of the endpoint count, answers of one that is there do not, and what never reached it tells nothing',
  () => {
    const ups = (statuses: readonly number[]) => statuses.map((status) => byStatus(status).isUp);
    assert.equal(ups([200, 204, 301, 400, 401, 404, 410, 422]), Array(8).fill(true));
    assert.equal(ups([408, 429, 500, 502, 503, 504]), Array(6).fill(false));
    const failing = (failure: RequestFailure['class']) =>
      classify({ failure: { class: failure, message: '' } }).isUp;
    assert.equal(
      (['dns', 'connect', 'tls', 'timeout', 'reset', 'protocol'] as const).map(failing),
      Array(6).fill(false),
    );
    assert.equal((['refused_address', 'unsendable', 'proxy'] as const).map(failing), [
      null,
      null,
      null,
    ]);
  },
);

outcome('Retry-After is seconds or a date', () => {
  const nowMs = Date.UTC(2026, 10, 21, 12, 0, 0);
  assert.is(retryAfterSeconds('120', nowMs), 120);
  assert.is(retryAfterSeconds(' 0 ', nowMs), 0);
  assert.is(retryAfterSeconds('Sat, 21 Nov 2026 12:02:00 GMT', nowMs), 120);
  assert.is(retryAfterSeconds('Sat, 21 Nov 2026 11:00:00 GMT', nowMs), 0);
  assert.is(retryAfterSeconds('99999999999', nowMs), 99_999_999_999);
});

outcome('a date of Retry-After is UTC in each form of HTTP, wherever the agent runs', () => {
  const nowMs = Date.UTC(2026, 10, 1, 12, 0, 0);
  const { TZ } = process.env;
  try {
    for (const zone of ['UTC', 'America/New_York', 'Asia/Kolkata']) {
      process.env['TZ'] = zone;
      for (const date of [
        'Sun, 01 Nov 2026 12:02:00 GMT',
        'Sunday, 01-Nov-26 12:02:00 GMT',
        'Sun Nov  1 12:02:00 2026',
        'Sun Nov 01 12:02:00 2026',
        'Sun, 01 Nov 2026 12:02:00',
        'Sun, 01 Nov 2026 12:02:00 UTC',
        'Sun, 01 Nov 2026 13:02:00 +0100',
      ])
        assert.is(retryAfterSeconds(date, nowMs), 120, `${date} in ${zone}`);
    }
  } finally {
    if (TZ === undefined) delete process.env['TZ'];
    else process.env['TZ'] = TZ;
  }
});

outcome('a Retry-After that makes no sense is none', () => {
  const nowMs = Date.UTC(2026, 10, 21);
  for (const value of [
    undefined,
    '',
    ' ',
    'soon',
    'after 2030',
    '120s',
    '1,2',
    '-1',
    '1.5',
    '-120',
    '1e3',
    'NaN',
    '0x10',
    'Sat, soon',
    '2026-11-22T00:00:00Z',
  ]) {
    assert.is(retryAfterSeconds(value, nowMs), null, value);
  }
});
outcome.run();
