// `npm run scale -- --workers 2 --shards 2 --messages 20000`: shards under load. See
// docs/internals/testing.md.
import { parseArgs } from 'node:util';
import { machine } from '../machine.js';
import { reportTable } from '../proof/table.js';
import { runScale, type Fault } from './scale.js';

const ROUND: readonly Fault[] = [
  'kill an agent',
  'crash a Postgres',
  'move a project',
  'rebalance',
];

// A service missing on this machine is a failure here: nothing would be proved.
process.env['CI'] = 'true';

const { workers, shards, messages, rounds } = read();
try {
  const { report, services, seconds, faults, duplicates, lost, events, logs } = await runScale({
    workers,
    shards,
    messages,
    faults: Array.from({ length: rounds }, () => ROUND).flat(),
    tell: (line) => console.error(line),
  });
  console.log(`\n${machine()}, ${services}\n\n${reportTable(report)}`);
  if (logs !== undefined) console.error(`the logs are in ${logs}`);
  if (!report.isBalanced || lost > 0) process.exitCode = 1;
  const spread = Object.entries(events).map(([shard, n]) => `${n} on ${shard}`);
  console.log(`events: ${spread.join(', ')}`);
  console.log(
    `${messages} messages in ${seconds.toFixed(1)} s, ${Math.round(messages / seconds)}/s; ${shards} shards, ${workers} workers, ` +
      `${faults} faults, ${duplicates} duplicates, ${lost} lost`,
  );
} catch (error) {
  console.error(`error: ${(error as Error).message}`);
  process.exitCode = 1;
}

function read() {
  try {
    const { values } = parseArgs({
      options: {
        workers: { type: 'string', default: '2' },
        shards: { type: 'string', default: '2' },
        messages: { type: 'string', default: '20000' },
        rounds: { type: 'string', default: '1' },
      },
    });
    return {
      workers: whole('--workers', values.workers, 0),
      shards: whole('--shards', values.shards, 2),
      messages: whole('--messages', values.messages, 100),
      rounds: whole('--rounds', values.rounds, 0),
    };
  } catch (error) {
    console.error(
      `error: ${(error as Error).message}\nfix:   npm run scale -- [--workers 2] [--shards 2] [--messages 20000] [--rounds 1]`,
    );
    process.exit(2);
  }
}

function whole(name: string, value: string, min: number): number {
  if (/^\d{1,9}$/.test(value) && Number(value) >= min) return Number(value);
  throw new Error(`${name} is a whole number from ${min}, not ${value}`);
}
