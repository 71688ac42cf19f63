import type { Command } from '@oclif/core/command';
import type { CommandId } from './summaries.js';

type Module = () => Promise<{ readonly default: Command.Class }>;

/** The commands by their path. A module is loaded when it is asked for: help of one command does not wait for the others. */
const modules: Readonly<Record<CommandId, Module>> = {
  agent: () => import('./commands/agent.js'),
  bootstrap: () => import('./commands/bootstrap.js'),
  completion: () => import('./commands/completion.js'),
  config: () => import('./commands/config.js'),
  'config:check': () => import('./commands/config/check.js'),
  'config:schema': () => import('./commands/config/schema.js'),
  dev: () => import('./commands/dev.js'),
  'feature-flags': () => import('./commands/feature-flags.js'),
  help: () => import('./commands/help.js'),
  'license:issue': () => import('./commands/license/issue.js'),
  'license:show': () => import('./commands/license/show.js'),
  'migrate:create': () => import('./commands/migrate/create.js'),
  'migrate:down': () => import('./commands/migrate/down.js'),
  'migrate:status': () => import('./commands/migrate/status.js'),
  'migrate:up': () => import('./commands/migrate/up.js'),
  openapi: () => import('./commands/openapi.js'),
  plugins: () => import('./commands/plugins.js'),
  'plugins:create': () => import('./commands/plugins/create.js'),
  'plugins:inspect': () => import('./commands/plugins/inspect.js'),
  'plugins:install': () => import('./commands/plugins/install.js'),
  'plugins:link': () => import('./commands/plugins/link.js'),
  'plugins:test': () => import('./commands/plugins/test.js'),
  'plugins:uninstall': () => import('./commands/plugins/uninstall.js'),
  retry: () => import('./commands/retry.js'),
  server: () => import('./commands/server.js'),
  'utils:circuit-breakers': () => import('./commands/utils/circuit-breakers.js'),
  'utils:doctor': () => import('./commands/utils/doctor.js'),
  'utils:explain': () => import('./commands/utils/explain.js'),
  'utils:quarantine:discard': () => import('./commands/utils/quarantine/discard.js'),
  'utils:quarantine:edit': () => import('./commands/utils/quarantine/edit.js'),
  'utils:quarantine:list': () => import('./commands/utils/quarantine/list.js'),
  'utils:quarantine:replay': () => import('./commands/utils/quarantine/replay.js'),
  'utils:quarantine:show': () => import('./commands/utils/quarantine/show.js'),
  'utils:secrets:rotate': () => import('./commands/utils/secrets/rotate.js'),
  'utils:sources:list': () => import('./commands/utils/sources/list.js'),
  'utils:sources:resume': () => import('./commands/utils/sources/resume.js'),
  'utils:transform': () => import('./commands/utils/transform.js'),
  'utils:usage': () => import('./commands/utils/usage.js'),
  'utils:verify': () => import('./commands/utils/verify.js'),
  version: () => import('./commands/version.js'),
};

/** The commands that are loaded, where oclif looks for them: those that `loadCommands` was asked for. */
export const commands: Record<string, Command.Class> = {};

/** Loads commands, so that oclif knows them. */
export async function loadCommands(ids: readonly CommandId[]): Promise<void> {
  const loaded = await Promise.all(ids.map(async (id) => [id, (await modules[id]()).default] as const));
  Object.assign(commands, Object.fromEntries(loaded));
}
