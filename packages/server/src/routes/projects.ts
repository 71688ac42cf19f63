import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import { isHeaderName, isReservedHeader } from '@gateway/core/events';
import {
  DEFAULT_SIGNATURE,
  DEFAULT_STRATEGY,
  deleteProject,
  findProject,
  insertApiKey,
  insertProject,
  listProjects,
  masksOfProject,
  updateProject,
  type ApiKeyRow,
  type ProjectConfig,
} from '@gateway/store/config';
import type { Membership } from '@gateway/store/people';
import { requireTarget } from '@gateway/store/moves';
import { chooseShard } from '@gateway/store/shards';
import { includes, organisationsOf, requireInstanceAdmin } from '../auth/access.js';
import type { Caller } from '../auth/process-credentials.js';
import {
  accountList,
  accountRoute,
  found,
  Id,
  integer,
  invalid,
  Name,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  pageQuery,
  projectItem,
  projectRoute,
  StrategySchema,
  string,
  Timestamp,
  Type,
  withUid,
  type AccountCall,
  type ProjectCall,
  type Route,
  type Static,
} from '../api/vocabulary.js';
import { settle } from './settle.js';

const RateLimitSchema = object({
  count: integer(
    0,
    1_000_000,
    'Requests to one endpoint per `duration`, across all agents; 0 sets no limit.',
  ),
  duration: integer(1, 86_400, 'Seconds.'),
});

/** Omitted fields default to the `circuit_breaker.*` settings. */
const CircuitBreakerSchema = object(
  optional({
    failure_threshold: integer(
      1,
      100,
      'Percentage of failed requests that opens the circuit breaker, at most `limits.failure_threshold`.',
    ),
    minimum_request_count: integer(
      1,
      1000,
      'Requests required before the circuit breaker can open, at most `limits.minimum_request_count`.',
    ),
    observability_window: integer(1, 1440, 'Minutes over which requests are counted.'),
    error_timeout: integer(
      1,
      3600,
      'Seconds until the first probe; the wait doubles after each failed probe.',
    ),
  }),
);

const RetentionSchema = object({
  days: integer(
    1,
    36_500,
    'Days to keep finished events, event deliveries and delivery attempts; overrides `retention.days`.',
  ),
});

const ConfigSchema = object(
  optional({
    strategy: StrategySchema,
    signature: object(
      optional({
        header: Type.String({
          minLength: 1,
          maxLength: 100,
          description: 'Header of the plain HMAC signature.',
        }),
        hash: oneOf(['SHA256', 'SHA512']),
        encoding: oneOf(['hex', 'base64']),
      }),
    ),
    ratelimit: nullable(RateLimitSchema),
    circuit_breaker: nullable(CircuitBreakerSchema),
    retention: nullable(RetentionSchema),
    disable_after_days: nullable(
      integer(
        1,
        365,
        'Days of failures without a success after which an endpoint is disabled; null never disables it. A notification is sent before.',
      ),
    ),
    unknown_event_types: oneOf(
      ['accept', 'reject'],
      'Whether to accept events of types that the project does not have. Deprecated types are accepted. Default: `accept`.',
    ),
  }),
);

const NewProject = namedObject('CreateProject', {
  name: Name,
  ...optional({
    type: oneOf(['outgoing', 'incoming']),
    organisation_id: Id,
    config: ConfigSchema,
    shard: string(
      'The shard for the events; only instance admins may choose it. By default, the one with the fewest events.',
    ),
  }),
});

const ChangedProject = namedObject(
  'ChangedProject',
  optional({ name: Name, config: ConfigSchema }),
);

const project = {
  uid: Id,
  organisation_id: Id,
  name: string(),
  type: oneOf(['outgoing', 'incoming']),
  config: ConfigSchema,
  shard: string('The shard that takes new events.'),
  created_at: Timestamp,
  updated_at: Timestamp,
};
const Project = namedObject('Project', project);
const CreatedProject = namedObject('CreatedProject', {
  ...project,
  api_key: object({
    uid: Id,
    name: string(),
    type: oneOf(['project']),
    key: string('Only this response contains the key.'),
    created_at: Timestamp,
    expires_at: nullable(Timestamp),
  }),
});

const shown = { thing: 'project', data: Project } as const;

/** The project in the call is cached and can be out of date. */
const current = ({ database, project }: ProjectCall) => findProject(database.knex, project.id);

export const projectRoutes: readonly Route[] = [
  accountRoute(
    'POST /projects',
    'Creates a project and its first API key. Only this response contains the key.',
    { role: 'admin', body: NewProject, data: CreatedProject, status: 201 },
    async (call) => {
      const { body, caller, database } = call;
      const { name, type = 'outgoing' } = body;
      const { id: organisationId } = chosen(
        await organisationsOf(caller, call),
        body.organisation_id,
        caller,
      );
      const config = withDefaults(body.config ?? {}, {}, call.config);
      const shard = await shardFor(call, body.shard);
      const [project, apiKey] = await database.knex.transaction(async (trx) => {
        const row = await insertProject(trx, organisationId, { name, type, config, shard });
        // Inherits the scopes of the creating key, so that the new key does not have more rights.
        const scopes = caller.type === 'process' ? null : caller.scopes;
        return [
          row,
          await insertApiKey(trx, {
            type: 'project',
            name: `${name}'s key`,
            scopes,
            organisationId,
            projectId: row.id,
          }),
        ];
      });
      const data = { ...withUid(project), api_key: keyView(apiKey) };
      return {
        message: 'project created; keep the key, it is not shown again',
        data,
        organisationId,
      };
    },
  ),
  accountList(
    '/projects',
    'Lists the projects in all organisations of the authenticated user, or the project of the key.',
    {
      query: object({ ...pageQuery, orgID: Type.Optional(Id) }),
      title: 'projects',
      data: Project,
      admitsProject: true,
    },
    async (call, page) => {
      const { caller, database, query } = call;
      if (caller.type === 'project')
        return listProjects(database.knex, { id: caller.project_id }, page);
      const organisationIds = (await organisationsOf(caller, call))
        .map(({ id }) => id)
        .filter((id) => query.orgID === undefined || id === query.orgID);
      return listProjects(database.knex, { organisationIds }, page);
    },
  ),
  projectItem('GET', 'Shows a project.', shown, current),
  projectItem(
    'PUT',
    'Updates the given fields of a project.',
    { ...shown, role: 'admin', body: ChangedProject },
    async (call) => {
      const { body, database, project, records } = call;
      const config =
        body.config &&
        withDefaults(
          body.config,
          found(await current(call), 'project', project.id).config,
          call.config,
        );
      const fields = {
        ...(body.name === undefined ? {} : { name: body.name }),
        ...(config ? { config } : {}),
      };
      const changed = await updateProject(database.knex, project.id, fields);
      await records.forget({ project: project.id });
      call.catalogue.forget(project.id);
      return changed;
    },
  ),
  projectRoute(
    'DELETE',
    'Deletes a project, stops its sources, revokes its keys, and discards its waiting deliveries.',
    { role: 'admin', needsPerson: true },
    async (call) => {
      const { database, project, records } = call;
      const masks = await masksOfProject(database.knex, project.id);
      await deleteProject(database.knex, project.id);
      await records.forget({ project: project.id, masks });
      await settle(call);
      return { message: 'project deleted', data: null };
    },
  ),
];

/** A given shard must be ready. */
async function shardFor(call: AccountCall, shard: string | undefined): Promise<string> {
  const { shards } = call;
  if (shard === undefined) return chooseShard(shards);
  await requireInstanceAdmin(call.caller, call);
  await shards.refresh();
  return requireTarget(shards, shard);
}

function chosen(all: readonly Membership[], id: string | undefined, { type }: Caller): Membership {
  const organisations = all.filter(({ role }) => includes(role, 'admin'));
  const [only, another] =
    id === undefined ? organisations : organisations.filter((it) => it.id === id);
  const mine = all.find((it) => id === undefined || it.id === id);
  if (!only && mine)
    throw new GatewayError('forbidden', {
      reason: `this requires the role admin, but the role in ${mine.name} is ${mine.role}`,
    });
  if (!only && id === undefined && type === 'process') {
    throw new GatewayError('not_found', {
      thing: 'organisation',
      fix: 'create one with `gateway bootstrap`',
    });
  }
  if (!only)
    throw new GatewayError('not_found', {
      thing: 'organisation',
      ...(id === undefined ? {} : { id }),
    });
  const several =
    type === 'process'
      ? 'there are several organisations'
      : 'the user of this key is in several organisations';
  if (another) throw invalid('organisation_id', `is missing: ${several}`);
  return only;
}

/**
 * Given values override current ones, which override the defaults. A project keeps the defaults
 * that it was created with. Rate limits, breakers and retention follow the instance if unset.
 */
function withDefaults(
  given: Static<typeof ConfigSchema>,
  present: ProjectConfig,
  { limits }: Pick<Config, 'limits'>,
): ProjectConfig {
  const signature = { ...DEFAULT_SIGNATURE, ...present.signature, ...given.signature };
  const field = 'config.signature.header';
  if (!isHeaderName(signature.header)) throw invalid(field, 'must be the name of a header');
  if (isReservedHeader(signature.header))
    throw invalid(field, 'is a header that the gateway or the connection sets');
  const retention = given.retention === undefined ? present.retention : given.retention;
  const unknown = given.unknown_event_types ?? present.unknown_event_types;
  const disable =
    given.disable_after_days === undefined ? present.disable_after_days : given.disable_after_days;
  const ratelimit = given.ratelimit === undefined ? present.ratelimit : given.ratelimit;
  for (const name of ['failure_threshold', 'minimum_request_count'] as const) {
    if ((given.circuit_breaker?.[name] ?? 0) <= limits[name]) continue;
    throw invalid(
      `config.circuit_breaker.${name}`,
      `must be at most ${limits[name]}, by the setting limits.${name}`,
    );
  }
  const breaker =
    given.circuit_breaker === null ? {} : { ...present.circuit_breaker, ...given.circuit_breaker };
  return {
    strategy: given.strategy ?? present.strategy ?? DEFAULT_STRATEGY,
    signature,
    ...(ratelimit ? { ratelimit } : {}),
    ...(Object.keys(breaker).length > 0 ? { circuit_breaker: breaker } : {}),
    ...(retention ? { retention } : {}),
    ...(disable ? { disable_after_days: disable } : {}),
    ...(unknown ? { unknown_event_types: unknown } : {}),
  };
}

function keyView({
  id,
  name,
  type,
  key,
  created_at,
  expires_at,
}: ApiKeyRow & { readonly key: string }): unknown {
  return { uid: id, name, type, key, created_at, expires_at };
}
