import { PluginError } from './errors.js';

/** Where every copy of `@opentelemetry/api` 1.x keeps what is registered: the `GLOBAL_OPENTELEMETRY_API_KEY` of its `global-utils`. */
const API = Symbol.for('opentelemetry.js.api.1');

/**
 * For the first line of a tracer's `start`: refuses when something else, such as an agent in NODE_OPTIONS, has registered a tracer provider. With two,
 * the later one receives nothing and says nothing.
 * @throws `PluginError`
 */
export function refuseSecondTracer(): void {
  const registered = (globalThis as { [API]?: { readonly trace?: unknown } })[API]?.trace;
  if (registered === undefined) return;
  throw new PluginError('Another tracer is at work in this process already, and a second one would receive nothing.', {
    fix: 'Leave tracer.type out, or take the other one away: look for an agent in NODE_OPTIONS.',
  });
}
