// deadline: 240 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runProof } from './proof/proof.js';
import type { Planned } from './proof/schedule.js';
import { reportTable } from './proof/table.js';

const failover = suite('reliability/proof-failover');

const MESSAGES = 2_000;
const fault = { kind: 'fail over Postgres', target: 'postgres', forMs: 1_000 };
/** The second failover is back to the first server. */
const schedule: readonly Planned[] = [
  { ...fault, atMs: 2_000 },
  { ...fault, atMs: 6_000 },
];

failover(
  'two failovers of Postgres while messages flow: nothing is lost, no event is made twice, and the report balances',
  async () => {
    const { report, logs } = await runProof({
      seed: 1,
      faults: schedule.length,
      messages: MESSAGES,
      schedule,
      tell: (line) => console.log(`    ${line}`),
    });
    assert.ok(report.isBalanced, `${reportTable(report)}\nthe logs are in ${logs}`);
  },
);

failover.run();
