import type { TransformResult } from '@gateway/sandbox';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { overrunRule, Overruns } from '#agent/ingest/pause-sources';
import { resolveConfig } from '#core/config/config';

const test = suite('agent/ingest/overruns');

const told = { logs: [], durationMs: 1 };
const refused = (code: 'timeout' | 'memory' | 'crashed' | 'threw') => ({ kind: 'refused', code, reason: 'No.', ...told }) as const;
const good: TransformResult = { kind: 'object', json: '{}', ...told };
const timeout = refused('timeout');

test('the tenth overrun within the window stops a function, and restarts the count', () => {
  const overruns = new Overruns({ max: 10, windowMs: 60_000 });
  for (let n = 0; n < 9; n++)
    assert.is(overruns.count('a', (['timeout', 'memory', 'crashed'] as const).map(refused)[n % 3]!, n * 1100), undefined);
  assert.is(overruns.count('b', timeout, 9_900), undefined, 'another function has a count of its own');
  assert.is(overruns.count('a', timeout, 9_900), '10 of 10 calls of its transform function overran within 10 s');
  assert.is(overruns.count('a', timeout, 9_900), undefined);
});

test('what a function throws does not count, nor what the machine was too busy to run', () => {
  const overruns = new Overruns({ max: 2, windowMs: 60_000 });
  for (let n = 0; n < 100; n++) {
    assert.is(overruns.count('a', refused('threw'), n), undefined);
    assert.is(overruns.count('a', { ...timeout, starved: true }, n), undefined);
  }
});

test('a function that overruns for few of its messages goes on', () => {
  const overruns = new Overruns({ max: 5, windowMs: 60_000 });
  for (let n = 0; n < 1000; n++) assert.is(overruns.count('a', n % 20 === 0 ? timeout : good, n), undefined);
  const other = new Overruns({ max: 5, windowMs: 60_000 });
  const stops = Array.from({ length: 100 }, (_, n) => other.count('a', n % 5 === 0 ? timeout : good, n));
  assert.is(
    stops.find((stop) => stop !== undefined),
    '5 of 21 calls of its transform function overran within 1 s',
  );
});

test('overruns that are far between are not added up', () => {
  const overruns = new Overruns({ max: 3, windowMs: 60_000 });
  for (let n = 0; n < 100; n++) {
    assert.is(overruns.count('a', timeout, n * 40_000), undefined);
    overruns.idle('a');
  }
});

test('overruns without a break are added up however long they take, as those that wait for each other are slow', () => {
  const overruns = new Overruns({ max: 3, windowMs: 60_000 });
  const stops = [0, 50_000, 100_000].map((at) => overruns.count('a', timeout, at));
  assert.equal(stops, [undefined, undefined, '3 of 3 calls of its transform function overran within 100 s']);
});

test('a function that is never idle is not held to what it did long ago: a window of good calls ends in time', () => {
  const overruns = new Overruns({ max: 3, windowMs: 60_000 });
  overruns.count('a', timeout, 0);
  for (let n = 1; n < 1000; n++) assert.is(overruns.count('a', good, n * 100), undefined);
  const stops = [1, 2, 3].map((n) => overruns.count('a', timeout, 100_000 + n));
  assert.is(stops[2], '3 of 3 calls of its transform function overran within 1 s');
});

test('a forgotten function starts from zero, and a limit of 0 counts nothing', () => {
  const overruns = new Overruns({ max: 2, windowMs: 60_000 });
  overruns.count('a', timeout, 0);
  overruns.forget('a');
  assert.is(overruns.count('a', timeout, 1), undefined);
  const never = new Overruns({ max: 0, windowMs: 60_000 });
  for (let n = 0; n < 100; n++) assert.is(never.count('a', timeout, n), undefined);
});

test('the window of the settings holds so many overruns, however long the deadline is', () => {
  const rule = (transform: object) => overrunRule(resolveConfig({ env: {}, command: 'agent', file: { transform } }).config);
  assert.equal(rule({}), { max: 10, windowMs: 60_000 });
  assert.equal(rule({ deadline_ms: 10_000 }), { max: 10, windowMs: 200_000 });
  assert.equal(rule({ pause_overruns: 0, pause_window_seconds: 5 }), { max: 0, windowMs: 5_000 });
});

test.run();
