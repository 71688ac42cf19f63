import { PluginError } from './errors.js';
import type { PluginLog } from './source.js';

/**
 * The lifecycle of a tracer plugin.
 *
 * 1. The `tracer.type` setting selects the plugin. The registry checks its API range, feature flag,
 *   licence and settings, and then imports the module.
 * 2. `start` registers an OpenTelemetry tracer provider with the single copy of
 *   `@opentelemetry/api`, the only API that core uses. Core rejects a second tracer plugin, and
 *   `start` rejects if another provider is registered (`refuseSecondTracer`). If settings are
 *   wrong, `start` rejects with a `PluginError` and registers nothing. It does not reject if the
 *   backend is unavailable.
 * 3. Lost spans are logged in summary lines (`outages`).
 * 4. `close` flushes and unregisters the provider within five seconds, so that the tracer can be
 *   started again.
 */
export interface TracerPlugin<Settings = Record<string, unknown>> {
  start(settings: Settings, context: TracerContext): Promise<{ close(): Promise<void> }>;
}

export interface TracerContext {
  /** `gateway-server` or `gateway-agent`. */
  readonly serviceName: string;
  readonly serviceVersion: string;
  /** The `env` setting, used as the `deployment.environment.name` resource attribute. */
  readonly environment: string;
  /** Reports lost spans. */
  readonly log?: PluginLog;
}

/**
 * The key under which every `@opentelemetry/api` 1.x registers itself:
 * `GLOBAL_OPENTELEMETRY_API_KEY` in `global-utils`.
 */
const API = Symbol.for('opentelemetry.js.api.1');

/**
 * Throws if a tracer provider is already registered, because a second one would silently receive
 * nothing. Call this first in `start`.
 * @throws `PluginError` if another component, such as an agent in NODE_OPTIONS, registered a
 *   provider
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

/** Logs the outages of a backend. */
export type Outages = ReturnType<typeof outages>;

/**
 * Returns functions that log when a backend fails or rejects spans, and when it accepts spans
 * again. Each event is one line, and at most one outage a minute is logged.
 * @param fields the fields of every line, which identify the tracer and its destination
 */
export function outages(log: PluginLog | undefined, fields: Readonly<Record<string, unknown>>) {
  let [outageLoggedAt, dropsLoggedAt] = [-Infinity, -Infinity];
  let [isOut, lost] = [false, 0];
  return {
    /** Records a failed request and lost spans. Only an outage's first failure is logged. */
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
    /** Records spans that did not fit in a queue, logged once a minute outside of outages. */
    dropped: (count: number): void => {
      lost += count;
      if (isOut || Date.now() - dropsLoggedAt < LOG_EVERY_MS) return;
      dropsLoggedAt = Date.now();
      log?.warn({ ...fields, lost }, 'More spans end than the back end takes, and some are lost.');
      lost = 0;
    },
    /** Records a successful request. Logged if it ends a logged outage. */
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
