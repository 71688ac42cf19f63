import { GatewayCommand, argument, valueFlag } from '../../app/gateway-command.js';

export default class MigrateCreate extends GatewayCommand {
  static override description =
    'Writes an empty pair of SQL files, up and down, with the next number. Needs no database.';
  static override examples = [
    'gateway migrate create add_portal_links',
    'gateway migrate create add_portal_links --dir ./migrations',
  ];
  static override flags = {
    dir: valueFlag('<path>', 'Folder to write to. [default: the migrations folder of the gateway]'),
  };
  static override args = {
    name: argument('Lower-case letters, digits and underscores.'),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(MigrateCreate);
    const { createMigration, migrationsDir } = await import('@gateway/store/postgres');
    const { dir } = flags;
    for (const path of createMigration(
      typeof dir === 'string' ? dir : migrationsDir(),
      args['name'],
    ))
      this.log(path);
  }
}
