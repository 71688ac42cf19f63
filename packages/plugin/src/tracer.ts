import { PluginError } from './errors.js';
import type { PluginLog } from './source.js';

/**
 * The lifecycle of a tracer plugin.
 *
 * 1. `tracer.type` selects it. The registry checks API range, flag, licence and settings, then
 *    imports the module.
 * 2. `start` registers an OpenTelemetry tracer provider with the single copy of
 *    `@opentelemetry/api`, the only API that core uses. Core rejects a second tracer plugin;
 *    `start` rejects if another provider is registered (`refuseSecondTracer`). Wrong settings
 *    reject with a `PluginError` and register nothing; an unavailable back end does not reject.
 * 3. Lost spans are logged in summary (`outages`).
 * 4. `close` flushes and unregisters the provider within five seconds, so that the tracer can be
 *    started again.
 */
export interface TracerPlugin<Settings = Record<string, unknown>> {
  start(settings: Settings, context: TracerContext): Promise<{ close(): Promise<void> }>;
}

export interface TracerContext {
  /** `gateway-server` or `gateway-agent`. */
  readonly serviceName: string;
  readonly serviceVersion: string;
  /** The setting `env`, for the resource attribute `deployment.environment.name`. */
  readonly environment: string;
  /** The log for lost spans. */
  readonly log?: PluginLog;
}

/** `GLOBAL_OPENTELEMETRY_API_KEY` in `global-utils` of every `@opentelemetry/api` 1.x. */
const API = Symbol.for('opentelemetry.js.api.1');

/**
 * Call it first in `start`: the later of two tracer providers silently receives nothing.
 * @throws `PluginError` if another component, such as an agent in NODE_OPTIONS, registered one
 */
export function refuseSecondTracer(): void {
  const registered = (globalThis as { [API]?: { readonly trace?: unknown } })[API]?.trace;
  if (registered === undefined) return;
  throw new PluginError(
    'Another tracer is registered in this process, and a second one would receive no spans.',
    { fix: 'Omit tracer.type, or remove the other tracer: look for an agent in NODE_OPTIONS.' },
  );
}

const LOG_EVERY_MS = 60_000;

/** Reports about a back end. */
export type Outages = ReturnType<typeof outages>;

/**
 * Logs when a back end goes down or rejects spans, and when it accepts them again: one line each,
 * and at most one outage a minute.
 * @param fields of every line: the tracer and its destination
 */
export function outages(log: PluginLog | undefined, fields: Readonly<Record<string, unknown>>) {
  let [outageLoggedAt, dropsLoggedAt] = [-Infinity, -Infinity];
  let [isOut, lost] = [false, 0];
  return {
    /**
     * A request failed with this many lost spans. Only the first failure of an outage is logged.
     */
    failed: (reason: string, count = 0): void => {
      lost += count;
      if (isOut || Date.now() - outageLoggedAt < LOG_EVERY_MS) return;
      isOut = true;
      outageLoggedAt = Date.now();
      log?.warn(
        fields,
        `Spans do not arrive and are lost; a line follows when they arrive again. ${reason.trim()}`,
      );
    },
    /** Spans did not fit in a queue. Logged once a minute, but not during an outage. */
    dropped: (count: number): void => {
      lost += count;
      if (isOut || Date.now() - dropsLoggedAt < LOG_EVERY_MS) return;
      dropsLoggedAt = Date.now();
      log?.warn({ ...fields, lost }, 'More spans end than the back end takes, and some are lost.');
      lost = 0;
    },
    /** A request succeeded. Logged if it ends a logged outage. */
    worked: (): void => {
      if (!isOut) return;
      log?.info(
        {
          ...fields,
          ...(lost > 0 && { lost }),
          away_seconds: Math.round((Date.now() - outageLoggedAt) / 1000),
        },
        'Spans arrive again.',
      );
      [isOut, lost] = [false, 0];
    },
  };
}
