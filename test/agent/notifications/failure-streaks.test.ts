import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { FailureStreaks } from '#agent/notifications/failure-streaks';
import type { AttemptRecord } from '#store/deliveries/delivery-attempts';

const streaks = suite('agent/notifications/failure-streaks');

function attempt(endpointId: string, error: string | null = null, fields: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    projectId: 'p',
    endpointId,
    errorClass: error && 'status',
    error,
    httpStatus: 500,
    requestedAtMs: 1,
    ...fields,
  } as AttemptRecord;
}

streaks('an endpoint is told of when so many attempts in a row have failed, once, with the last error and the time of the first', () => {
  const it = new FailureStreaks(3);
  assert.is(it.attempted(attempt('a', 'one', { requestedAtMs: 7 })), undefined);
  it.attempted(attempt('b', 'other'));
  it.attempted(attempt('a', 'two'));
  const told = it.attempted(attempt('a', 'three'));
  assert.equal(told, { projectId: 'p', endpointId: 'a', failures: 3, sinceMs: 7, error: 'three' });
  assert.is(it.attempted(attempt('a', 'four')), undefined);
  assert.equal([...it.failing.keys()], ['a']);
  assert.is(it.continues(told!), true);
});

streaks('a success begins the count anew, and tells that one who was told of has recovered', () => {
  const it = new FailureStreaks(2);
  it.attempted(attempt('a', 'e'));
  it.attempted(attempt('a'));
  assert.is(it.attempted(attempt('a', 'e')), undefined);
  const told = it.attempted(attempt('a', 'e'))!;
  it.notified.add('a');
  it.attempted(attempt('a'));
  assert.equal([[...it.failing.keys()], [...it.recovered], it.continues(told)], [[], ['a'], false]);
  // Told of by another agent, and never failing here.
  it.notified.add('c');
  it.attempted(attempt('c'));
  assert.equal([...it.recovered], ['a', 'c']);
  assert.is(it.attempted(attempt('a', 'e')), undefined);
  assert.ok(it.attempted(attempt('a', 'e')));
});

streaks('410 is no failure to tell of: that endpoint is disabled', () => {
  const it = new FailureStreaks(1);
  assert.is(it.attempted(attempt('a', 'gone', { httpStatus: 410 })), undefined);
});

streaks('endpoints that are no more are forgotten', () => {
  const it = new FailureStreaks(1);
  it.attempted(attempt('a', 'e'));
  it.attempted(attempt('b', 'e'));
  it.keep((_, id) => id === 'b');
  assert.equal([...it.failing.keys()], ['b']);
});

streaks.run();
