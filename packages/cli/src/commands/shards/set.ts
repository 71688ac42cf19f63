import {
  argument,
  command,
  integerOf,
  readFlag,
  readPassword,
  valueFlag,
  wrongUse,
} from '../../app/gateway-command.js';

export default command({
  description:
    'For a new password, or a database that has moved to another host. Checks that the tables of the shard are there, and changes only what is named. ' +
    'Agents and servers follow within seconds, without a restart. With a new password, change it in Postgres first: open connections stay.',
  examples: [
    'gateway shards set big --password-file ./db2-password',
    'gateway shards set big --host db3.internal --port 5433',
  ],
  args: { name: argument('Name of the shard.') },
  flags: {
    host: valueFlag('<value>', 'New host of the database.'),
    port: readFlag('<integer>', 'New port of the database.', (name, given) =>
      given === undefined ? undefined : integerOf(name, given, { max: 65_535, otherwise: 0 }),
    ),
    username: valueFlag('<value>', 'New user of the database, who must own its tables.'),
    'password-file': valueFlag('<path>', 'File with the new password, or - for standard input.'),
    database: valueFlag('<value>', 'New name of the database.'),
    options: valueFlag('<value>', 'New options of the connection, as in database.options.'),
  },
  async run({ args: { name }, flags, api, log }) {
    const { host, port, username, database, options, 'password-file': file } = flags;
    const password = file && (await readPassword('--password-file', file));
    const given = Object.entries({ host, port, username, database, options, password });
    const address = Object.fromEntries(given.filter(([, value]) => value !== undefined));
    if (Object.keys(address).length === 0)
      throw wrongUse(
        'gateway shards set needs something to change',
        'set --password-file, or a part of the address such as --host',
      );
    await api(({ shards }) => shards.update(name, { address }));
    log(`changed the shard ${name}; agents and servers follow within seconds`);
  },
});
