import { createWriteStream, type WriteStream } from 'node:fs';
import type { Resolved } from '@gateway/core/config';
import { createLog, type Log } from '@gateway/core/logging';
import { Lifecycle, VERSION } from '@gateway/core/process';
import type { FlagValues } from '@gateway/core/config';
import { installation } from '../app/installation.js';
import { closingDeadlineMs } from '../app/process.js';
import { holdFolder, type HeldFolder } from './hold-folder.js';
import { paint } from '../output/paint.js';
import { LOOPBACK, reservePorts, type Reservation } from './ports.js';
import { startPostgres, type Postgres } from './postgres.js';
import { Problem } from './problem.js';
import { Session } from './session.js';
import { resolveSettings } from './settings.js';
import { untilInterrupted } from './signals.js';
import type { Topic } from './topics.js';

export interface DevOptions {
  /** Ends after the sample. */
  readonly isOnce: boolean;
  readonly isFresh: boolean;
  /** Undefined: the first free one from the usual upward. */
  readonly ports: { readonly api: number | undefined; readonly agent: number | undefined };
  readonly topics: readonly Topic[];
  /** Flags of settings. */
  readonly flags: FlagValues;
}

interface Parts {
  readonly reservation: Reservation;
  readonly held: HeldFolder;
  readonly resolve: () => Resolved;
  readonly log: Log;
  readonly lifecycle: Lifecycle;
}

/** Somebody wants to stop before everything has started. */
class Interrupted extends Error {}

const print = (line: string) => void process.stdout.write(`${line}\n`);

/**
 * Runs `gateway dev` until it is interrupted, or with `isOnce` until the sample has come to its end.
 *
 * @throws Problem or GatewayError when it cannot start; with `isOnce` also when the sample was not delivered and verified
 */
export async function runDev(options: DevOptions): Promise<void> {
  print(
    `${paint('bold', `gateway ${VERSION} for development`)}, on ${LOOPBACK} alone. Production runs \`gateway server\` and \`gateway agent\`.\n`,
  );
  const reservation = await reservePorts(options.ports);
  let held: HeldFolder | undefined;
  try {
    held = await holdFolder({ isFresh: options.isFresh, reservation });
    await runIn(held, reservation, options);
  } finally {
    await held?.release();
    await reservation.close();
  }
}

async function runIn(held: HeldFolder, reservation: Reservation, options: DevOptions): Promise<void> {
  const resolve = () => resolveSettings(held, { ports: reservation.ports, flags: options.flags, rows: installation().rows });
  const { config } = resolve();
  const lines = createWriteStream(held.folder.log, { flags: 'w', mode: 0o600 });
  const log = createLog({ level: config.logger.level, name: 'gateway-dev', destination: lines });
  const lifecycle = new Lifecycle(log);
  try {
    await startAndStay(options, { reservation, held, resolve, log, lifecycle });
  } finally {
    await lifecycle.close({ deadlineMs: closingDeadlineMs(config) });
    await flushed(lines);
  }
  if (!options.isOnce) print('Stopped.');
}

async function startAndStay(options: DevOptions, { reservation, held, resolve, log, lifecycle }: Parts): Promise<void> {
  let isInterrupted = false;
  const interrupted = untilInterrupted(() => {
    isInterrupted = true;
    print('\nStopping; what is under way is settled first. Ctrl-C again ends it at once.');
  });
  const tell = (part: string, text: string) => {
    print(`  ${`${(performance.now() / 1000).toFixed(2)} s`.padStart(8)}  ${paint('bold', part.padEnd(10))}  ${text}`);
    if (isInterrupted) throw new Interrupted();
  };
  if (held.restarted) print(`${held.restarted} It begins anew.\n`);
  const { ports } = reservation;
  const session = new Session({ ports, held, log, print });
  try {
    const { postgres, broken } = await startDatabase({ reservation, held, lifecycle });
    tell('Postgres', `${LOOPBACK}:${ports.postgres}, ${postgres.isNew ? 'made' : 'kept'} in ${held.postgresHome}`);
    const { startInstance } = await import('./instance.js');
    const instance = await startInstance({ held, resolve, reservation, observer: session.observer, log, lifecycle, tell });
    lifecycle.add('session', () => session.close());
    const shown = session.show(instance, options);
    shown.catch(() => undefined); // when it is interrupted nobody waits for it any more
    await Promise.race([options.isOnce ? shown : shown.then(() => interrupted), interrupted, broken]);
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
  }
  if (options.isOnce && isInterrupted)
    throw new Problem('it was interrupted before the sample had come to its end', { fix: 'run it again' });
}

/** Starts Postgres, a process of its own, and loads server and agent meanwhile. `broken` rejects when Postgres ends unasked. */
async function startDatabase({
  reservation,
  held,
  lifecycle,
}: Pick<Parts, 'reservation' | 'held' | 'lifecycle'>): Promise<{ postgres: Postgres; broken: Promise<never> }> {
  const { folder, postgresHome: home, user, secrets } = held;
  // Loading them takes as long as Postgres takes to start.
  import('./instance.js').catch(() => undefined);
  const postgres = await reservation.listen('postgres', (port, beforeLaunch) =>
    startPostgres({ home, user, port, password: secrets.password, log: folder.postgresLog, beforeLaunch }),
  );
  let isAsked = false;
  lifecycle.add('postgres', () => {
    isAsked = true;
    return postgres.close();
  });
  const broken = new Promise<never>((_, reject) => {
    void postgres.ended.then(
      () => isAsked || reject(new Problem('Postgres has ended by itself', { fix: `read ${folder.postgresLog}, then start again` })),
    );
  });
  broken.catch(() => undefined);
  return { postgres, broken };
}

function flushed(lines: WriteStream): Promise<void> {
  return new Promise((resolve) => lines.end(() => resolve()));
}
