import type { TransformResult } from '@gateway/sandbox';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { IngestSource } from '#ingest/message/ingest-source';
import { overrunRule, Overruns } from '#ingest/transform/overruns';
import { resolveConfig } from '#core/config/config';

const test = suite('ingest/transform/overruns');

type Source = Pick<IngestSource, 'id' | 'projectId'>;

const told = { logs: [], durationMs: 1 };
const refused = (code: 'timeout' | 'memory' | 'crashed' | 'threw') =>
  ({ kind: 'refused', code, reason: 'No.', ...told }) as const;
const [a, b] = ['a', 'b'].map((id) => ({ id, projectId: `project of ${id}` })) as [Source, Source];
const good: TransformResult = { kind: 'object', json: '{}', ...told };
const timeout = refused('timeout');

test('the tenth overrun within the window stops a source, and restarts the count', () => {
  const overruns = new Overruns({ max: 10, windowMs: 60_000 });
  for (let n = 0; n < 9; n++)
    assert.is(
      overruns.count(a, (['timeout', 'memory', 'crashed'] as const).map(refused)[n % 3]!, n * 1100),
      undefined,
    );
  assert.is(overruns.count(b, timeout, 9_900), undefined, 'another project has a count of its own');
  const happened = '10 of 10 calls of its transform function overran within 10 s';
  assert.equal(overruns.count(a, timeout, 9_900), { happened, sourceIds: ['a'] });
  assert.is(overruns.count(a, timeout, 9_900), undefined);
});

test('what a function throws does not count, nor what the machine was too busy to run', () => {
  const overruns = new Overruns({ max: 2, windowMs: 60_000 });
  for (let n = 0; n < 100; n++) {
    assert.is(overruns.count(a, refused('threw'), n), undefined);
    assert.is(overruns.count(a, { ...timeout, starved: true }, n), undefined);
  }
});

test('a function that overruns for few of its messages goes on', () => {
  const overruns = new Overruns({ max: 5, windowMs: 60_000 });
  for (let n = 0; n < 1000; n++)
    assert.is(overruns.count(a, n % 20 === 0 ? timeout : good, n), undefined);
  const other = new Overruns({ max: 5, windowMs: 60_000 });
  const stops = Array.from({ length: 100 }, (_, n) =>
    other.count(a, n % 5 === 0 ? timeout : good, n),
  );
  assert.is(
    stops.find((stop) => stop !== undefined)?.happened,
    '5 of 21 calls of its transform function overran within 1 s',
  );
});

test('overruns that are far between are not added up', () => {
  const overruns = new Overruns({ max: 3, windowMs: 60_000 });
  for (let n = 0; n < 100; n++) {
    assert.is(overruns.count(a, timeout, n * 40_000), undefined);
    overruns.idle(a);
  }
});

test('overruns without a break are added up however long they take, as those that wait for each other are slow', () => {
  const overruns = new Overruns({ max: 3, windowMs: 60_000 });
  const stops = [0, 50_000, 100_000].map((at) => overruns.count(a, timeout, at));
  assert.equal(
    stops.map((stop) => stop?.happened),
    [undefined, undefined, '3 of 3 calls of its transform function overran within 100 s'],
  );
});

test('a function that is never idle is not held to what it did long ago: a window of good calls ends in time', () => {
  const overruns = new Overruns({ max: 3, windowMs: 60_000 });
  overruns.count(a, timeout, 0);
  for (let n = 1; n < 1000; n++) assert.is(overruns.count(a, good, n * 100), undefined);
  const stops = [1, 2, 3].map((n) => overruns.count(a, timeout, 100_000 + n));
  assert.is(stops[2]?.happened, '3 of 3 calls of its transform function overran within 1 s');
});

test('the overruns of all sources of a project are added up, and stop each of them but those that rarely overrun', () => {
  const overruns = new Overruns({ max: 4, windowMs: 60_000 });
  const [one, two, rare] = ['one', 'two', 'rare'].map((id) => ({ id, projectId: 'p' })) as [
    Source,
    Source,
    Source,
  ];
  for (let n = 0; n < 100; n++) overruns.count(rare, n % 20 === 1 ? timeout : good, n);
  overruns.count(a, timeout, 100);
  overruns.count(one, timeout, 1_000);
  overruns.idle(one);
  assert.is(overruns.count(two, timeout, 2_000), undefined);
  assert.is(overruns.count(one, timeout, 3_000), undefined);
  const happened =
    '4 of 4 calls of the transform functions of 2 sources of its project overran within 3 s';
  assert.equal(overruns.count(two, timeout, 4_000), { happened, sourceIds: ['one', 'two'] });
  assert.is(overruns.count(two, timeout, 4_000), undefined, 'the count restarts');
  overruns.idle(two);
  for (let n = 0; n < 3; n++)
    assert.is(overruns.count(one, timeout, 70_000), undefined, 'what is long ago does not count');
});

test('a limit of 0 counts nothing', () => {
  const never = new Overruns({ max: 0, windowMs: 60_000 });
  for (let n = 0; n < 100; n++) assert.is(never.count(a, timeout, n), undefined);
});

test('the window of the settings holds so many overruns, however long the deadline is', () => {
  const rule = (transform: object) =>
    overrunRule(resolveConfig({ env: {}, command: 'agent', file: { transform } }).config);
  assert.equal(rule({}), { max: 5, windowMs: 60_000 });
  assert.equal(rule({ deadline_ms: 10_000 }), { max: 5, windowMs: 100_000 });
  assert.equal(rule({ pause_overruns: 0, pause_window_seconds: 5 }), { max: 0, windowMs: 5_000 });
});

test.run();
