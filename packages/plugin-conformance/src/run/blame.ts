import { AsyncLocalStorage } from 'node:async_hooks';
import { Broken, reasonOf } from './rule.js';

/** Whose code runs, and whose is what it starts later. Unset, and so without its cost for every promise, unless a rule looks for what the plugin leaves open. */
export const owner = new AsyncLocalStorage<'rig' | 'plugin'>();

/**
 * An object whose functions run as those of their owner, and fail with a `Broken` that names it. What a function called `open…` returns is a part of it.
 */
export function blaming<Part extends object>(part: Part, whose: 'rig' | 'plugin'): Part {
  // Not a proxy of the part itself: the properties of a frozen one could not be replaced.
  return new Proxy({} as Part, {
    get: (_, name) => {
      const value: unknown = Reflect.get(part, name);
      if (typeof value !== 'function') return value;
      const fail = (error: unknown) => {
        if (error instanceof Broken) throw error;
        const innocent = whose === 'rig' ? ', which tells nothing about the plugin' : '';
        throw new Broken(`the ${whose} failed in \`${String(name)}\`${innocent}: ${reasonOf(error)}`);
      };
      const opened = (result: unknown) => (String(name).startsWith('open') ? blaming(result as object, whose) : result);
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
