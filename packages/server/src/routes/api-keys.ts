import { Type } from '@sinclair/typebox';
import { insertProjectKey, listProjectKeys, revokeProjectKey, type ListedApiKey } from '@gateway/store/config';
import { found, listRoute, projectRoute, type Route } from '../api/route.js';
import { organisationsOf } from '../auth/authenticate.js';
import { pageQuery } from '../http/list-query.js';
import { assertValid, Id, Name, named, nullable, object, oneOf, Timestamp } from '../http/schema.js';

const key = {
  uid: Id,
  project_id: Id,
  name: Type.String(),
  type: oneOf(['project']),
  mask: Type.String({ description: 'What a key begins with: `gw_…`.' }),
  created_at: Timestamp,
  expires_at: nullable(Timestamp),
  revoked_at: nullable(Timestamp),
};
const ApiKey = named('ApiKey', object(key));
const CreatedApiKey = named('CreatedApiKey', object({ ...key, key: Type.String({ description: 'Shown this once.' }) }));
const NewApiKey = named(
  'NewApiKey',
  object({
    name: Name,
    expires_at: Type.Optional(
      nullable(
        Type.String({
          pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:\\d{2})$',
          'x-sentence': 'must be a time like 2027-01-31T09:00:00Z',
        }),
      ),
    ),
  }),
);

function view({ id, project_id, name, mask, created_at, expires_at, revoked_at }: ListedApiKey): object {
  return { uid: id, project_id, name, type: 'project', mask: `gw_${mask}_…`, created_at, expires_at, revoked_at };
}

/** A key of the project must neither outlive its revocation by keys that it makes, nor revoke the others. */
export const apiKeyRoutes: readonly Route[] = [
  projectRoute(
    'POST /api-keys',
    'Creates an API key of the project, which is shown this once. Needs a personal key.',
    { body: NewApiKey, data: CreatedApiKey, status: 201 },
    async (call) => {
      const { caller, database, project, body, config } = call;
      await organisationsOf(caller, call);
      const expiresAt = body.expires_at ? new Date(body.expires_at) : null;
      if (expiresAt && !(expiresAt.getTime() > Date.now()))
        assertValid([{ field: 'expires_at', sentence: 'must be a time of the future' }]);
      const fields = {
        type: 'project',
        name: body.name,
        organisationId: project.organisation_id,
        projectId: project.id,
        expiresAt,
      } as const;
      const row = await insertProjectKey(database.knex, fields, config.limits.api_keys_per_project);
      return { message: 'API key created; keep it, it is not shown again', data: { ...view({ ...row, revoked_at: null }), key: row.key } };
    },
  ),
  listRoute(
    '/api-keys',
    'Lists the API keys of the project, revoked and expired ones included.',
    { query: object(pageQuery), title: 'API keys', data: ApiKey },
    ({ database, project }, page) => listProjectKeys(database.knex, project.id, page),
    view,
  ),
  projectRoute(
    'DELETE /api-keys/:id',
    'Revokes an API key of the project: here at once, on other servers within a second. Needs a personal key.',
    { data: ApiKey, name: 'revoke' },
    async (call) => {
      const { caller, database, project, id, records } = call;
      await organisationsOf(caller, call);
      const row = found(await revokeProjectKey(database.knex, project.id, id), 'API key', id);
      await records.forget({ project: project.id, masks: [row.mask] });
      return { message: 'API key revoked', data: view(row) };
    },
  ),
];
