import { AsyncLocalStorage } from 'node:async_hooks';
import { Broken, reasonOf } from './rule.js';

/**
 * The owner of the running code and of everything it starts. Set only to find leaks, because it
 * slows down every promise.
 */
export const owner = new AsyncLocalStorage<'rig' | 'plugin'>();

/**
 * Wraps an object so that its functions run as their owner's code, and fail with a `Broken` that
 * names the owner. Results of `open…` functions are wrapped too.
 */
export function blaming<Part extends object>(part: Part, whose: 'rig' | 'plugin'): Part {
  // An empty target, because a proxy of a frozen object could not replace its properties.
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
