// deadline: 180 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { reportTable } from './proof/table.js';
import { runScale } from './scale/scale.js';

/** The short form of `npm run scale`. */
const scale = suite('reliability/scale');

scale(
  'a Postgres crashes and a project moves while messages flow: each is accepted on one shard, and none is lost',
  async () => {
    const { report, lost, events, logs } = await runScale({
      workers: 0,
      shards: 2,
      messages: 1_000,
      faults: ['crash a Postgres', 'move a project'],
    });
    assert.ok(report.isBalanced, `the logs are in ${logs}\n${reportTable(report)}`);
    assert.is(lost, 0);
    assert.ok(events['default']! < events['s2']!, 'the new shard has the events after the move');
  },
);

scale.run();
