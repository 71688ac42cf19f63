import { AsyncLocalStorage } from 'node:async_hooks';
import { Broken, reasonOf } from './rule.js';

/**
 * The owner of running code and all it starts. Only set to find leaks, because it slows every
 * promise.
 */
export const owner = new AsyncLocalStorage<'rig' | 'plugin'>();

/**
 * Wraps an object: its functions run for their owner and fail with a `Broken` that names it.
 * Results of `open…` functions are wrapped too.
 */
export function blaming<Part extends object>(part: Part, whose: 'rig' | 'plugin'): Part {
  // A proxy of a frozen part could not replace its properties.
  return new Proxy({} as Part, {
    get: (_, name) => {
      const value: unknown = Reflect.get(part, name);
      if (typeof value !== 'function') return value;
      const fail = (error: unknown) => {
        if (error instanceof Broken) throw error;
        const innocent = whose === 'rig' ? ', which tells nothing about the plugin' : '';
        throw new Broken(
          `the ${whose} failed in \`${String(name)}\`${innocent}: ${reasonOf(error)}`,
        );
      };
      const opened = (result: unknown) =>
        String(name).startsWith('open') ? blaming(result as object, whose) : result;
      return (...given: unknown[]) => {
        try {
          const call = () => value.apply(part, given) as unknown;
          const result = owner.getStore() === undefined ? call() : owner.run(whose, call);
          return result instanceof Promise ? result.then(opened, fail) : opened(result);
        } catch (error) {
          return fail(error);
        }
      };
    },
  });
}
