import {
  GatewayCommand,
  argument,
  integerOf,
  readPassword,
  valueFlag,
  wrongUse,
} from '../../app/gateway-command.js';

export default class ShardsSet extends GatewayCommand {
  static override description =
    'For a new password, or a database that has moved to another host. Checks that the tables of the shard are there, and changes only what is named. ' +
    'Agents and servers follow within seconds, without a restart. With a new password, change it in Postgres first: open connections stay.';
  static override examples = [
    'gateway shards set big --password-file ./db2-password',
    'gateway shards set big --host db3.internal --port 5433',
  ];
  static override args = { name: argument('Name of the shard.') };
  static override flags = {
    host: valueFlag('<value>', 'New host of the database.'),
    port: valueFlag('<integer>', 'New port of the database.'),
    username: valueFlag('<value>', 'New user of the database, who must own its tables.'),
    'password-file': valueFlag('<path>', 'File with the new password, or - for standard input.'),
    database: valueFlag('<value>', 'New name of the database.'),
    options: valueFlag('<value>', 'New options of the connection, as in database.options.'),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ShardsSet);
    const { host, port, username, database: databaseName, options } = flags;
    const file = flags['password-file'];
    const given = Object.entries({ host, port, username, database: databaseName, options });
    const changed = Object.fromEntries(given.filter(([, value]) => value !== undefined));
    if (Object.keys(changed).length === 0 && file === undefined)
      throw wrongUse(
        'gateway shards set needs something to change',
        'set --password-file, or a part of the address such as --host',
      );
    const { name } = args;
    const address = {
      ...changed,
      ...(port !== undefined && {
        port: integerOf('--port', port, { max: 65_535, otherwise: 0 }),
      }),
      ...(file !== undefined && { password: await readPassword('--password-file', file) }),
    };
    await this.api(flags, ({ shards }) => shards.update(name, { address }));
    this.log(`changed the shard ${name}; agents and servers follow within seconds`);
  }
}
