import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Health, readySentence, statesOnly } from '#core/process/health';

const health = suite('core/process/health');

health('the worst component decides, and nothing is ok', () => {
  const it = new Health();
  assert.is(it.state, 'ok');
  it.report('postgres', 'ok');
  assert.is(it.state, 'ok');
  it.report('source s1', 'degraded', 'the broker is away');
  assert.is(it.state, 'degraded');
  it.report('kv', 'down', 'nothing listens there');
  assert.is(it.state, 'down');
  it.forget('kv');
  assert.is(it.state, 'degraded');
});

health('a component keeps the time at which it came into its state', async () => {
  const it = new Health();
  assert.is(it.report('kv', 'down', 'one reason'), true);
  const { since } = it.components[0]!;
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.is(it.report('kv', 'down', 'one reason'), false);
  assert.is(it.report('kv', 'down', 'another reason'), true);
  assert.equal(it.components, [{ name: 'kv', state: 'down', reason: 'another reason', since }]);
  it.report('kv', 'ok');
  assert.ok(it.components[0]!.since > since);
  assert.not.ok('reason' in it.components[0]!);
});

health('who knows better says since when, and that stays while the state does', () => {
  const it = new Health();
  const since = new Date('2026-01-01T00:00:00Z');
  it.report('postgres', 'down', 'one reason', since);
  it.report('postgres', 'down', 'another reason', new Date('2026-01-01T00:00:09Z'));
  assert.equal(it.of('postgres'), {
    name: 'postgres',
    state: 'down',
    reason: 'another reason',
    since,
  });
  assert.is(it.of('nothing'), undefined);
});

health('one line says whether it can work, and what is wrong since when, the worst first', () => {
  const it = new Health();
  it.report('kv', 'ok');
  assert.is(readySentence(true, false, it.components), 'ready');
  assert.is(readySentence(false, true, it.components), 'not ready: it is draining');
  it.report('kv', 'degraded', 'its memory is full.', new Date('2026-01-01T00:00:01Z'));
  assert.is(
    readySentence(true, false, it.components),
    'ready, but kv is degraded since 2026-01-01T00:00:01.000Z: its memory is full',
  );
  it.report('postgres', 'down', 'nothing listens there.', new Date('2026-01-01T00:00:02Z'));
  assert.is(
    readySentence(false, false, it.components),
    'not ready: postgres is down since 2026-01-01T00:00:02.000Z: nothing listens there; kv is degraded since 2026-01-01T00:00:01.000Z: its memory is full',
  );
});

health('states alone name no source, and tell no reason', () => {
  const it = new Health();
  it.report('source orders of acme', 'ok');
  it.report('source invoices', 'down', 'no answer of 10.0.0.7');
  it.report('source refunds', 'degraded', 'connecting');
  it.report('kv', 'ok');
  assert.equal(statesOnly(it.components), [
    { name: 'kv', state: 'ok' },
    { name: 'source', state: 'down' },
  ]);
});

health('components are listed by name', () => {
  const it = new Health();
  for (const name of ['source b', 'kv', 'source a']) it.report(name, 'ok');
  assert.equal(
    it.components.map(({ name }) => name),
    ['kv', 'source a', 'source b'],
  );
});

health.run();
