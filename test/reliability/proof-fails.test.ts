// deadline: 240 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { discard } from '../support/start/keep.js';
import { brokenBuild } from './proof/broken-builds.js';
import { runProof } from './proof/proof.js';
import type { Planned } from './proof/schedule.js';
import { reportTable } from './proof/table.js';

const fails = suite('reliability/proof-fails');

const MESSAGES = 1_500;
/**
 * The build loses something at each of these faults. The schedule starts once everything is read,
 * and ends with the messages.
 */
const schedule: readonly Planned[] = [
  // Loses the names of events in the Redis queues, and of events accepted meanwhile.
  { atMs: 3_500, kind: 'flush Redis', target: 'redis', forMs: 0 },
  { atMs: 4_000, kind: 'cut', target: 'link to redis', forMs: 2_500 },
  // Ensures that agents hold deliveries when they die, however fast the machine.
  { atMs: 7_000, kind: 'hang receiver', target: 'receiver', forMs: 2_500 },
  // Messages read meanwhile, and answered attempts, are uncommitted when their agent dies.
  { atMs: 7_500, kind: 'crash Postgres', target: 'postgres', forMs: 2_500 },
  { atMs: 8_500, kind: 'flush Redis', target: 'redis', forMs: 0 },
  { atMs: 9_000, kind: 'kill agent', target: 'agent-1', forMs: 300 },
  { atMs: 9_000, kind: 'kill agent', target: 'agent-2', forMs: 300 },
];
/** More than the 12 s within which repairs are guaranteed. */
const PATIENCE_MS = 15_000;

/**
 * The lines of the report that must be wrong; `reliability/proof` shows that faults alone leave
 * them correct.
 */
const wrong = [
  'messages of Kafka: delivered + in quarantine + pending or failed',
  'messages of SQS: delivered + in quarantine + pending or failed',
  'messages before the committed offsets that are in Postgres',
  'deliveries held beyond a lease',
  'events waiting to be routed, forgotten',
];

fails(
  'a build that acknowledges before its commit, does not recover deliveries and does not reconcile fails the proof in each of these',
  async () => {
    const build = brokenBuild(['acknowledges-before-commit', 'no-lease-sweep', 'no-reconciler']);
    try {
      const options = { build: build.bin, patienceMs: PATIENCE_MS };
      const { report, logs } = await runProof({
        seed: 1,
        faults: schedule.length,
        messages: MESSAGES,
        schedule,
        ...options,
      });
      if (logs) discard(logs);
      assert.not.ok(report.isBalanced);
      const found = report.lines.flatMap(({ what, ok }) => (ok ? [] : [what]));
      assert.equal(
        wrong.filter((line) => !found.includes(line)),
        [],
        reportTable(report),
      );
    } finally {
      build.close();
    }
  },
);

fails.run();
