import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { publishLags } from '#agent/ingest/publish-lags';
import { SourceLags } from '#agent/ingest/source-watch';
import { AgentLease } from '#agent/model/lease';
import { silentLog } from '#core/logging/log';
import { MemoryKv } from '#store/kv/memory-kv';
import { readSourceLag } from '#store/kv/source-lags';
import { until } from '../../support/until.js';

const publishing = suite('agent/ingest/publish-lags');

publishing('the lag of sources that tell one is in KV, also after KV was away, and no longer changes when it is stopped', async () => {
  const lags = new SourceLags();
  for (const id of ['kafka', 'silent']) lags.begin({ projectId: 'p', id });
  lags.tell('kafka', '0', 3, { position: '4', end: '7' });
  lags.tell('kafka', '', 2);
  const kv = new MemoryKv();
  const lease = Object.assign(new AgentLease(), { agentId: 7 });
  let isAway = true;
  const set: MemoryKv['set'] = (...given) => (isAway ? Promise.reject(new Error('away')) : kv.set(...given));
  const stop = publishLags({ kv: Object.assign(Object.create(kv) as MemoryKv, { set }), lease, log: silentLog, lags }, 5);
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
});

publishing.run();
