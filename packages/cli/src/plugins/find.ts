import type { Discovery, InstalledPlugin, RefusedPlugin } from '@gateway/core/plugins';
import { didYouMean, GatewayError } from '@gateway/core/errors';

/**
 * The plugins that a name means: a plugin's own name or that of its package.
 *
 * @throws GatewayError `plugin_unknown`
 */
export function findPlugins(name: string, { plugins, refused }: Discovery): { plugins: InstalledPlugin[]; refused: RefusedPlugin[] } {
  const found = {
    plugins: plugins.filter((it) => it.name === name || it.package === name),
    refused: refused.filter((it) => it.name === name || it.package === name),
  };
  if (found.plugins.length + found.refused.length > 0) return found;
  const names = [...new Set([...plugins, ...refused].flatMap((it) => [it.name, it.package]))].sort();
  throw new GatewayError('plugin_unknown', { name, known: names.join(', ') || 'none', hint: didYouMean(name, names) });
}
