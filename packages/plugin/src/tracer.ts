import { PluginError } from './errors.js';
import type { PluginLog } from './source.js';

/**
 * The lifecycle of a tracer plugin.
 *
 * 1. Selected with `tracer.type`; the registry checks API range, flag, licence and settings, then imports the module.
 * 2. `start` registers an OpenTelemetry tracer provider with the one copy of `@opentelemetry/api`; core uses only that API. Core rejects a second tracer
 *    plugin; `start` rejects a provider that something else has registered (`refuseSecondTracer`). Wrong settings reject with a `PluginError`, and nothing
 *    is registered then. A back end that is down is no reason to reject.
 * 3. Lost spans are logged, not one by one (`outages`).
 * 4. `close` flushes and unregisters the provider, so that the tracer can be started again; it takes at most five seconds.
 */
export interface TracerPlugin<Settings = Record<string, unknown>> {
  start(settings: Settings, context: TracerContext): Promise<{ close(): Promise<void> }>;
}

export interface TracerContext {
  /** `gateway-server` or `gateway-agent`. */
  readonly serviceName: string;
  /** Version of the gateway. */
  readonly serviceVersion: string;
  /** Name of the environment (`env`), for the resource attribute `deployment.environment.name`. */
  readonly environment: string;
  /** Where the tracer logs that spans are lost. */
  readonly log?: PluginLog;
}

/** Where every copy of `@opentelemetry/api` 1.x keeps its registrations: the `GLOBAL_OPENTELEMETRY_API_KEY` of its `global-utils`. */
const API = Symbol.for('opentelemetry.js.api.1');

/**
 * For the first line of `start`: throws when something else, such as an agent in NODE_OPTIONS, has registered a tracer provider. The later of two providers
 * receives nothing, without an error.
 * @throws `PluginError`
 */
export function refuseSecondTracer(): void {
  const registered = (globalThis as { [API]?: { readonly trace?: unknown } })[API]?.trace;
  if (registered === undefined) return;
  throw new PluginError('Another tracer is registered in this process, and a second one would receive no spans.', {
    fix: 'Omit tracer.type, or remove the other tracer: look for an agent in NODE_OPTIONS.',
  });
}

const LOG_EVERY_MS = 60_000;

/** What a tracer reports about its back end. */
export type Outages = ReturnType<typeof outages>;

/**
 * Logs when a back end goes down or rejects, and when it accepts spans again: one line each, however many requests fail in between, and at most one
 * outage a minute.
 * @param fields of every line: the tracer and where it sends
 */
export function outages(log: PluginLog | undefined, fields: Readonly<Record<string, unknown>>) {
  let [outageLoggedAt, dropsLoggedAt] = [-Infinity, -Infinity];
  let [isOut, lost] = [false, 0];
  return {
    /** A request failed, and so many spans are lost. The first failure of an outage is logged. */
    failed: (reason: string, count = 0): void => {
      lost += count;
      if (isOut || Date.now() - outageLoggedAt < LOG_EVERY_MS) return;
      isOut = true;
      outageLoggedAt = Date.now();
      log?.warn(fields, `Spans do not arrive and are lost; a line follows when they arrive again. ${reason.trim()}`);
    },
    /** So many spans did not fit into a queue. Logged once a minute, and not during an outage. */
    dropped: (count: number): void => {
      lost += count;
      if (isOut || Date.now() - dropsLoggedAt < LOG_EVERY_MS) return;
      dropsLoggedAt = Date.now();
      log?.warn({ ...fields, lost }, 'More spans end than the back end takes, and some are lost.');
      lost = 0;
    },
    /** A request succeeded. Logged when it ends an outage that was logged. */
    worked: (): void => {
      if (!isOut) return;
      log?.info(
        { ...fields, ...(lost > 0 && { lost }), away_seconds: Math.round((Date.now() - outageLoggedAt) / 1000) },
        'Spans arrive again.',
      );
      [isOut, lost] = [false, 0];
    },
  };
}
