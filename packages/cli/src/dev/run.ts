import { createWriteStream } from 'node:fs';
import type { FlagValues } from '@gateway/core/config';
import { createLog } from '@gateway/core/logging';
import { Lifecycle, VERSION } from '@gateway/core/process';
import { installation } from '../app/installation.js';
import { closingDeadlineMs } from '../app/process.js';
import { DevError } from './error.js';
import type { Topic } from './flags.js';
import { paint } from '../output/paint.js';
import { choosePorts, LOOPBACK, type Ports } from './services/ports.js';
import { startPostgres } from './services/postgres.js';
import { showSession } from './session.js';
import { resolveSettings } from './settings.js';
import { untilInterrupted } from '../app/signals.js';
import { openState, type DevState } from './state.js';

export interface DevOptions {
  /** Ends after the sample. */
  readonly isOnce: boolean;
  readonly isFresh: boolean;
  /** The ports of the command line; undefined for the usual one, or the next that is free. */
  readonly ports: { readonly api: number | undefined; readonly agent: number | undefined };
  readonly topics: readonly Topic[];
  /** Flags of settings. */
  readonly flags: FlagValues;
}

const print = (line: string) => void process.stdout.write(`${line}\n`);

/**
 * Runs `gateway dev` until it is interrupted, or with `isOnce` until the sample is verified.
 *
 * @throws DevError or GatewayError when it cannot start; with `isOnce` also when the sample was not delivered and verified
 */
export async function runDev(options: DevOptions): Promise<void> {
  const banner = `gateway ${VERSION} for development`;
  print(`${paint('bold', banner)}, on ${LOOPBACK} alone. Production runs \`gateway server\` and \`gateway agent\`.\n`);
  const ports = await choosePorts(options.ports);
  const state = await openState(options);
  try {
    await runIn(state, ports, options);
  } finally {
    state.unlock();
  }
}

async function runIn(state: DevState, ports: Ports, options: DevOptions): Promise<void> {
  const resolve = () => resolveSettings(state, ports, options.flags, installation().rows);
  const { config } = resolve();
  const lines = createWriteStream(state.files.log, { flags: 'w', mode: 0o600 });
  const log = createLog({ level: config.logger.level, name: 'gateway-dev', destination: lines });
  const lifecycle = new Lifecycle(log);
  let isInterrupted = false;
  const interrupted = untilInterrupted(() => {
    isInterrupted = true;
    print('\nStopping; deliveries in flight are settled first. Ctrl-C again ends it at once.');
  });
  const tell = (part: string, text: string) => {
    print(`  ${`${(performance.now() / 1000).toFixed(2)} s`.padStart(8)}  ${paint('bold', part.padEnd(10))}  ${text}`);
    if (isInterrupted) throw new Error('interrupted'); // ends the start here
  };
  if (state.notice) print(`${state.notice}\n`);
  try {
    // Loading server and agent takes as long as Postgres takes to start.
    const loading = import('./instance.js');
    const postgres = await ports.listen('postgres', (port) => startPostgres(state, port));
    lifecycle.add('postgres', () => postgres.close());
    tell('Postgres', `${LOOPBACK}:${ports.numbers.postgres}, ${postgres.isNew ? 'made' : 'kept'} in ${state.postgresHome}`);
    const { startInstance } = await loading;
    const instance = await startInstance({ state, ports, resolve, log, lifecycle, tell });
    const closing = new AbortController();
    lifecycle.add('traffic', () => closing.abort());
    const shown = showSession(instance, { ...options, state, ports, log, print, signal: closing.signal });
    shown.catch(() => undefined); // nobody awaits it after an interruption
    await Promise.race([options.isOnce ? shown : shown.then(() => interrupted), interrupted, postgres.crashed]);
  } catch (error) {
    // Errors after an interruption follow from it.
    if (!isInterrupted) throw error;
  } finally {
    await lifecycle.close({ deadlineMs: closingDeadlineMs(config) });
    await new Promise<void>((done) => lines.end(() => done()));
  }
  if (!options.isOnce) print('Stopped.');
  else if (isInterrupted) throw new DevError('it was interrupted before the sample was verified', 'run it again');
}
