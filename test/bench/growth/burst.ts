import { setTimeout as sleep } from 'node:timers/promises';
import { heldBy } from '../../support/memory.js';
import { median } from '../figures.js';
import type { Ground } from '../ground.js';
import { costOf } from '../measure.js';

/** A gateway that is ready, and a way to send it events. */
export interface Load {
  /** The processes of the gateway. */
  readonly pids: readonly number[];
  /** Sends events as fast as possible that lead to this number of requests. Returns the number. */
  send(requests: number): Promise<number>;
  close(): Promise<void>;
}

/** Amounts per request: CPU milliseconds, statements, KV commands, kB of WAL. */
export interface Figures {
  readonly perSecond: number;
  readonly gatewayMs: number;
  readonly postgresMs: number;
  readonly statements: number;
  readonly kvCommands: number;
  readonly walKb: number;
  /** The largest process. */
  readonly peakMb: number;
  /** The CPU of the idle gateway and its Postgres, in percent of a core. Not part of the others. */
  readonly idleCpu: number;
}

const IDLE_SECONDS = 5;
/** Attempts are recorded and queues are empty. */
const REST_MS = 1_500;
/** The counts and usage of a burst are written, which happens every ten seconds. */
const QUIET_MS = 22_000;

/**
 * Measures bursts: events that a running and warm gateway gets faster than it sends them. Returns
 * the median rate, and what a request costs in all of them, without what the gateway takes idle: work
 * that is done once or twice a minute is in few bursts, and in no median.
 *
 * @param options.warm the requests before the idle time, and again before the bursts
 */
export async function measureBursts(
  ground: Ground,
  load: Load,
  { requests, warm, rounds }: { requests: number; warm: number; rounds: number },
): Promise<Figures> {
  const roots = Object.fromEntries(load.pids.map((pid) => [`gateway ${pid}`, pid]));
  const burst = async (wanted: number) => {
    await ground.receiver.reset();
    await sleep(REST_MS);
    const sent = await load.send(wanted);
    return { report: await ground.arrived(sent, 'count'), sent };
  };
  const gatewayOf = (cpu: Readonly<Record<string, number>>) =>
    Object.keys(roots).reduce((sum, name) => sum + (cpu[name] ?? 0), 0);

  const warmUp = async () => {
    for (let left = warm; left > 0; left -= requests) await burst(Math.min(left, requests));
  };

  await warmUp();
  await sleep(QUIET_MS);
  const before = await ground.sample(roots);
  await sleep(IDLE_SECONDS * 1000);
  const idle = costOf(before, await ground.sample(roots));

  // V8 gives up compiled code while it is idle.
  await warmUp();
  const start = await ground.sample(roots);
  const rates: { rate: number }[] = [];
  let sent = 0;
  for (let k = 0; k < rounds; k++) {
    const { report, sent: more } = await burst(requests);
    rates.push({ rate: report.rate ?? 0 });
    sent += more;
  }
  const cost = costOf(start, await ground.sample(roots));
  const perRequest = (used: number, usedIdle: number) =>
    Math.max(0, used - (usedIdle * cost.seconds) / idle.seconds) / sent;
  return {
    perSecond: median(rates, ({ rate }) => rate).rate,
    gatewayMs: 1000 * perRequest(gatewayOf(cost.cpu), gatewayOf(idle.cpu)),
    postgresMs: 1000 * perRequest(cost.cpu['postgres'] ?? 0, idle.cpu['postgres'] ?? 0),
    statements: perRequest(cost.statements, idle.statements),
    kvCommands: perRequest(cost.kvCommands, idle.kvCommands),
    walKb: perRequest(cost.walBytes, idle.walBytes) / 1024,
    peakMb: Math.max(...load.pids.map((pid) => heldBy(pid)?.peakMb ?? 0)),
    idleCpu: (100 * (gatewayOf(idle.cpu) + (idle.cpu['postgres'] ?? 0))) / idle.seconds,
  };
}
