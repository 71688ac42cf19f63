import type { PluginLog } from './source.js';

/**
 * The life of a tracer plugin.
 *
 * 1. Selected with `tracer.type`; the registry checks API range, flag, licence and settings, then imports the module.
 * 2. `start` registers an OpenTelemetry tracer provider with the one copy of `@opentelemetry/api`; core speaks only that API. A second tracer
 *    in the process is refused before its `start`.
 * 3. `close` flushes what is waiting and gives the provider back; it takes at most five seconds.
 */
export interface TracerPlugin<Settings = Record<string, unknown>> {
  start(settings: Settings, context: TracerContext): Promise<{ close(): Promise<void> }>;
}

export interface TracerContext {
  /** `gateway-server` or `gateway-agent`. */
  readonly serviceName: string;
  /** Version of the gateway. */
  readonly serviceVersion: string;
  /** Where the tracer says that spans are lost. */
  readonly log?: PluginLog;
}
