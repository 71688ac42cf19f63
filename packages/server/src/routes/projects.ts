import { Type, type Static } from '@sinclair/typebox';
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
  type OrganisationRow,
  type ProjectConfig,
  type ProjectRow,
} from '@gateway/store/config';
import { discardWaiting } from '@gateway/store/deliveries';
import { organisationsOf, type Caller } from '../auth/authenticate.js';
import { refuse } from '../http/mount.js';
import type { Parts } from '../http/server-context.js';
import { pageQuery, pageRequest, pageView } from '../http/pagination.js';
import { accountRoute, projectRoute, type Route } from '../http/route.js';
import {
  CircuitBreakerSchema,
  closed,
  Id,
  Name,
  nullable,
  oneOf,
  RateLimitSchema,
  RetentionSchema,
  StrategySchema,
} from '../http/schema.js';

const ConfigSchema = Type.Object(
  {
    strategy: Type.Optional(StrategySchema),
    signature: Type.Optional(
      Type.Object(
        {
          header: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'Header of the plain HMAC signature.' })),
          hash: Type.Optional(oneOf(['SHA256', 'SHA512'])),
          encoding: Type.Optional(oneOf(['hex', 'base64'])),
        },
        closed,
      ),
    ),
    ratelimit: Type.Optional(nullable(RateLimitSchema)),
    circuit_breaker: Type.Optional(nullable(CircuitBreakerSchema)),
    retention: Type.Optional(nullable(RetentionSchema)),
  },
  closed,
);

const NewProject = Type.Object(
  {
    name: Name,
    type: Type.Optional(oneOf(['outgoing', 'incoming'])),
    organisation_id: Type.Optional(Id),
    config: Type.Optional(ConfigSchema),
  },
  closed,
);

const ChangedProject = Type.Object({ name: Type.Optional(Name), config: Type.Optional(ConfigSchema) }, closed);

function view({ id, ...row }: ProjectRow): object {
  return { uid: id, ...row };
}

const missing = ({ id }: Pick<ProjectRow, 'id'>) => new GatewayError('not_found', { thing: 'project', id });

/** A project as it is now: the one that a request reached may come from a cache. */
async function present({ id }: ProjectRow, { database }: Parts): Promise<ProjectRow> {
  const row = await findProject(database.knex, id);
  if (!row) throw missing({ id });
  return row;
}

export const projectRoutes: readonly Route[] = [
  accountRoute(
    {
      method: 'post',
      path: '/projects',
      summary: 'Creates a project with an API key of its own, which is shown this once.',
      body: NewProject,
      status: 201,
    },
    async ({ parts, caller, body }) => {
      const { name, type = 'outgoing' } = body;
      const organisation = chosen(await organisationsOf(caller, parts), body.organisation_id, caller);
      const config = withDefaults(body.config ?? {}, {});
      const [project, apiKey] = await parts.database.knex.transaction(async (trx) => {
        const made = await insertProject(trx, organisation.id, { name, type, config });
        return [
          made,
          await insertApiKey(trx, { type: 'project', name: `${name}'s key`, organisationId: organisation.id, projectId: made.id }),
        ];
      });
      return { message: 'project created; keep the key, it is not shown again', data: { ...view(project), api_key: keyView(apiKey) } };
    },
  ),
  accountRoute(
    {
      method: 'get',
      path: '/projects',
      summary: 'Lists the projects of the organisations of the user of the key.',
      query: Type.Object({ ...pageQuery, orgID: Type.Optional(Id) }, closed),
    },
    async ({ parts, caller, query }) => {
      const organisations = (await organisationsOf(caller, parts)).filter(({ id }) => query.orgID === undefined || id === query.orgID);
      const request = pageRequest(query);
      const page = await listProjects(
        parts.database.knex,
        organisations.map(({ id }) => id),
        request,
      );
      return { message: 'projects', data: pageView(page, request, view) };
    },
  ),
  projectRoute({ method: 'get', path: '', summary: 'Shows a project.' }, async ({ parts, project }) => ({
    message: 'project',
    data: view(await present(project, parts)),
  })),
  projectRoute(
    { method: 'put', path: '', summary: 'Changes what is given of a project.', body: ChangedProject },
    async ({ parts, project, body }) => {
      const config = body.config && withDefaults(body.config, (await present(project, parts)).config);
      const changed = await updateProject(parts.database.knex, project.id, {
        ...(body.name === undefined ? {} : { name: body.name }),
        ...(config ? { config } : {}),
      });
      await parts.lookups.forget({ project: project.id });
      if (!changed) throw missing(project);
      return { message: 'project updated', data: view(changed) };
    },
  ),
  projectRoute(
    {
      method: 'delete',
      path: '',
      summary: 'Deletes a project: its sources stop, its keys are revoked, its waiting deliveries are discarded.',
    },
    async ({ parts, caller, project }) => {
      await organisationsOf(caller, parts); // a project key may not delete what it belongs to
      const masks = await masksOfProject(parts.database.knex, project.id);
      await deleteProject(parts.database.knex, project.id);
      await parts.lookups.forget({ project: project.id, masks });
      await discardWaiting(parts.database.pool, { projectId: project.id }, 'The project was deleted.');
      return { message: 'project deleted', data: null };
    },
  ),
];

function chosen(organisations: readonly OrganisationRow[], id: string | undefined, { type }: Caller): OrganisationRow {
  const candidates = id === undefined ? organisations : organisations.filter((it) => it.id === id);
  const [only, another] = candidates;
  if (!only && id === undefined && type === 'process') {
    throw new GatewayError('not_found', { thing: 'organisation', fix: 'make one, with a user, by `gateway bootstrap`' });
  }
  if (!only) throw new GatewayError('not_found', { thing: 'organisation', ...(id === undefined ? {} : { id }) });
  const several = type === 'process' ? 'there are several organisations' : 'the user of this key is in several organisations';
  if (another) refuse([{ field: 'organisation_id', sentence: `is missing: ${several}` }]);
  return only;
}

/** What is given, over what was there, over the defaults: a project keeps the values that it was made with. */
function withDefaults(given: Static<typeof ConfigSchema>, present: ProjectConfig): ProjectConfig {
  const signature = { ...DEFAULT_SIGNATURE, ...present.signature, ...given.signature };
  if (!isHeaderName(signature.header)) refuse([{ field: 'config.signature.header', sentence: 'must be the name of a header' }]);
  if (isReservedHeader(signature.header))
    refuse([{ field: 'config.signature.header', sentence: 'is a header that the gateway or the connection sets' }]);
  const retention = given.retention === undefined ? present.retention : given.retention;
  const kept = retention ? { retention } : {};
  return { strategy: given.strategy ?? present.strategy ?? DEFAULT_STRATEGY, signature, ...guards(given, present), ...kept };
}

/** What is said of limits and circuit breakers, if anything: else the settings of the instance hold, also when they are changed. */
function guards(given: Static<typeof ConfigSchema>, present: ProjectConfig): Pick<ProjectConfig, 'ratelimit' | 'circuit_breaker'> {
  const limit = given.ratelimit === undefined ? present.ratelimit : given.ratelimit;
  const breaker = given.circuit_breaker === null ? null : { ...present.circuit_breaker, ...given.circuit_breaker };
  return {
    ...(limit ? { ratelimit: limit } : {}),
    ...(breaker && Object.keys(breaker).length > 0 ? { circuit_breaker: breaker } : {}),
  };
}

function keyView({ id, name, type, key, created_at, expires_at }: ApiKeyRow & { readonly key: string }): unknown {
  return { uid: id, name, type, key, created_at, expires_at };
}
