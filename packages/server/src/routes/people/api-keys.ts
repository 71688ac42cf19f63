import { Type } from '@sinclair/typebox';
import {
  findApiKeyById,
  insertProjectKey,
  listApiKeys,
  revokeApiKey,
  ROLES,
  updateApiKey,
  type ListedApiKey,
} from '@gateway/store/config';
import { SCOPES } from '../../api/resources.js';
import {
  listRoute,
  projectItem,
  projectRoute,
  type ProjectCall,
  type Route,
} from '../../api/route.js';
import { requireScopesFor } from '../../auth/access.js';
import { pageQuery } from '../../http/list-query.js';
import {
  Id,
  invalid,
  Name,
  named,
  nullable,
  object,
  oneOf,
  optional,
  Timestamp,
} from '../../http/schema.js';

const Scope = named('Scope', oneOf(SCOPES));
const SCOPES_ARE = {
  description:
    'Permissions of the key, within its role; `write` includes `read`. Null: everything the role allows.',
};

export const key = {
  uid: Id,
  name: Type.String(),
  type: oneOf(['personal', 'project', 'session']),
  mask: Type.String({ description: 'First characters of the key, such as `gw_…`.' }),
  role: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    enum: [...ROLES, null],
    description:
      'Role that bounds the key; null: all permissions of its user, or everything in its project.',
  }),
  scopes: nullable(Type.Array(Scope, SCOPES_ARE)),
  created_at: Timestamp,
  expires_at: nullable(Timestamp),
  last_used_at: nullable(Timestamp, 'To about a minute.'),
  revoked_at: nullable(Timestamp),
};
const ApiKey = named('ApiKey', object({ ...key, project_id: Id }));
const CreatedApiKey = named(
  'CreatedApiKey',
  object({
    ...key,
    project_id: Id,
    key: Type.String({ description: 'Only this response contains the key.' }),
  }),
);
export const ExpiryTime = Type.String({
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:\\d{2})$',
  'x-sentence': 'must be a time like 2027-01-31T09:00:00Z',
});
const GIVEN_ROLES = ['viewer', 'member', 'admin'] as const;
const given = optional({
  role: Type.Unsafe<(typeof GIVEN_ROLES)[number] | null>({
    type: ['string', 'null'],
    enum: [...GIVEN_ROLES, null],
    description: 'Role that bounds the key; null: everything.',
  }),
  scopes: nullable(Type.Array(Scope, { minItems: 1, maxItems: SCOPES.length, ...SCOPES_ARE })),
});
export const NewApiKey = named(
  'CreateApiKey',
  object({ name: Name, ...given, expires_at: Type.Optional(nullable(ExpiryTime)) }),
);
export const ChangedApiKey = named(
  'ChangedApiKey',
  object({ name: Type.Optional(Name), ...given }),
);

export function keyView({ id, mask, ...row }: ListedApiKey) {
  const { name, type, role, scopes, created_at, expires_at, last_used_at, revoked_at } = row;
  const times = { created_at, expires_at, last_used_at, revoked_at };
  return { uid: id, name, type, mask: `gw_${mask}_…`, role, scopes, ...times };
}

/** Throws `invalid_request` for a time in the past. */
export function expiryOf({
  expires_at: text,
}: {
  readonly expires_at?: string | null;
}): Date | null {
  const at = text ? new Date(text) : null;
  if (at && !(at.getTime() > Date.now())) throw invalid('expires_at', 'must be in the future');
  return at;
}

function view(row: ListedApiKey): object {
  return { ...keyView(row), project_id: row.project_id };
}

/** Evicts a changed key from the credential cache. */
export async function forgotten<Key extends { readonly mask: string }>(
  records: ProjectCall['records'],
  key: Key | undefined,
): Promise<Key | undefined> {
  if (key) await records.forget({ masks: [key.mask] });
  return key;
}

const keysOf = ({ id }: ProjectCall['project']) => ({ type: 'project', project_id: id }) as const;

const shown = { thing: 'API key', data: ApiKey } as const;
/**
 * Project keys are rejected: they must neither create keys that outlive their own revocation nor
 * revoke others.
 */
const access = { role: 'admin', needsPerson: true } as const;

export const apiKeyRoutes: readonly Route[] = [
  projectRoute(
    'POST /api-keys',
    'Creates an API key for the project. Only this response contains the key.',
    { ...access, body: NewApiKey, data: CreatedApiKey, status: 201 },
    async ({ caller, database, project, body, config }) => {
      const scopes = body.scopes ?? null;
      requireScopesFor(caller, scopes);
      const fields = {
        type: 'project',
        name: body.name,
        role: body.role ?? null,
        scopes,
        organisationId: project.organisation_id,
        projectId: project.id,
        expiresAt: expiryOf(body),
      } as const;
      const full = {
        things: 'API keys',
        max: config.limits.api_keys_per_project,
        setting: 'limits.api_keys_per_project',
      };
      const row = await insertProjectKey(database.knex, fields, full);
      return {
        message: 'API key created; keep it, it is not shown again',
        data: { ...view({ ...row, revoked_at: null }), key: row.key },
      };
    },
  ),
  listRoute(
    '/api-keys',
    'Lists the API keys of the project, including revoked and expired ones.',
    { query: object(pageQuery), title: 'API keys', data: ApiKey },
    ({ database, project }, page) => listApiKeys(database.knex, keysOf(project), page),
    view,
  ),
  projectItem(
    'GET /api-keys/:id',
    'Shows an API key of the project.',
    shown,
    ({ database, project, id }) => findApiKeyById(database.knex, keysOf(project), id),
    view,
  ),
  projectItem(
    'PUT /api-keys/:id',
    'Updates the given fields of an API key, on all servers within a second.',
    { ...shown, ...access, message: 'API key updated', body: ChangedApiKey },
    async ({ caller, database, project, id, body, records }) => {
      const of = keysOf(project);
      const before = await findApiKeyById(database.knex, of, id);
      if (!before) return undefined;
      requireScopesFor(caller, { ...before, ...body }.scopes);
      return forgotten(records, await updateApiKey(database.knex, of, id, body));
    },
    view,
  ),
  projectItem(
    'DELETE /api-keys/:id',
    'Revokes an API key of the project, on all servers within a second.',
    { ...shown, ...access, message: 'API key revoked', name: 'revoke' },
    async ({ database, project, id, records }) =>
      forgotten(records, await revokeApiKey(database.knex, keysOf(project), id)),
    view,
  ),
];
