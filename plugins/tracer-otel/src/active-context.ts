import { ROOT_CONTEXT, trace, type Context, type ContextManager } from '@opentelemetry/api';
import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Keeps the active span across awaits. Only contexts with a span enter the storage: on Node 20 its first use slows every promise of the process from then on,
 * which costs an agent an eighth of its throughput, and the SDK uses a context without a span for each export.
 */
export function activeContext(): ContextManager {
  const storage = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with(context, work, self, ...args) {
      const run = () => work.apply(self as ThisParameterType<typeof work>, args);
      return storage.getStore() === undefined && !trace.getSpan(context) ? run() : storage.run(context, run);
    },
    bind(context, target) {
      if (typeof target !== 'function') return target;
      const work = target as unknown as (...args: unknown[]) => unknown;
      return ((...args: unknown[]) => manager.with(context, work, undefined, ...args)) as unknown as typeof target;
    },
    enable: () => manager,
    disable() {
      storage.disable();
      return manager;
    },
  };
  return manager;
}
