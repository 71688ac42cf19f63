import {
  argument,
  command,
  integerOf,
  readPassword,
  valueFlag,
  wrongUse,
} from '../../app/gateway-command.js';

const PORT = 5432;

export default command({
  description:
    'Checks the database, creates the schema if it is missing, creates the tables, and only then adds the shard. In a database with Citus, the schema ' +
    'becomes a distributed one. Without --host, the shard is a schema in the database of the settings. New projects go to the shard with the fewest events. ' +
    'After a failure or a stop, run it again: it continues.',
  examples: [
    'gateway shards add big --host db2.internal --username gateway --database gateway --password-file ./db2-password',
    'gateway shards add s2 --host citus.internal --username gateway --database gateway --schema s2 --password-file -',
    'gateway shards add s2 --schema s2',
  ],
  args: { name: argument('Lower-case letters, digits, hyphens and underscores.') },
  flags: {
    host: valueFlag('<value>', 'Host of the database. [default: the database of the settings]'),
    port: valueFlag('<integer>', `Port of the database. [default: ${PORT}]`),
    username: valueFlag('<value>', 'User of the database, who must own its tables.'),
    'password-file': valueFlag(
      '<path>',
      'File with the password, or - for standard input. It is stored encrypted.',
    ),
    database: valueFlag('<value>', 'Name of the database.'),
    options: valueFlag('<value>', 'Options of the connection, as in database.options.'),
    schema: valueFlag(
      '<value>',
      'Schema for the tables, created if it is missing. [default: the first of the search_path]',
    ),
  },
  async run({ args: { name }, flags, api, log, note }) {
    const { host, username, database, schema, options, 'password-file': file } = flags;
    if (host === undefined) {
      const given = { port: flags.port, username, database, options, 'password-file': file };
      const [flag] = Object.entries(given).find(([, value]) => value !== undefined) ?? [];
      if (flag) throw wrongUse(`--${flag} needs --host`, 'set --host, or omit it');
      if (schema === undefined)
        throw wrongUse(
          'gateway shards add needs a place',
          'set --host, or --schema for a schema in the database of the settings',
        );
    } else if (username === undefined || database === undefined)
      throw wrongUse('--host needs --username and --database', 'set both');
    const port = integerOf('--port', flags.port, { max: 65_535, otherwise: PORT });
    const password = file === undefined ? undefined : await readPassword('--password-file', file);
    const address =
      host === undefined
        ? undefined
        : { host, port, username: username!, password, database: database!, options };
    const isKnown = await api(async ({ shards }) => {
      const known = (await shards.list()).content.some((it) => it.name === name);
      await shards.create({ name, address, schema });
      return known;
    });
    if (isKnown) note(`there is already the shard ${name}; nothing was changed`);
    else log(`added the shard ${name}`);
  },
});
