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
import { requireScopesFor } from '../../auth/access.js';
import {
  Id,
  invalid,
  listRoute,
  Name,
  named,
  namedObject,
  nullable,
  object,
  oneOf,
  optional,
  pageQuery,
  projectItem,
  projectRoute,
  string,
  Timestamp,
  Type,
  type ProjectCall,
  type Route,
} from '../../api/vocabulary.js';

const Scope = named('Scope', oneOf(SCOPES));
const SCOPES_ARE = {
  description:
    'Permissions of the key, within its role; `write` includes `read`. Null: everything the role allows.',
};

export const key = {
  uid: Id,
  name: string(),
  type: oneOf(['personal', 'project', 'session']),
  mask: string('First characters of the key, such as `gw_…`.'),
  role: nullable(
    oneOf(ROLES),
    'Role that bounds the key; null: all permissions of its user, or everything in its project.',
  ),
  scopes: nullable(Type.Array(Scope, SCOPES_ARE)),
  created_at: Timestamp,
  expires_at: nullable(Timestamp),
  last_used_at: nullable(Timestamp, 'To about a minute.'),
  revoked_at: nullable(Timestamp),
};
const ApiKey = namedObject('ApiKey', { ...key, project_id: Id });
const CreatedApiKey = namedObject('CreatedApiKey', {
  ...key,
  project_id: Id,
  key: string('Only this response contains the key.'),
});
export const ExpiryTime = Type.String({
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:\\d{2})$',
  'x-sentence': 'must be a time like 2027-01-31T09:00:00Z',
});
const given = optional({
  role: nullable(
    oneOf(['viewer', 'member', 'admin']),
    'Role that bounds the key; null: everything.',
  ),
  scopes: nullable(Type.Array(Scope, { minItems: 1, maxItems: SCOPES.length, ...SCOPES_ARE })),
});
export const NewApiKey = namedObject('CreateApiKey', {
  name: Name,
  ...given,
  expires_at: Type.Optional(nullable(ExpiryTime)),
});
export const ChangedApiKey = namedObject('ChangedApiKey', { name: Type.Optional(Name), ...given });

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

type KeyCall = Pick<ProjectCall, 'database' | 'records' | 'id'>;

/** A changed key leaves the credential cache. */
export async function changeKey<Of extends Parameters<typeof findApiKeyById>[1]>(
  { database, records, id }: KeyCall,
  of: Of,
  changes: Parameters<typeof updateApiKey<Of>>[3] | 'revoked',
) {
  const key = await (changes === 'revoked'
    ? revokeApiKey(database.knex, of, id)
    : updateApiKey(database.knex, of, id, changes));
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
    async (call) => {
      const { caller, database, project, id, body } = call;
      const of = keysOf(project);
      const before = await findApiKeyById(database.knex, of, id);
      if (!before) return undefined;
      requireScopesFor(caller, { ...before, ...body }.scopes);
      return changeKey(call, of, body);
    },
    view,
  ),
  projectItem(
    'DELETE /api-keys/:id',
    'Revokes an API key of the project, on all servers within a second.',
    { ...shown, ...access, message: 'API key revoked', name: 'revoke' },
    (call) => changeKey(call, keysOf(call.project), 'revoked'),
    view,
  ),
];
