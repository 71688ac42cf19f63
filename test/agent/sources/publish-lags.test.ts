import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { publishLags } from '#agent/sources/publish-lags';
import { SourceLags } from '#agent/sources/source-lags';
import { AgentLease } from '#agent/model/lease';
import { silentLog } from '#core/logging/log';
import { MemoryKv } from '#store/kv/memory-kv';
import { readSourceLag } from '#store/kv/source-lags';
import { readSourceStates } from '#store/kv/source-states';
import { until } from '../../support/until.js';

const publishing = suite('agent/sources/publish-lags');

publishing(
  'the lag of sources that tell one is in KV, also after KV was away, and no longer changes when it is stopped',
  async () => {
    const lags = new SourceLags();
    for (const id of ['kafka', 'silent']) lags.begin({ projectId: 'p', id });
    lags.tell('kafka', '0', 3, { position: '4', end: '7' });
    lags.tell('kafka', '', 2);
    const kv = new MemoryKv();
    const lease = Object.assign(new AgentLease(), { agentId: 7 });
    let isAway = true;
    const set: MemoryKv['set'] = (...given) =>
      isAway ? Promise.reject(new Error('away')) : kv.set(...given);
    const stop = publishLags(
      { kv: Object.assign(Object.create(kv) as MemoryKv, { set }), lease, log: silentLog, lags },
      5,
    );
    try {
      isAway = false;
      const found = await until('the report', () => readSourceLag(kv, 'kafka', [7]));
      assert.equal(found.partitions, [
        { partition: '0', messages: 3, position: '4', end: '7' },
        { partition: '', messages: 2, position: null, end: null },
      ]);
      assert.is(await readSourceLag(kv, 'silent', [7]), undefined);
    } finally {
      stop();
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
    lags.tell('kafka', '0', 1_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.is((await readSourceLag(kv, 'kafka', [7]))?.messages, 5);
  },
);

publishing(
  'how a source is read is in KV soon after it has changed, with the sum of its lag',
  async () => {
    const lags = new SourceLags();
    const kv = new MemoryKv();
    const stop = publishLags(
      { kv, lease: Object.assign(new AgentLease(), { agentId: 7 }), log: silentLog, lags },
      50,
    );
    const state = async () =>
      (await readSourceStates(kv, { projectId: 'p', sourceIds: ['kafka'], agentIds: [7] })).get(
        'kafka',
      );
    const becomes = (wanted: string) =>
      until(wanted, async () => (await state())?.state === wanted);
    try {
      lags.begin({ projectId: 'p', id: 'kafka' });
      lags.tellState('kafka', 'failing');
      await becomes('connecting');
      lags.tellState('kafka', 'failing', 'The broker refused the password.');
      await becomes('failing');
      lags.tellState('kafka', 'failing');
      await new Promise((resolve) => setTimeout(resolve, 60));
      const { state: kept, reason, messages } = (await state())!;
      assert.equal(
        [kept, reason, messages],
        ['failing', 'The broker refused the password.', null],
        'while it connects again',
      );
      lags.tell('kafka', '0', 3);
      lags.tell('kafka', '1', 4);
      lags.tellState('kafka', 'reading');
      await becomes('reading');
      assert.equal([(await state())?.reason, (await state())?.messages], [null, 7]);
      lags.tellState('kafka', 'stopped');
      assert.equal(lags.states(), []);
    } finally {
      stop();
    }
  },
);

publishing(
  'the lag of a source is in KV as soon as it is known, and not only with the next report of all',
  async () => {
    const lags = new SourceLags();
    const kv = new MemoryKv();
    const startedAtMs = performance.now();
    const stop = publishLags(
      { kv, lease: Object.assign(new AgentLease(), { agentId: 7 }), log: silentLog, lags },
      5_000,
    );
    try {
      lags.begin({ projectId: 'p', id: 'kafka' });
      lags.tellState('kafka', 'reading');
      lags.tell('kafka', '0', 3);
      assert.is((await until('the lag', () => readSourceLag(kv, 'kafka', [7]))).messages, 3);
      assert.ok(performance.now() - startedAtMs < 4_900, 'before the first report of all');
    } finally {
      stop();
    }
  },
);

publishing.run();
