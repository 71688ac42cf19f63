/** What each command is for. Data alone, so that `gateway` lists the commands without loading one. */
export const summaries = {
  agent: 'Start the data plane.',
  bootstrap: 'Create a new user account.',
  config: 'Print the computed configuration.',
  dev: 'Try the gateway on this machine: everything in one process, with a sample message.',
  'feature-flags': 'Print the list of feature flags.',
  help: 'Help about any command.',
  'migrate:create': 'Generate a new migration file (development workflow).',
  'migrate:down': 'Roll back migrations, the newest first.',
  'migrate:up': 'Apply all pending migrations.',
  server: 'Start the HTTP server.',
  version: 'Print the version.',
} as const;

export type CommandId = keyof typeof summaries;

/** Words that stand for several commands. */
export const topics = { migrate: 'Database migrations.' } as const;
