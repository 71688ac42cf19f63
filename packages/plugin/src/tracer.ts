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
