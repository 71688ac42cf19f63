import { Broken, reasonOf } from './rule.js';

/** An object whose functions fail with a `Broken` that names whose they are. What a function called `open…` returns is a part of it. */
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
          const result: unknown = value.apply(part, given);
          return result instanceof Promise ? result.then(opened, fail) : opened(result);
        } catch (error) {
          return fail(error);
        }
      };
    },
  });
}
