import { argument, command, valueFlag } from '../../app/gateway-command.js';

export default command({
  description:
    'Writes an empty pair of SQL files, up and down, with the next number. Needs no database.',
  examples: [
    'gateway migrate create add_portal_links',
    'gateway migrate create add_portal_links --dir ./migrations',
  ],
  flags: {
    dir: valueFlag('<path>', 'Folder to write to. [default: the migrations folder of the gateway]'),
  },
  args: { name: argument('Lower-case letters, digits and underscores.') },
  async run({ args, flags, log }) {
    const { createMigration, migrationsDir } = await import('@gateway/store/postgres');
    for (const path of createMigration(flags.dir ?? migrationsDir(), args.name)) log(path);
  },
});
