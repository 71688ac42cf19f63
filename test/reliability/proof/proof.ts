import { setMaxListeners } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { KAFKA_VERSION } from '../../support/start/kafka-jars.js';
import { atRest } from './at-rest.js';
import { reconcile, type Line, type Report } from './reconcile.js';
import { keepEvidence } from './evidence.js';
import { faults, faultsOf } from './faults.js';
import { injectFaults } from './inject-faults.js';
import type { Journal } from './journal.js';
import { produce } from './producer.js';
import { listLines } from './projects.js';
import { random } from './random.js';
import { noneLine } from './row-lines.js';
import { endOf, schedule, shortForm, type Form, type Planned } from './schedule.js';
import type { StoreOptions } from './stores.js';
import { startTestBed, type TestBed } from './test-bed.js';

export interface ProofOptions extends Partial<Pick<StoreOptions, 'shards' | 'workers'>> {
  readonly seed: number;
  readonly faults: number;
  readonly messages: number;
  /** The `gateway.js` to run; the repository's by default. */
  readonly build?: string;
  /** Replaces the drawn schedule. */
  readonly schedule?: readonly Planned[];
  readonly form?: Form;
  /** Keeps logs and evidence even if the report balances. */
  readonly keepLogs?: boolean;
  /** The end of the run: gives up waiting for rest after this time without a change. */
  readonly patienceMs?: number;
  readonly tell?: (line: string) => void;
}

export interface Proof {
  readonly journal: Journal;
  readonly report: Report;
  /** Names and versions. */
  readonly services: string;
  /**
   * The folder with the logs of all processes and the evidence, if kept or if the report does not
   * balance.
   */
  readonly logs: string | undefined;
}

/**
 * Runs the gateway with messages and faults, waits until everything is repaired and at rest, and
 * balances the report.
 * @throws if the test bed fails: a service that does not come back, an agent that does not become
 * ready
 */
export async function runProof(options: ProofOptions): Promise<Proof> {
  const { seed, messages, patienceMs = 60_000, tell = () => undefined } = options;
  const { faults: count, form = shortForm } = options;
  const needsStandby = ({ kind }: Planned) =>
    faults.some((fault) => fault.kind === kind && fault.needs === 'standby');
  const standby = options.schedule?.some(needsStandby) ?? form.has.includes('standby');
  const bed = await startTestBed({ ...options, standby });
  const planned = options.schedule ?? schedule({ seed, count, form, faults: faultsOf(bed) });
  const standstill = monitorEventLoopDelay();
  standstill.enable();
  try {
    const services = await versions(bed);
    tell(
      `the test bed is ready, with ${services}: ${planned.length} faults in ${Math.round(endOf(planned) / 1000)} s, ${messages} messages`,
    );
    const stopping = new AbortController();
    setMaxListeners(0, stopping.signal);
    const producing = produce(bed.lanes, bed.produced, {
      messages,
      overMs: endOf(planned) || 5_000,
      draw: random(seed + 1),
      signal: stopping.signal,
    });
    producing.catch(() => undefined); // awaited below
    try {
      await injectFaults(bed, planned, { tell, stopping });
      await producing;
    } finally {
      stopping.abort();
      await producing.catch(() => undefined);
    }
    await bed.ready();
    tell('everything is restored; waiting until nothing is under way');
    const left = await atRest(bed, { patienceMs });
    if (left) tell(`nothing moves any more, and there are ${left}`);
    tell(
      `the receiver and the proxies stood still for ${(standstill.max / 1e9).toFixed(1)} s at most: all that was late is late by that`,
    );

    const journal = journalOf(seed, bed);
    const lines = [
      ...(await reconcile({ journal, rows: bed.rows, shards: bed.shards, offsets: bed.offsets }))
        .lines,
      ...troubleLines(bed),
      ...(await shardLines(bed)),
    ];
    const report = { lines, isBalanced: lines.every(({ ok }) => ok) };
    const keepLogs = options.keepLogs === true || !report.isBalanced;
    if (keepLogs) await keepEvidence(bed, journal);
    return { journal, report, services, logs: await bed.close({ keepLogs }) };
  } catch (error) {
    const logs = await bed.close({ keepLogs: true });
    throw new Error(`${(error as Error).message}; the logs are in ${logs}`, { cause: error });
  }
}

async function versions({ stores, redis }: TestBed): Promise<string> {
  return `${await stores.versions()}, Redis ${await redis.version()}, Kafka ${KAFKA_VERSION}`;
}

function journalOf(seed: number, { produced, receiver, faults, kills }: TestBed): Journal {
  return {
    seed,
    produced: [...produced],
    arrivals: [...receiver.arrivals],
    faults: [...faults],
    kills: [...kills],
  };
}

/**
 * An unexpected exit is a failure even if nothing was lost, and so is a valid key that a server
 * refuses.
 */
function troubleLines({ unexpectedExits, refusals }: TestBed): Line[] {
  return [
    noneLine('processes that ended by themselves', unexpectedExits),
    noneLine('valid keys that a server refused', refusals),
  ];
}

/** Checks the projects that moved. */
async function shardLines({ api, moves, movers, shards }: TestBed): Promise<Line[]> {
  if (shards.length === 1) return [];
  return [
    noneLine('projects with rows on another shard than theirs', await moves.unsettled()),
    ...(await listLines(api, movers, shards)),
  ];
}
