import { setImmediate as nextTurn } from 'node:timers/promises';
import v8 from 'node:v8';
import vm from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createMeter, createCollectors } from '#core/metrics/meter';
import type { Labels, Metrics } from '@gateway/plugin';

const meter = suite('core/metrics/meter');

v8.setFlagsFromString('--expose-gc');
const collectGarbage = vm.runInNewContext('gc') as () => void;

function backend() {
  const shown = new Map<string, Map<string, number>>();
  const put = (name: string, labels: Labels, change: (before: number) => number) => {
    const sets = shown.get(name) ?? new Map<string, number>();
    const key = Object.values(labels).join(' ');
    shown.set(name, sets.set(key, change(sets.get(key) ?? 0)));
  };
  const metrics: Metrics = {
    add: (name, labels, amount) => put(name, labels, (before) => before + amount),
    set: (name, labels, value) => put(name, labels, () => value),
    observe: (name, labels) => put(name, labels, (before) => before + 1),
    clear: (name) => shown.delete(name),
    expose: () => Promise.resolve({ contentType: 'text/plain', body: 'exposed' }),
  };
  return { metrics, of: (name: string) => Object.fromEntries(shown.get(name) ?? []) };
}

meter('the verbs reach the backend, and an amount is one unless it is given', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics);
  it.add('gateway_ingest_total', { project: 'p', source: 's' });
  it.add('gateway_ingest_total', { project: 'p', source: 's' }, 4);
  it.set('gateway_event_queue_scheduled_total', { status: 'scheduled' }, 7);
  it.observe('gateway_ingest_latency', { project: 'p' }, 0.1);
  assert.equal(of('gateway_ingest_total'), { 'p s': 5 });
  assert.equal(of('gateway_event_queue_scheduled_total'), { scheduled: 7 });
  assert.equal(of('gateway_ingest_latency'), { p: 1 });
});

meter('label sets beyond the limit are folded by project, and a series counts them', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics, { labelSetsMax: 2 });
  for (const endpoint of ['a', 'b', 'c', 'd', 'a', 'c'])
    it.observe('gateway_end_to_end_latency', { project: 'p', endpoint }, 1);
  assert.equal(of('gateway_end_to_end_latency'), { 'p a': 2, 'p b': 1, 'p other': 3 });
  assert.equal(of('gateway_metrics_folded'), { gateway_end_to_end_latency: 2 });
});

meter(
  'a thousand label sets are shown unless another limit is given, and nothing of the others is lost',
  () => {
    const { metrics, of } = backend();
    const it = createMeter(metrics);
    for (let at = 0; at < 100_000; at++)
      it.observe('gateway_end_to_end_latency', { project: 'p', endpoint: `e${at}` }, 0.2);
    const shown = of('gateway_end_to_end_latency');
    assert.is(Object.keys(shown).length, 1001);
    assert.is(shown['p other'], 99_000);
    assert.is(
      of('gateway_metrics_folded')['gateway_end_to_end_latency'],
      10_000,
      'counted up to a bound',
    );
  },
);

meter('many projects are folded too, so that the label sets stay few', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics, { labelSetsMax: 20 });
  for (let at = 0; at < 5_000; at++)
    it.add('gateway_ingest_total', { project: `p${at}`, source: 's' });
  const shown = of('gateway_ingest_total');
  assert.is(Object.keys(shown).length, 20 + 2 + 1);
  assert.is(shown['other other'], 5_000 - 22);
});

meter('what has few values is kept when label sets are folded: sums by status stay right', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics, { labelSetsMax: 20 });
  for (let source = 0; source < 30; source++) {
    for (const status of ['pending', 'success'])
      it.set('gateway_event_queue_total', { project: 'p', source: `${source}`, status }, 2);
  }
  const shown = of('gateway_event_queue_total');
  assert.equal([shown['p other pending'], shown['p other success']], [40, 40]);
});

meter('folded counts are added up, folded ages keep the oldest', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics, { labelSetsMax: 1 });
  const sample = (values: Readonly<Record<string, number>>) => {
    it.clear('gateway_event_delivery_attempts_total');
    it.clear('gateway_event_delivery_queue_backlog_seconds');
    for (const [endpoint, value] of Object.entries(values)) {
      it.set(
        'gateway_event_delivery_attempts_total',
        { project: 'p', endpoint, status: 'success', http_status_code: '200' },
        value,
      );
      it.set(
        'gateway_event_delivery_queue_backlog_seconds',
        { project: 'p', endpoint, source: 's' },
        value,
      );
    }
    return [
      of('gateway_event_delivery_attempts_total')['p other success 200'],
      of('gateway_event_delivery_queue_backlog_seconds')['p other other'],
    ];
  };
  assert.equal(sample({ a: 1, b: 5, c: 3 }), [8, 5]);
  assert.equal(sample({ a: 1, b: 2, c: 3 }), [5, 3], 'and begin anew with the next sample');
});

meter('series that name nothing of a user are never folded: their label sets are few', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics, { labelSetsMax: 1 });
  for (const state of ['busy', 'idle', 'waiting'] as const) {
    for (const value of [5, 2])
      it.set('gateway_pool_connections', { shard: 'default', state }, value);
  }
  for (const step of ['commit', 'record']) it.observe('gateway_step_duration_seconds', { step }, 1);
  assert.equal(of('gateway_pool_connections'), {
    'default busy': 2,
    'default idle': 2,
    'default waiting': 2,
  });
  assert.equal(of('gateway_step_duration_seconds'), { commit: 1, record: 1 });
  assert.equal(of('gateway_metrics_folded'), {}, 'and nothing says that they were');
});

meter(
  'what comes folded already is put together with what is folded here, and counted with it',
  () => {
    const { metrics, of } = backend();
    const it = createMeter(metrics, { labelSetsMax: 2 });
    const sample = (before: number) => {
      it.clear('gateway_event_queue_total', before);
      const set = (source: string, value: number) =>
        it.set('gateway_event_queue_total', { project: 'p', source, status: 'pending' }, value);
      for (const source of ['a', 'b', 'c', 'd']) set(source, 1);
      set('other', 100);
      return [of('gateway_event_queue_total'), of('gateway_metrics_folded')];
    };
    const shown = { 'p a pending': 1, 'p b pending': 1, 'p other pending': 102 };
    assert.equal(sample(7), [shown, { gateway_event_queue_total: 9 }]);
    assert.equal(sample(0), [shown, { gateway_event_queue_total: 2 }]);
  },
);

meter('a cleared gauge starts anew, what was folded too', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics, { labelSetsMax: 1 });
  const sample = (sources: string[]) => {
    it.clear('gateway_event_queue_total');
    for (const source of sources)
      it.set('gateway_event_queue_total', { project: 'p', source, status: 'pending' }, 2);
  };
  sample(['a', 'b', 'c']);
  assert.equal(of('gateway_event_queue_total'), { 'p a pending': 2, 'p other pending': 4 });
  sample(['a']);
  assert.equal(of('gateway_event_queue_total'), { 'p a pending': 2 });
  assert.is(of('gateway_metrics_folded')['gateway_event_queue_total'], 0);
});

meter('a sample that is small enough is shown whole, whatever the one before has shown', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics, { labelSetsMax: 2 });
  for (const status of ['pending', 'processed']) {
    it.clear('gateway_event_queue_total');
    for (const source of ['a', 'b'])
      it.set('gateway_event_queue_total', { project: 'p', source, status }, 1);
    assert.equal(of('gateway_event_queue_total'), { [`p a ${status}`]: 1, [`p b ${status}`]: 1 });
  }
  assert.equal(of('gateway_metrics_folded'), { gateway_event_queue_total: 0 });
});

meter('what samples before have shown changes nothing about how one is shown', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics, { labelSetsMax: 4 });
  const show = (meter: typeof it, sources: readonly number[]) => {
    meter.clear('gateway_event_queue_total');
    for (const source of sources)
      meter.set(
        'gateway_event_queue_total',
        { project: `p${source % 3}`, source: `s${source}`, status: 'pending' },
        source,
      );
  };
  // Zero to ten of twenty sources, in varying order: separate in one sample, merged in the next,
  // absent in a third.
  for (let at = 0; at < 300; at++) {
    const sources = Array.from({ length: (at * 7) % 11 }, (_, k) => (at * at + k * 3) % 20);
    show(it, sources);
    const fresh = backend();
    show(createMeter(fresh.metrics, { labelSetsMax: 4 }), sources);
    for (const name of ['gateway_event_queue_total', 'gateway_metrics_folded'])
      assert.equal(of(name), fresh.of(name), `sample ${at}`);
  }
});

meter('label sets that do not come again are forgotten', () => {
  const { metrics } = backend();
  const it = createMeter(metrics);
  const usedBytes = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  let made = 0;
  const samples = (n: number) => {
    for (let sample = 0; sample < n; sample++) {
      it.clear('gateway_event_queue_total');
      for (let at = 0; at < 1_000; at++)
        it.set(
          'gateway_event_queue_total',
          { project: 'p', source: `source ${made++}`, status: 'pending' },
          at,
        );
    }
  };
  samples(5);
  const before = usedBytes();
  samples(95);
  const grownBytes = usedBytes() - before;
  // A thousand label sets take a third of a megabyte.
  assert.ok(grownBytes < 5e6, `${grownBytes} bytes more after 95 samples`);
});

meter(
  'what is registered is called before every exposition, and those who ask at once are given the same',
  async () => {
    const { metrics, of } = backend();
    let renderings = 0;
    const it = createMeter({
      ...metrics,
      expose: () =>
        Promise.resolve({ contentType: 'text/plain', body: `rendering ${++renderings}` }),
    });
    let moment = 0;
    const remove = it.collect(() => it.set('gateway_sandbox_processes', {}, ++moment));
    const bodies = await Promise.all([it.expose(), it.expose(), it.expose()]);
    assert.equal(
      bodies.map(({ body }) => body),
      ['rendering 1', 'rendering 1', 'rendering 1'],
    );
    assert.equal(of('gateway_sandbox_processes'), { '': 1 });
    assert.is((await it.expose()).body, 'rendering 2');
    remove();
    await it.expose();
    assert.equal(of('gateway_sandbox_processes'), { '': 2 });
  },
);

meter(
  'an exposition waits for a reader that takes turns, and is made in the turn in which that ends',
  async () => {
    const { metrics } = backend();
    let turn = 0;
    const count = () => {
      turn += 1;
      if (turn < 20) setImmediate(count);
    };
    setImmediate(count);
    const it = createMeter({
      ...metrics,
      expose: () => Promise.resolve({ contentType: 'text/plain', body: `turn ${turn}` }),
    });
    let endedInTurn = 0;
    it.collect(async () => {
      for (let k = 0; k < 5; k++) await nextTurn();
      endedInTurn = turn;
    });
    assert.is((await it.expose()).body, `turn ${endedInTurn}`);
    assert.ok(endedInTurn >= 4, String(endedInTurn));
  },
);

meter(
  'without a backend everything is allowed and the exposition says why it is empty',
  async () => {
    const it = createMeter(undefined, { absence: 'the licence does not include it' });
    it.add('gateway_ingest_total', { project: 'p', source: 's' });
    it.clear('gateway_event_queue_total');
    assert.is((await it.expose()).body, '# no metrics: the licence does not include it\n');
  },
);

function listening() {
  const warnings: object[] = [];
  return { warnings, log: { warn: (fields: object) => void warnings.push(fields) } };
}

meter('all are called at each run, until they are removed', async () => {
  const { warnings, log } = listening();
  const it = createCollectors(log);
  const calls = { one: 0, two: 0 };
  const remove = it.add(() => void calls.one++);
  it.add(() => void calls.two++);
  await it.run();
  assert.equal(calls, { one: 1, two: 1 });
  remove();
  await it.run();
  assert.equal([calls, warnings], [{ one: 1, two: 2 }, []]);
});

meter(
  'one that fails is logged when that begins, and the others are read all the same',
  async () => {
    const { warnings, log } = listening();
    const it = createCollectors(log);
    let broken = true;
    let read = 0;
    it.add(() => {
      if (broken) throw new Error('no such pool');
    });
    it.add(() => {
      throw new Error('nothing there');
    });
    it.add(() => void read++);
    await it.run();
    await it.run();
    assert.is(read, 2);
    assert.is(warnings.length, 2, 'once each');
    assert.match(String((warnings[0] as { error: Error }).error), 'no such pool');
    broken = false;
    await it.run();
    broken = true;
    await it.run();
    assert.is(warnings.length, 3, 'and again after it has worked');
  },
);

meter(
  'those that take turns are waited for, all at once; one of them that fails is logged like any other',
  async () => {
    const { warnings, log } = listening();
    const it = createCollectors(log);
    const begun: string[] = [];
    const ended: string[] = [];
    for (const name of ['one', 'two'])
      it.add(async () => {
        begun.push(name);
        await nextTurn();
        ended.push(name);
      });
    it.add(async () => {
      await nextTurn();
      throw new Error('no such pool');
    });
    const running = it.run();
    assert.equal([begun, ended], [['one', 'two'], []]);
    await running;
    assert.equal([ended, warnings.length], [['one', 'two'], 1]);
  },
);

meter.run();
