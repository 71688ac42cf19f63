import type { Command } from '@oclif/core/command';
import Agent from './commands/agent.js';
import Bootstrap from './commands/bootstrap.js';
import Config from './commands/config.js';
import Dev from './commands/dev.js';
import FeatureFlags from './commands/feature-flags.js';
import Help from './commands/help.js';
import MigrateCreate from './commands/migrate/create.js';
import MigrateDown from './commands/migrate/down.js';
import MigrateUp from './commands/migrate/up.js';
import Server from './commands/server.js';
import Version from './commands/version.js';
import type { CommandId } from './summaries.js';

/** The commands by their path. Their modules import nothing heavy at the top, so that listing all of them is quick. */
export const commands: Readonly<Record<CommandId, Command.Class>> = {
  agent: Agent,
  bootstrap: Bootstrap,
  config: Config,
  dev: Dev,
  'feature-flags': FeatureFlags,
  help: Help,
  'migrate:create': MigrateCreate,
  'migrate:down': MigrateDown,
  'migrate:up': MigrateUp,
  server: Server,
  version: Version,
};
