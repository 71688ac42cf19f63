// `npm run reliability -- --faults 200 --seed 7`: the long form of the proof. See
// docs/internals/testing.md.
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { machine } from '../machine.js';
import { runProof } from './proof.js';
import { longForm, shortForm } from './schedule.js';
import { reportTable } from './table.js';

const FAULTS = 1000;
const MESSAGES_A_FAULT = 250;
const forms = { short: shortForm, long: longForm };

// A service missing on this machine is a failure here: nothing would be proved.
process.env['CI'] = 'true';

const asked = read();
const repeat =
  `npm run reliability -- --faults ${asked.faults} --seed ${asked.seed} --messages ${asked.messages} --form ${asked.form}` +
  (asked.shards > 1 ? ` --shards ${asked.shards} --workers ${asked.workers}` : '') +
  (asked.build === undefined ? '' : ` --build ${asked.build}`);
console.error(`${machine()}\nseed ${asked.seed}; to repeat: ${repeat}`);
try {
  const { form, ...numbers } = asked;
  const { journal, report, services, logs } = await runProof({
    ...numbers,
    form: forms[form],
    patienceMs: form === 'short' ? 60_000 : 120_000,
    tell: (line) => console.error(line),
  });
  if (asked.json) {
    const { produced, arrivals, faults, kills } = journal;
    const counts = {
      produced: produced.length,
      arrivals: arrivals.length,
      faults: faults.length,
      kills: kills.length,
    };
    console.log(
      JSON.stringify(
        { seed: asked.seed, machine: machine(), services, counts, report, logs: logs ?? null },
        null,
        2,
      ),
    );
  } else {
    console.log(
      `\n${machine()}, ${services}\nseed ${asked.seed}, ${asked.faults} faults, ${asked.messages} messages\n\n${reportTable(report)}`,
    );
  }
  if (logs) console.error(`the logs are in ${logs}`);
  if (!report.isBalanced) {
    console.error(`to repeat: ${repeat}`);
    process.exitCode = 1;
  }
} catch (error) {
  console.error(`error: ${(error as Error).message}\nto repeat: ${repeat}`);
  process.exitCode = 1;
}

function read() {
  const { values } = readOptions();
  const {
    faults = String(FAULTS),
    seed = String(Date.now() % 1_000_000),
    form = 'long',
    json = false,
  } = values;
  if (!Object.hasOwn(forms, form)) wrong(`--form is short or long, not ${form}`);
  const { build } = values;
  if (build !== undefined && !fs.existsSync(build))
    wrong(`there is no file ${build} to be given with --build`);
  const count = whole('--faults', faults);
  const shards = whole('--shards', values.shards ?? '1');
  const workers = whole('--workers', values.workers ?? '0');
  if (shards < 1) wrong('--shards is at least 1');
  if (workers > 0 && shards === 1) wrong('--workers needs --shards, which the cluster has');
  return {
    faults: count,
    shards,
    workers,
    seed: whole('--seed', seed),
    messages: whole('--messages', values.messages ?? String(count * MESSAGES_A_FAULT)),
    form: form as keyof typeof forms,
    ...(build === undefined ? {} : { build: path.resolve(build) }),
    json,
    keepLogs: values['keep-logs'] === true,
  };
}

function readOptions() {
  const text = { type: 'string' } as const;
  try {
    return parseArgs({
      options: {
        faults: text,
        shards: text,
        workers: text,
        seed: text,
        messages: text,
        form: text,
        build: text,
        json: { type: 'boolean' },
        'keep-logs': { type: 'boolean' },
      },
    });
  } catch (error) {
    wrong((error as Error).message);
  }
}

function whole(name: string, value: string): number {
  if (!/^\d{1,9}$/.test(value)) wrong(`${name} is a whole number, not ${value}`);
  return Number(value);
}

function wrong(sentence: string): never {
  console.error(
    `error: ${sentence}\nfix:   npm run reliability -- [--faults ${FAULTS}] [--shards 1] [--workers 0] [--seed 7] [--messages 50000] [--form long|short] [--build <gateway.js>] [--keep-logs] [--json]`,
  );
  process.exit(2);
}
