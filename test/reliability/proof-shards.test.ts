// deadline: 300 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runProof } from './proof/proof.js';
import type { Planned } from './proof/schedule.js';
import { reportTable } from './proof/table.js';

/** The short form of `npm run reliability -- --shards 2`. */
const proof = suite('reliability/proof-shards');

const MESSAGES = 600;
const schedule: readonly Planned[] = [
  { atMs: 1_000, kind: 'crash a shard', target: 'postgres-2', forMs: 1_500 },
  { atMs: 2_500, kind: 'kill agent', target: 'agent-1', forMs: 500 },
  { atMs: 4_000, kind: 'kill move', target: 'project-2', forMs: 0 },
  { atMs: 6_000, kind: 'freeze a shard', target: 'postgres-2', forMs: 2_500 },
  { atMs: 6_500, kind: 'move project', target: 'project-2', forMs: 0 },
  { atMs: 8_000, kind: 'crash Postgres', target: 'postgres', forMs: 1_000 },
];

proof(
  'shards fail and a project moves while messages flow: nothing is lost or accepted twice, and other shards go on',
  async () => {
    const { report, logs } = await runProof({
      seed: 1,
      faults: schedule.length,
      messages: MESSAGES,
      schedule,
      shards: 2,
      tell: (line) => console.log(`    ${line}`),
    });
    assert.ok(report.isBalanced, `the logs are in ${logs}\n${reportTable(report)}`);
  },
);

proof.run();
