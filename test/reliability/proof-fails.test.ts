// deadline: 600 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { discard } from '../support/start/keep.js';
import type { Report } from './proof/reconcile.js';
import { brokenBuild, type Breakage } from './proof/broken-builds.js';
import { runProof } from './proof/proof.js';
import type { Planned } from './proof/schedule.js';
import { reportTable } from './proof/table.js';

const fails = suite('reliability/proof-fails');

const MESSAGES = 1_500;
/** Each of the builds loses something here. It begins when everything is read, and its end is that of the messages. */
const schedule: readonly Planned[] = [
  // The names of events that wait in its queues are lost, and those of events that are accepted meanwhile.
  { atMs: 3_500, kind: 'flush Redis', target: 'redis', forMs: 0 },
  { atMs: 4_000, kind: 'cut', target: 'link to redis', forMs: 2_500 },
  // However quick the machine is, its agents hold deliveries when they die.
  { atMs: 7_000, kind: 'hang receiver', target: 'receiver', forMs: 2_500 },
  // What is read meanwhile waits to be committed when its agent dies, and so does what was answered.
  { atMs: 7_500, kind: 'crash Postgres', target: 'postgres', forMs: 2_500 },
  { atMs: 8_500, kind: 'flush Redis', target: 'redis', forMs: 0 },
  { atMs: 9_000, kind: 'kill agent', target: 'agent-1', forMs: 300 },
  { atMs: 9_000, kind: 'kill agent', target: 'agent-2', forMs: 300 },
];
/** More than the 12 s that repairs are promised to take. */
const PATIENCE_MS = 15_000;

const run = async (...breakages: readonly Breakage[]): Promise<Report> => {
  const build = breakages.length === 0 ? undefined : brokenBuild(breakages);
  try {
    const options = build ? { build: build.bin, patienceMs: PATIENCE_MS } : {};
    const { report, logs } = await runProof({ seed: 1, faults: schedule.length, messages: MESSAGES, schedule, ...options });
    if (build && logs) discard(logs);
    return report;
  } finally {
    build?.close();
  }
};

/** Two at a time: they wait more than they work. What two of the breakages do is seen apart, so they are in one build. */
const broken = Promise.all([run('acknowledges-before-commit'), run('no-lease-sweep', 'no-reconciler')]);
const whole = broken.then(() => run());
broken.catch(() => undefined);
whole.catch(() => undefined);

const lines = {
  kafka: 'messages of Kafka: delivered + in quarantine + pending or failed',
  sqs: 'messages of SQS: delivered + in quarantine + pending or failed',
  offsets: 'messages before the committed offsets that are in Postgres',
  lease: 'deliveries held beyond a lease',
  unrouted: 'events waiting to be routed, forgotten',
} as const;

/** These of the lines are wrong, and the others of them are not. */
function wrongAre(report: Report, wrong: readonly (keyof typeof lines)[]): void {
  const found = Object.entries(lines).filter(([, line]) => report.lines.some(({ what, ok }) => what === line && !ok));
  assert.equal(
    found.map(([name]) => name),
    wrong,
    reportTable(report),
  );
}

fails('a build that acknowledges before it commits loses messages, and its offsets are ahead of Postgres', async () => {
  wrongAre((await broken)[0], ['kafka', 'sqs', 'offsets']);
});

fails(
  'a build that does not take over from dead agents, nor look for lost signals, leaves deliveries beyond their lease and events that nobody routes',
  async () => {
    wrongAre((await broken)[1], ['lease', 'unrouted']);
  },
);

fails('the same faults leave the report of the gateway as it is balanced', async () => {
  const report = await whole;
  assert.ok(report.isBalanced, reportTable(report));
});

fails.run();
