import module from 'node:module';

type Resolve = (
  specifier: string,
  context: { parentURL?: string | undefined },
  next: (specifier: string, context: object) => unknown,
) => unknown;

let isResolved = false;

/**
 * Resolves `@gateway/plugin` to this gateway's copy for every module, wherever the plugin is
 * installed: its folder may have been moved, or made by another installation.
 */
export function resolveOwnPluginApi(): void {
  if (isResolved) return;
  isResolved = true;
  const parentURL = import.meta.url;
  const resolve: Resolve = (specifier, context, next) =>
    next(
      specifier,
      /^@gateway\/plugin(\/|$)/.test(specifier) ? { ...context, parentURL } : context,
    );
  const { registerHooks } = module as { registerHooks?: (hooks: { resolve: Resolve }) => unknown };
  if (registerHooks) return void registerHooks({ resolve });
  // Node 20 has hooks only in a thread of their own, which gets the function as text.
  const text = `const parentURL = ${JSON.stringify(parentURL)};\nexport const resolve = ${String(resolve)};`;
  module.register(`data:text/javascript,${encodeURIComponent(text)}`);
}
