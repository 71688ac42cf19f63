import { createWriteStream } from 'node:fs';
import type { FlagValues } from '@gateway/core/config';
import { createLog } from '@gateway/core/logging';
import type { Discovery } from '@gateway/core/plugins';
import { Lifecycle, VERSION } from '@gateway/core/process';
import { closingDeadlineMs } from '@gateway/cli/app/process';
import { untilInterrupted } from '@gateway/cli/app/signals';
import { paint } from '@gateway/cli/output/paint';
import type { KafkaTopic } from './flags.js';
import { DevError } from './services/dev-error.js';
import { choosePorts, LOOPBACK } from './services/ports.js';
import { startPostgres } from './services/postgres.js';
import { LOG, openState, resolveSettings } from './state.js';

interface DevOptions {
  readonly isOnce: boolean;
  readonly isFresh: boolean;
  /** The requested ports. Undefined means the default port or the next free one. */
  readonly ports: { readonly api: number | undefined; readonly agent: number | undefined };
  readonly topics: readonly KafkaTopic[];
  readonly flags: FlagValues;
  readonly discovery: Discovery;
}

const print = (line: string) => void process.stdout.write(`${line}\n`);

/**
 * Runs `gateway dev` until interrupted or, with `isOnce`, until the sample is verified. Throws a
 * DevError or GatewayError if it cannot start or, with `isOnce`, if the sample was not verified.
 */
export async function runSession(options: DevOptions): Promise<void> {
  const banner = paint('bold', `gateway ${VERSION} for development`);
  print(
    `${banner}, on ${LOOPBACK} only. For production, run \`gateway server\` and \`gateway agent\`.\n`,
  );
  const ports = await choosePorts(options.ports);
  const state = await openState(options);
  process.once('exit', state.unlock);
  const resolved = resolveSettings(state, ports, options.flags, options.discovery.rows);
  const lines = createWriteStream(LOG, { flags: 'w', mode: 0o600 });
  const log = createLog({
    level: resolved.config.logger.level,
    name: 'gateway-dev',
    destination: lines,
  });
  const lifecycle = new Lifecycle(log);
  let isInterrupted = false;
  const interrupted = untilInterrupted(() => {
    isInterrupted = true;
    print(
      '\nStopping; deliveries in flight are settled first. Press Ctrl-C again to exit at once.',
    );
  });
  const tell = (part: string, text: string) => {
    const time = `${(performance.now() / 1000).toFixed(2)} s`.padStart(8);
    print(`  ${time}  ${paint('bold', part.padEnd(10))}  ${text}`);
    if (isInterrupted) throw new Error('interrupted'); // ends the start here
  };
  if (state.notice) print(`${state.notice}\n`);
  try {
    // Loaded while Postgres starts, which takes about the same time.
    const loading = Promise.all([import('./instance.js'), import('./session.js')]);
    const postgres = await startPostgres(state.postgres, () => ports.release('postgres'));
    lifecycle.add('postgres', () => postgres.close());
    tell(
      'Postgres',
      `${LOOPBACK}:${ports.numbers.postgres}, ${postgres.isNew ? 'made' : 'kept'} in ${state.postgres.home}`,
    );
    const [{ startInstance }, { showSession }] = await loading;
    const instance = await startInstance({
      state,
      discovery: options.discovery,
      ports,
      resolved,
      log,
      lifecycle,
      tell,
    });
    const closing = new AbortController();
    lifecycle.add('traffic', () => closing.abort());
    const shown = showSession(instance, { ...options, print, signal: closing.signal });
    shown.catch(() => undefined); // not awaited after an interruption
    await Promise.race([
      options.isOnce ? shown : shown.then(() => interrupted),
      interrupted,
      postgres.crashed,
    ]);
  } catch (error) {
    // An error after an interruption is a consequence of it and is not reported.
    if (!isInterrupted) throw error;
  } finally {
    await lifecycle.close({ deadlineMs: closingDeadlineMs(resolved.config) });
    await new Promise<void>((done) => lines.end(() => done()));
  }
  if (!options.isOnce) print('Stopped.');
  else if (isInterrupted)
    throw new DevError('it was interrupted before the sample was verified', 'run it again');
}
