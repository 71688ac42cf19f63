import type { Config, Resolved } from '@gateway/core/config';
import { explainDatabaseError, GatewayError } from '@gateway/core/errors';
import { proxyProcess } from '@gateway/core/http';
import { createLog, type Log } from '@gateway/core/logging';
import {
  type ActivatedPlugins,
  blamePlugin,
  isMissed,
  type Licence,
  unknownEntitlements,
} from '@gateway/core/plugins';
import { Lifecycle, untilSignal, VERSION } from '@gateway/core/process';
import { setTimeout as sleep } from 'node:timers/promises';
import v8 from 'node:v8';
import { installation, licenceOf, startPlugins } from './installation.js';

interface Process {
  readonly name: 'gateway-server' | 'gateway-agent';
  readonly start: (parts: {
    readonly config: Config;
    readonly plugins: ActivatedPlugins;
    readonly log: Log;
  }) => Promise<{
    readonly port: number;
    /** Public. Undefined for an agent. */
    readonly url?: string;
    /** The process reports that it is not ready, and still answers requests. */
    leave(): void;
    close(): Promise<void>;
  }>;
}

/** Five seconds more than the drain timeout, for closing everything. */
export function closingDeadlineMs({ agent }: Config): number {
  return agent.drain_timeout_seconds * 1000 + 5_000;
}

/**
 * After this heap growth, V8 marks the whole heap, which blocks the event loop for 20 to 60 ms on a
 * small heap. V8 also counts buffers, and by default lets a slowly growing heap grow by only half,
 * so a few messages of a megabyte would cause two markings per second.
 */
const HEAP_GROWTH_PERCENT = 300;

/**
 * Runs until SIGTERM or SIGINT, then closes everything in reverse order. A second signal exits
 * immediately.
 */
export async function runProcess(resolved: Resolved, { name, start }: Process): Promise<void> {
  v8.setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
  const { config } = resolved;
  const log = createLog({ level: config.logger.level, name, environment: config.env });
  logWarningsAndDefects(log);
  const stopped = untilSignal(log);
  const lifecycle = new Lifecycle(log);
  try {
    const licence = licenceOf(config);
    reportLicence(log, licence);
    lifecycle.add('proxy', proxyProcess(config.delivery));
    for (const { sentence } of [...resolved.warnings, ...resolved.pluginProblems])
      log.warn({}, sentence.replace(/[^?]$/, '$&.'));
    const plugins = await startPlugins(resolved, { licence, serviceName: name, log });
    lifecycle.add('plugins', () => plugins.close());
    reportPlugins(log, plugins, config);
    const running = await start({ config, plugins, log }).catch((error: unknown) => {
      // Postgres can also stop or fail over after it was found ready.
      throw explainDatabaseError(error, config.database);
    });
    lifecycle.add(name, () => running.close());
    const { port, url } = running;
    log.info(
      { version: VERSION, port, bind: config.server.http.bind, ...(url ? { url } : {}) },
      'Ready.',
    );
    await stopped;
    running.leave();
    await sleep(config.server.http.drain_delay_seconds * 1000);
  } finally {
    await lifecycle.close({ deadlineMs: closingDeadlineMs(config) });
    log.info({}, 'Stopped.');
  }
}

/** Node's own output has a stack trace that can contain secrets. */
function logWarningsAndDefects(log: Log): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => log.info({ warning: name }, message));
  process.on('uncaughtException', (error) => {
    if (blamePlugin(error)) {
      log.warn({ error }, 'Uncaught error in a plugin.');
      return;
    }
    log.error({ error }, 'Uncaught error in the gateway or a plugin: exiting.');
    process.exit(1);
  });
}

function reportLicence(log: Log, licence: Licence): void {
  const { problem, kind, organisation, expiresAt } = licence;
  if (problem) log.warn({ code: problem.code, fix: problem.fix }, problem.message);
  else
    log.info(
      { licence: kind, ...(organisation ? { organisation, expires_at: expiresAt } : {}) },
      'Licence loaded.',
    );
  const unknown = unknownEntitlements(licence, installation().plugins);
  if (unknown.length === 0) return;
  const fix =
    'install the plugin that needs it, or ask the issuer of the licence; `gateway license show` lists its entitlements';
  log.warn(
    { entitlements: unknown, fix },
    'The licence has an entitlement that no installed plugin declares. It has no effect.',
  );
}

/**
 * Warns of each configured but inactive plugin. With `plugins.strict`, throws `plugins_missed` if
 * there are any of these.
 */
function reportPlugins(log: Log, { table }: ActivatedPlugins, config: Config): void {
  const missed = table.filter((plugin) => isMissed(plugin, config));
  for (const plugin of table) {
    const { name, kind, version, from, state, reason, fix } = plugin;
    const fields = { plugin: name, kind, version, from };
    if (state === 'active') log.info(fields, 'A plugin is active.');
    else
      log[missed.includes(plugin) ? 'warn' : 'info'](
        { ...fields, fix },
        `A plugin is inactive because ${reason}.`,
      );
  }
  if (!config.plugins.strict || missed.length === 0) return;
  const problems = missed.map(({ name, reason, fix }) => ({
    sentence: `${name}: ${reason}; ${fix}`,
  }));
  throw new GatewayError('plugins_missed', { problems });
}
