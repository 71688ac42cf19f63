import { parseDatabaseOptions } from '@gateway/core/config';
import { moveToShard, readMoveStates } from '@gateway/store/moves';
import {
  addShard,
  drainShard,
  readShardStates,
  removeShard,
  requireShard,
  setShard,
  type ShardAddress,
} from '@gateway/store/shards';
import {
  accountItem,
  accountRoute,
  boolean,
  Id,
  int,
  integer,
  invalid,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  string,
  Timestamp,
  Type,
  type AccountCall,
  type Route,
} from '../api/vocabulary.js';

const PORT = 5432;

const Move = namedObject('Move', {
  project_id: Id,
  from: string(),
  to: string(),
  phase: oneOf(
    ['stopping', 'history', 'calling_off'],
    '`stopping`: the project takes no events, for seconds. `history`: the shard has taken over, and agents copy the earlier events, the newest first.',
  ),
  begun_at: Timestamp,
  events_left: nullable(int(), 'Events that are still on the former shard.'),
  copied_to: nullable(
    Timestamp,
    'Events from before this time are still on the former shard, where they are not listed and not sent.',
  ),
  seconds_left: nullable(Type.Number(), 'How long the rest will take at the present speed.'),
  error: nullable(string(), 'Why the last step failed. It is tried again.'),
});

const Shard = namedObject('Shard', {
  name: string(),
  host: string(),
  port: int(),
  database: string(),
  schema: nullable(
    string(),
    'The schema with the tables; null for the first of the `search_path`.',
  ),
  is_citus: boolean('Whether Citus distributes the schema.'),
  is_draining: boolean('Whether the shard gets no new projects.'),
  state: oneOf(
    ['ready', 'behind', 'away'],
    '`behind`: the shard lacks a migration. `away`: its database does not answer or cannot be used.',
  ),
  reason: nullable(string(), 'Why the shard is not ready.'),
  projects: int('Projects of the shard.'),
  moves: Type.Array(Move, { description: 'Projects that are being moved to the shard.' }),
  events_per_day: nullable(
    int(),
    'Events that ended in the last 24 hours; null if the shard is not ready.',
  ),
  bytes: nullable(int(), 'The size of its tables; null if the shard is not ready.'),
  created_at: Timestamp,
});

const text = (description: string, maxLength = 255) =>
  Type.String({ minLength: 1, maxLength, description });

const PLACE = {
  host: text('Host of the database.'),
  username: text('User of the database, who must own its tables.'),
  database: text('Name of the database.'),
};
const CONNECTION = {
  password: text('Password, which is stored encrypted.', 1_000),
  options: text('Options of the connection, as in `database.options`.', 1_000),
};

const NewShard = namedObject('CreateShard', {
  name: Type.String({
    pattern: '^[a-z][a-z0-9_-]{0,39}$',
    description: 'Lower-case letters, digits, hyphens and underscores.',
  }),
  ...optional({
    address: object(
      {
        ...PLACE,
        ...optional({
          port: integer(1, 65_535, `Port of the database; ${PORT} by default.`),
          ...CONNECTION,
        }),
      },
      { description: 'Omit it for a schema in the database of the settings.' },
    ),
    schema: Type.String({
      pattern: '^(?!pg_)[a-z_][a-z0-9_]{0,62}$',
      description:
        'Schema for the tables, created if it is missing. Required without `address`, and on Citus.',
    }),
  }),
});

const ChangedShard = namedObject(
  'ChangedShard',
  optional({
    is_draining: boolean('Whether the shard gets no new projects.'),
    address: object(
      optional({ ...PLACE, port: integer(1, 65_535, 'Port of the database.'), ...CONNECTION }),
      {
        description:
          'The parts that change, such as a new password. The tables of the shard must be there. Another host, port or options need the password again.',
      },
    ),
  }),
);

/** Throws `invalid_request` for options that libpq does not know. */
function assertOptions(text: string | null | undefined): void {
  const parsed = parseDatabaseOptions(text ?? '');
  if ('wrong' in parsed) throw invalid('address.options', parsed.wrong + (parsed.hint ?? ''));
}

/**
 * Throws `invalid_request` if the stored password would be sent to another address, or without the
 * TLS of before.
 */
function assertSameAddress(given: Partial<ShardAddress>, stored: ShardAddress | null): void {
  const moved = (['host', 'port', 'options'] as const).find(
    (it) => given[it] !== undefined && given[it] !== stored?.[it],
  );
  if (moved && stored?.password && given.password === undefined)
    throw invalid(
      'address.password',
      `is not sent to another address: ${moved} changes; give it again`,
    );
}

type ShardCall = Pick<AccountCall, 'database' | 'shards'>;

async function statesOf({ database, shards }: ShardCall) {
  await shards.refresh();
  const [states, moves] = await Promise.all([
    readShardStates(shards),
    readMoveStates(database.pool),
  ]);
  return states.map((it) => ({ ...it, moves: moves.filter(({ to }) => to === it.name) }));
}

async function stateOf(call: ShardCall & Pick<AccountCall, 'params'>) {
  const { name = '' } = call.params;
  const found = (await statesOf(call)).find((it) => it.name === name);
  return found ?? (await requireShard(call.database.pool, name));
}

const item = { thing: 'shard', role: 'instance', data: Shard } as const;

export const shardRoutes: readonly Route[] = [
  accountRoute(
    'GET /shards',
    'Lists the shards with their load and state.',
    { role: 'instance', data: object({ content: Type.Array(Shard) }) },
    async (call) => ({ message: 'shards', data: { content: await statesOf(call) } }),
  ),
  accountItem('GET /shards/:name', 'Shows a shard.', item, stateOf),
  accountItem(
    'POST /shards',
    'Creates the tables of a shard in a database or schema, and adds it. Can be repeated after a failure.',
    { ...item, message: 'shard added', body: NewShard, status: 201 },
    async (call) => {
      const { body, config, database, sealer } = call;
      const { name, address, schema = null } = body;
      const { port = PORT, password = null, options = null } = address ?? {};
      assertOptions(options);
      const given = {
        name,
        schema,
        address: address ? { ...address, port, password, options } : null,
      };
      await addShard(database, given, { settings: config.database, ...sealer });
      return stateOf({ ...call, params: { name } });
    },
  ),
  accountItem(
    'PUT /shards/:name',
    'Starts or ends draining a shard, or changes its address.',
    { ...item, body: ChangedShard },
    async (call) => {
      const { body, config, database, sealer, params } = call;
      const { name = '' } = params;
      const { is_draining: isDraining, address } = body;
      if (address) {
        assertOptions(address.options);
        assertSameAddress(address, (await requireShard(database.pool, name)).address);
        await setShard(database, name, address, { settings: config.database, ...sealer });
      }
      if (isDraining !== undefined) await drainShard(database, name, isDraining);
      return stateOf(call);
    },
  ),
  accountItem(
    'PUT /shards/:name/projects/:project_id',
    'Moves a project to a shard while it runs. Its intake stops for seconds; agents then copy the earlier events. With the shard that it has, calls off a move that stops its intake.',
    { ...item, message: 'project moved', name: 'moveProject' },
    async (call) => {
      const { name: to = '', project_id: projectId = '' } = call.params;
      await call.shards.refresh();
      await moveToShard(call.shards, { projectId, to });
      return stateOf(call);
    },
  ),
  accountRoute(
    'DELETE /shards/:name',
    'Removes a shard without projects. Its tables stay in its database.',
    { role: 'instance' },
    async ({ params: { name = '' }, shards }) => {
      await shards.refresh();
      await removeShard(shards, name);
      await shards.refresh();
      return { message: 'shard removed', data: null };
    },
  ),
];
