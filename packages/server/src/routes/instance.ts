import { presentOrigins } from '@gateway/core/config';
import { isId } from '@gateway/core/events';
import { flagStates, licenceRecord } from '@gateway/core/plugins';
import { VERSION, withTimeout } from '@gateway/core/process';
import { listAgents } from '@gateway/store/deliveries';
import { findOrganisation } from '@gateway/store/people';
import { migratedAs, type Shard } from '@gateway/store/shards';
import { listUsage } from '@gateway/store/counts';
import {
  accountRoute,
  boolean,
  described,
  found,
  Id,
  int,
  integer,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  string,
  Timestamp,
  Type,
  type Route,
} from '../api/vocabulary.js';

const AGENTS_MAX = 1_000;
/** A slower shard counts as unavailable. */
const ANSWER_MS = 1_000;

const Plugin = namedObject('InstancePlugin', {
  name: string(),
  kind: oneOf(['source', 'codec', 'tracer', 'metrics', 'unknown']),
  version: string(),
  from: string('`the installation`, or the plugin folder.'),
  state: oneOf(['active', 'inactive']),
  ...optional({
    code: string(),
    reason: string('Why the plugin is inactive.'),
    fix: string(),
  }),
});
const FeatureFlag = namedObject('InstanceFeatureFlag', {
  name: string(),
  enabled: boolean(),
  origin: string('The flag, variable or file that set the value, or `default`.'),
  stability: oneOf(['experimental', 'beta', 'stable']),
  declared_by: string('Package of the plugin that declares the flag.'),
  summary: string(),
});
const Licence = namedObject('InstanceLicense', {
  kind: oneOf(['community', 'licensed']),
  organisation: nullable(string()),
  entitlements: Type.Array(string()),
  unknown_entitlements: Type.Array(string(), {
    description: 'Entitlements that no installed plugin declares. They have no effect.',
  }),
  issued_at: nullable(Timestamp),
  expires_at: nullable(Timestamp),
  days_left: nullable(int()),
  problem: nullable(
    object(
      { code: string(), sentence: string(), fix: string() },
      {
        description:
          'Why the configured licence is not valid. The community licence applies instead.',
      },
    ),
  ),
});
const Setting = namedObject('InstanceSetting', {
  key: string(),
  value: Type.Unknown({ description: 'The value; masked for secrets, null if not set.' }),
  default: Type.Unknown({ description: 'The default; null if there is none.' }),
  origin: string('The flag, variable or file that set the value, or `default`.'),
  summary: string(),
});
const Health = namedObject('InstanceHealth', {
  server: object({
    version: string(),
    state: oneOf(['ok', 'degraded', 'down']),
    components: Type.Array(
      object({
        name: string(),
        state: oneOf(['ok', 'degraded', 'down']),
        reason: Type.Optional(string()),
        since: Timestamp,
      }),
    ),
  }),
  agents: Type.Array(
    object({
      id: int(),
      name: string(),
      shard: string('The shard whose projects it works on.'),
      state: oneOf(
        ['alive', 'dead'],
        '`dead`: heartbeats have stopped, and other agents take over the deliveries.',
      ),
      reads_sources: boolean(),
      started_at: Timestamp,
      expires_at: described(
        Timestamp,
        'When the lease expires unless the agent sends a heartbeat.',
      ),
    }),
    {
      description: `Agents of each shard, oldest first, up to ${AGENTS_MAX} of a shard. An agent is listed once for each of its shards, except for those that are away. \`/healthz\` of each agent has more details.`,
    },
  ),
});

const USAGE_ROWS = 1_000;
const UsageQuery = object(
  optional({
    days: integer(1, 99_999, 'Days, including today; 30 by default.'),
    organisationId: string('Only this organisation.'),
    after: Type.String({
      pattern: '^[0-9a-f~-]{47}$',
      'x-sentence': 'must be the `next` of an answer',
      description: 'The `next` of the answer before.',
    }),
  }),
);
const UsageRecord = namedObject('UsageRecord', {
  day: string('A day in UTC.'),
  organisation_id: Id,
  organisation: string(),
  events: int('Accepted events.'),
  deliveries: int('Successful deliveries.'),
  bytes: int('Size of the data of the events.'),
  posted_at: nullable(Timestamp, 'When the record was posted to `billing.url`.'),
});
const Usage = object({
  content: Type.Array(UsageRecord, { description: `Up to ${USAGE_ROWS} records, newest first.` }),
  next: nullable(string(), 'Where the next records begin; null at the end.'),
});

/** Empty if a shard other than the default does not answer in time. */
async function agentsOf(shard: Shard) {
  const { name, database } = shard;
  const reading = listAgents(database.pool, AGENTS_MAX);
  const agents = await (migratedAs(shard) === undefined
    ? reading
    : withTimeout(reading, ANSWER_MS).catch(() => []));
  return agents.map((agent) => ({ ...agent, shard: name }));
}

const listed = (row: typeof Plugin | typeof FeatureFlag | typeof Setting) =>
  ({ role: 'instance', data: object({ content: Type.Array(row) }) }) as const;

export const instanceRoutes: readonly Route[] = [
  accountRoute(
    'GET /instance/plugins',
    'Lists the installed plugins, with the reason for each inactive one.',
    { ...listed(Plugin), name: 'listPlugins' },
    ({ plugins }) => ({ message: 'plugins', data: { content: plugins.table } }),
  ),
  accountRoute(
    'GET /instance/feature-flags',
    'Lists the feature flags that plugins declare.',
    { ...listed(FeatureFlag), name: 'listFeatureFlags' },
    ({ plugins }) => ({ message: 'feature flags', data: { content: flagStates(plugins.gates) } }),
  ),
  accountRoute(
    'GET /instance/license',
    'Shows the licence in force.',
    { role: 'instance', data: Licence, name: 'getLicense' },
    ({ plugins: { gates } }) => ({
      message: 'license',
      data: licenceRecord(gates.licence, gates.discovery.plugins),
    }),
  ),
  accountRoute(
    'GET /instance/settings',
    'Lists the settings of the server with their origins; secrets are masked.',
    { ...listed(Setting), name: 'listSettings' },
    ({ plugins: { gates } }) => {
      const { rows } = gates.resolved;
      const shown = Object.entries(presentOrigins(gates.resolved)).filter(
        ([key]) => rows[key]!.withdrawn === undefined,
      );
      const content = shown.map(([key, { value, origin }]) => {
        const { default: usual = null, summary } = rows[key]!;
        return { key, value, default: usual, origin, summary };
      });
      return { message: 'settings', data: { content } };
    },
  ),
  accountRoute(
    'GET /instance/usage',
    'Lists the usage of organisations per day.',
    { role: 'instance', query: UsageQuery, data: Usage, name: 'listUsage' },
    async ({ database, query: { days = 30, organisationId: id, ...page } }) => {
      if (id !== undefined)
        found(isId(id) && (await findOrganisation(database.knex, id)), 'organisation', id);
      const selection = { days, organisationId: id, ...page, limit: USAGE_ROWS };
      const content = await listUsage(database.pool, selection);
      const last = content[USAGE_ROWS - 1];
      const next = last ? `${last.day}~${last.organisation_id}` : null;
      return { message: 'usage', data: { content, next } };
    },
  ),
  accountRoute(
    'GET /instance/health',
    'Shows the health of the server that answers, of its components, and of the agents of the instance.',
    { role: 'instance', data: Health, name: 'getHealth' },
    async (call) => {
      await call.shards.refresh();
      const [{ state, components }, agents] = await Promise.all([
        call.probeHealth(),
        Promise.all(call.shards.all.map(agentsOf)),
      ]);
      const data = {
        server: { version: VERSION, state, components },
        agents: agents.flat().map(({ alive, ...agent }) => ({
          ...agent,
          state: alive ? 'alive' : 'dead',
        })),
      };
      return { message: 'health', data };
    },
  ),
];
