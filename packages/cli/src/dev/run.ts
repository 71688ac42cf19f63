import { createWriteStream, type WriteStream } from 'node:fs';
import { createLog, Lifecycle, VERSION, type Log, type Resolved } from '@gateway/core';
import type { FlagValues } from '@gateway/core/config';
import { installation } from '../installation.js';
import { holdFolder, type HeldFolder } from './hold-folder.js';
import { startInstance } from './instance.js';
import { paint } from './paint.js';
import { choosePorts, LOOPBACK, type Ports } from './ports.js';
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
  readonly ports: Ports;
  readonly held: HeldFolder;
  readonly resolved: Resolved;
  readonly log: Log;
  readonly lifecycle: Lifecycle;
}

/** What closing may take beyond the time that the agent has for settling what is in flight. */
const CLOSING_MS = 5_000;

/** Somebody wants to stop before everything has started. */
class Interrupted extends Error {}

const print = (line: string) => void process.stdout.write(`${line}\n`);

/**
 * Runs `gateway dev` until it is interrupted, or with `isOnce` until the sample has come to its end.
 *
 * @throws Problem or GatewayError when it cannot start; with `isOnce` also when the sample was not delivered and verified
 */
export async function runDev(options: DevOptions): Promise<void> {
  print(`${paint('bold', `gateway ${VERSION} for development`)}, on ${LOOPBACK} alone. Production runs \`gateway server\` and \`gateway agent\`.\n`);
  const ports = await choosePorts(options.ports);
  const held = await holdFolder({ isFresh: options.isFresh, inboxPort: ports.inbox });
  let resolved: Resolved;
  try {
    resolved = resolveSettings(held.folder, { ports, flags: options.flags, rows: installation().rows, secrets: held.secrets });
  } catch (error) {
    await held.release();
    throw error;
  }
  const lines = createWriteStream(held.folder.log, { flags: 'w', mode: 0o600 });
  const log = createLog({ level: resolved.config.logger.level, name: 'gateway-dev', destination: lines });
  const lifecycle = new Lifecycle(log);
  lifecycle.add('folder', () => held.release());
  try {
    await startAndStay(options, { ports, held, resolved, log, lifecycle });
  } finally {
    await lifecycle.close({ deadlineMs: resolved.config.agent.drain_timeout_seconds * 1000 + CLOSING_MS });
    await flushed(lines);
  }
}

async function startAndStay(options: DevOptions, { ports, held, resolved, log, lifecycle }: Parts): Promise<void> {
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
  const session = new Session({ ports, held, log, print });
  try {
    const instance = await startInstance({ held, resolved, ports, observer: session.observer, log, lifecycle, tell });
    lifecycle.add('session', () => session.close());
    const broken = instance.broken.then(() => {
      throw new Problem('Postgres has ended by itself', { fix: `read ${held.folder.postgresLog}, then start again` });
    });
    const shown = session.show(instance, options);
    shown.catch(() => undefined); // when it is interrupted nobody waits for it any more
    await Promise.race([options.isOnce ? shown : shown.then(() => interrupted), interrupted, broken]);
    if (options.isOnce && isInterrupted) throw new Problem('it was interrupted before the sample had come to its end', { fix: 'run it again' });
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
  }
}

function flushed(lines: WriteStream): Promise<void> {
  return new Promise((resolve) => lines.end(() => resolve()));
}
