import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Health } from '@gateway/core/health';

const health = suite('core/health');

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

health('components are listed by name', () => {
  const it = new Health();
  for (const name of ['source b', 'kv', 'source a']) it.report(name, 'ok');
  assert.equal(
    it.components.map(({ name }) => name),
    ['kv', 'source a', 'source b'],
  );
});

health.run();
