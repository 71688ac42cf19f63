import type { PluginLog } from './source.js';

/**
 * The life of a tracer plugin.
 *
 * 1. Selected with `tracer.type`; the registry checks API range, flag, licence and settings, then imports the module.
 * 2. `start` registers an OpenTelemetry tracer provider with the one copy of `@opentelemetry/api`; core speaks only that API. A second tracer
 *    of the gateway is refused before its `start`; one that something else has registered is refused by `start` itself (`refuseSecondTracer`).
 *    Settings that are wrong reject with a `PluginError`, and nothing is registered then. A back end that is away is no reason to reject.
 * 3. Spans that are lost are told of in the log, not one by one.
 * 4. `close` flushes what is waiting and gives the provider back, so that it can be started again; it takes at most five seconds.
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
  /** Where the tracer says that spans are lost. */
  readonly log?: PluginLog;
}
