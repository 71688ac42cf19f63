import { Type } from '@sinclair/typebox';
import { insertProjectKey, listApiKeys, revokeApiKey, ROLES, type ListedApiKey } from '@gateway/store/config';
import { found, listRoute, projectRoute, type Route } from '../../api/route.js';
import { pageQuery } from '../../http/list-query.js';
import { assertValid, Id, Name, named, nullable, object, oneOf, Timestamp } from '../../http/schema.js';

export const key = {
  uid: Id,
  name: Type.String(),
  type: oneOf(['personal', 'project', 'session']),
  mask: Type.String({ description: 'What a key begins with: `gw_…`.' }),
  role: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    enum: [...ROLES, null],
    description: 'What it may do at most; null: all that its user may, or everything in its project.',
  }),
  created_at: Timestamp,
  expires_at: nullable(Timestamp),
  last_used_at: Type.Unsafe<Date | null>({ ...nullable(Timestamp), description: 'To about a minute.' }),
  revoked_at: nullable(Timestamp),
};
const ApiKey = named('ApiKey', object({ ...key, project_id: Id }));
const CreatedApiKey = named('CreatedApiKey', object({ ...key, project_id: Id, key: Type.String({ description: 'Shown this once.' }) }));
export const ExpiryTime = Type.String({
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:\\d{2})$',
  'x-sentence': 'must be a time like 2027-01-31T09:00:00Z',
});
export const NewApiKey = named(
  'NewApiKey',
  object({
    name: Name,
    role: Type.Optional(oneOf(['viewer', 'member', 'admin'], { description: 'What it may do; everything when it is left out.' })),
    expires_at: Type.Optional(nullable(ExpiryTime)),
  }),
);

export function keyView({ id, name, type, mask, role, created_at, expires_at, last_used_at, revoked_at }: ListedApiKey) {
  return { uid: id, name, type, mask: `gw_${mask}_…`, role, created_at, expires_at, last_used_at, revoked_at };
}

/** Reads the expiry of a new key. Throws `invalid_request` for a time in the past. */
export function expiryOf({ expires_at: text }: { readonly expires_at?: string | null }): Date | null {
  const at = text ? new Date(text) : null;
  if (at && !(at.getTime() > Date.now())) assertValid([{ field: 'expires_at', sentence: 'must be a time of the future' }]);
  return at;
}

function view(row: ListedApiKey): object {
  return { ...keyView(row), project_id: row.project_id };
}

/** A key of the project must neither outlive its revocation by keys that it makes, nor revoke the others. */
const access = { role: 'admin', needsPerson: true } as const;

export const apiKeyRoutes: readonly Route[] = [
  projectRoute(
    'POST /api-keys',
    'Creates an API key of the project, which is shown this once.',
    { ...access, body: NewApiKey, data: CreatedApiKey, status: 201 },
    async ({ database, project, body, config }) => {
      const fields = {
        type: 'project',
        name: body.name,
        role: body.role ?? null,
        organisationId: project.organisation_id,
        projectId: project.id,
        expiresAt: expiryOf(body),
      } as const;
      const full = { things: 'API keys', max: config.limits.api_keys_per_project, setting: 'limits.api_keys_per_project' };
      const row = await insertProjectKey(database.knex, fields, full);
      return { message: 'API key created; keep it, it is not shown again', data: { ...view({ ...row, revoked_at: null }), key: row.key } };
    },
  ),
  listRoute(
    '/api-keys',
    'Lists the API keys of the project, revoked and expired ones included.',
    { query: object(pageQuery), title: 'API keys', data: ApiKey },
    ({ database, project }, page) => listApiKeys(database.knex, { type: 'project', project_id: project.id }, page),
    view,
  ),
  projectRoute(
    'DELETE /api-keys/:id',
    'Revokes an API key of the project: here at once, on other servers within a second.',
    { ...access, data: ApiKey, name: 'revoke' },
    async ({ database, project, id, records }) => {
      const row = found(await revokeApiKey(database.knex, { type: 'project', project_id: project.id }, id), 'API key', id);
      await records.forget({ masks: [row.mask] });
      return { message: 'API key revoked', data: view(row) };
    },
  ),
];
