import {
  createLog,
  Lifecycle,
  untilSignal,
  VERSION,
  type ActivatedPlugins,
  type Config,
  type Licence,
  type Log,
  type Resolved,
} from '@gateway/core';
import { isAskedFor, licenceOf, startPlugins } from './start-plugins.js';

export interface Parts {
  readonly config: Config;
  readonly plugins: ActivatedPlugins;
  readonly log: Log;
}

export interface Running {
  readonly port: number;
  close(): Promise<void>;
}

/** What closing may take beyond the time that the process has for settling what is in flight. */
const CLOSING_MS = 5_000;

/** How long a process may take to close everything. */
export function closingDeadlineMs({ agent }: Config): number {
  return agent.drain_timeout_seconds * 1000 + CLOSING_MS;
}

/**
 * Runs a long-lived process: log, licence and plugins, then what `start` starts, until SIGTERM or SIGINT; then everything is closed in
 * reverse. A second signal exits at once.
 */
export async function runProcess(
  resolved: Resolved,
  { name, start }: { name: 'gateway-server' | 'gateway-agent'; start: (parts: Parts) => Promise<Running> },
): Promise<void> {
  const { config } = resolved;
  const log = createLog({ level: config.logger.level, name });
  logWarnings(log);
  const stopped = untilSignal(log);
  const lifecycle = new Lifecycle(log);
  try {
    const licence = licenceOf(config);
    reportLicence(log, licence);
    for (const { sentence } of resolved.pluginProblems) log.warn({}, `${sentence}.`);
    const plugins = await startPlugins(resolved, { licence, serviceName: name, log });
    lifecycle.add('plugins', () => plugins.close());
    reportPlugins(log, plugins, config);
    const running = await start({ config, plugins, log });
    lifecycle.add(name, () => running.close());
    log.info({ version: VERSION, port: running.port, bind: config.server.http.bind }, 'Ready.');
    await stopped;
  } finally {
    await lifecycle.close({ deadlineMs: closingDeadlineMs(config) });
    log.info({}, 'Stopped.');
  }
}

/** Warnings of Node and of libraries become lines of the log, where they would else break its form. */
function logWarnings(log: Log): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => log.info({ warning: name }, message));
}

function reportLicence(log: Log, { problem, kind, organisation, expiresAt }: Licence): void {
  if (problem) log.warn({ code: problem.code, fix: problem.fix }, problem.message);
  else log.info({ licence: kind, ...(organisation ? { organisation, expires_at: expiresAt } : {}) }, 'The licence in force.');
}

/** The table of plugins. One that the configuration asks for and that is inactive is worth a warning. */
function reportPlugins(log: Log, { table }: ActivatedPlugins, config: Config): void {
  for (const { name, kind, version, from, state, reason, fix } of table) {
    const asked = kind === 'unknown' || isAskedFor(name, config);
    const fields = { plugin: name, kind, version, from };
    if (state === 'active') log.info(fields, 'A plugin is active.');
    else log[asked ? 'warn' : 'info']({ ...fields, fix }, `A plugin is inactive because ${reason}.`);
  }
}
