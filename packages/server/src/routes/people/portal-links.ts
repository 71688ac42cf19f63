import {
  findApiKeyById,
  insertProjectKey,
  listApiKeys,
  refreshPortalLink,
  type PortalLinkRow,
} from '@gateway/store/config';
import { LINK_SCOPES, managesEndpoints, requireScopesFor } from '../../auth/access.js';
import {
  boolean,
  described,
  found,
  Id,
  ignoring,
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
  Word,
  type ProjectCall,
  type Route,
} from '../../api/vocabulary.js';
import { changeKey, expiryOf, ExpiryTime, key, keyView } from './api-keys.js';

const HOUR_MS = 3_600_000;
const LIFE_MS = 24 * HOUR_MS;
const LIFE_MAX_MS = 366 * 24 * HOUR_MS;

const expires_at = Type.Optional(
  described(ExpiryTime, 'When the token expires, at most a year from now. Default: in a day.'),
);
const can_manage_endpoint = boolean(
  'Whether the owner can create, update, pause and delete endpoints, and subscribe them to any event of the project that names neither an owner nor an endpoint.',
);
const fields = {
  uid: Id,
  project_id: Id,
  name: string(),
  owner_id: string('The link shows endpoints with this `owner_id`.'),
  can_manage_endpoint,
  auth_type: oneOf(['refresh_token']),
  mask: string('First characters of the token: `gw_…`.'),
  created_at: key.created_at,
  expires_at: Timestamp,
  last_used_at: key.last_used_at,
  revoked_at: key.revoked_at,
};
const PortalLink = namedObject('PortalLink', fields);
const CreatedPortalLink = namedObject('CreatedPortalLink', {
  ...fields,
  token: string('API key of this link. Only this response contains it.'),
  url: nullable(
    string('URL of the portal with the token in its fragment; null if the dashboard is disabled.'),
  ),
});
const NewPortalLink = named(
  'CreatePortalLink',
  ignoring(
    ['auth_type'],
    object({
      name: Name,
      owner_id: Word,
      can_manage_endpoint: Type.Optional({ ...can_manage_endpoint, default: false }),
      expires_at,
    }),
  ),
);
const ChangedPortalLink = named(
  'ChangedPortalLink',
  ignoring(
    ['auth_type'],
    object(optional({ name: Name, can_manage_endpoint: can_manage_endpoint })),
  ),
);
const Portal = namedObject('Portal', {
  project_id: Id,
  name: string(),
  owner_id: string(),
  can_manage_endpoint: boolean(),
  expires_at: Timestamp,
});

const linksOf = ({ id }: ProjectCall['project']) => ({ type: 'portal', project_id: id }) as const;

const shown = { thing: 'portal link', data: PortalLink } as const;

function view(row: PortalLinkRow) {
  const { type: _type, role: _role, scopes: _scopes, ...plain } = keyView(row);
  const { project_id, owner_id } = row;
  const can_manage_endpoint = managesEndpoints(row);
  return { ...plain, project_id, owner_id, can_manage_endpoint, auth_type: 'refresh_token' };
}

/** No other response contains the token. */
function viewWithToken(
  row: PortalLinkRow,
  token: string,
  { config, links, request, project }: ProjectCall,
) {
  return {
    ...view(row),
    token,
    url: config.dashboard.enabled
      ? `${links.ofRequest(request)}/portal/${project.id}#token=${token}`
      : null,
  };
}

function endOf(body: { readonly expires_at?: string }): Date {
  const at = expiryOf(body) ?? new Date(Date.now() + LIFE_MS);
  if (at.getTime() > Date.now() + LIFE_MAX_MS) throw invalid('expires_at', 'must be within a year');
  return at;
}

const roleOf = (managing: boolean): PortalLinkRow['role'] => (managing ? 'member' : 'viewer');

export const portalLinkRoutes: readonly Route[] = [
  projectRoute(
    'POST /portal-links',
    'Creates a portal link, which shows an owner its endpoints and their deliveries. Only this response contains the token.',
    { body: NewPortalLink, data: CreatedPortalLink, status: 201 },
    async (call) => {
      const { caller, database, project, body, config } = call;
      const role = roleOf(body.can_manage_endpoint === true);
      requireScopesFor(caller, LINK_SCOPES[role]);
      const link = {
        type: 'portal',
        name: body.name,
        organisationId: project.organisation_id,
        projectId: project.id,
        ownerId: body.owner_id,
        role,
        expiresAt: endOf(body),
      } as const;
      const full = {
        things: 'portal links',
        max: config.limits.portal_links_per_project,
        setting: 'limits.portal_links_per_project',
      };
      const { key: token, ...row } = await insertProjectKey(database.knex, link, full);
      const data = viewWithToken({ ...row, revoked_at: null } as PortalLinkRow, token, call);
      return { message: 'portal link created; keep its url, it is not shown again', data };
    },
  ),
  listRoute(
    '/portal-links',
    'Lists the portal links of the project. Ended links are deleted after a week.',
    {
      query: object({ ...pageQuery, ownerId: Type.Optional(Word) }),
      title: 'portal links',
      data: PortalLink,
    },
    ({ database, project, query: { ownerId } }, page) => {
      const of = { ...linksOf(project), ...(ownerId !== undefined && { owner_id: ownerId }) };
      return listApiKeys(database.knex, of, page);
    },
    view,
  ),
  projectItem(
    'GET /portal-links/:id',
    'Shows a portal link.',
    shown,
    ({ database, project, id }) => findApiKeyById(database.knex, linksOf(project), id),
    view,
  ),
  projectItem(
    'PUT /portal-links/:id',
    'Updates the given fields of a portal link, on all servers within a second. Its owner cannot be changed.',
    { ...shown, body: ChangedPortalLink },
    async (call) => {
      const { name, can_manage_endpoint: managing } = call.body;
      if (managing) requireScopesFor(call.caller, LINK_SCOPES.member);
      const changes = {
        ...(name !== undefined && { name }),
        ...(managing !== undefined && { role: roleOf(managing) }),
      } as const;
      return changeKey(call, linksOf(call.project), changes);
    },
    view,
  ),
  projectItem(
    'PUT /portal-links/:id/revoke',
    'Revokes a portal link, on all servers within a second.',
    { ...shown, message: 'portal link revoked' },
    (call) => changeKey(call, linksOf(call.project), 'revoked'),
    view,
  ),
  projectItem(
    'POST /portal-links/:id/refresh_token',
    'Replaces the token of a portal link that is not revoked. The old token stops working on all servers within a second. Only this response contains the new token.',
    {
      thing: 'portal link that is not revoked',
      message: 'token refreshed; keep the url, it is not shown again',
      body: namedObject('PortalLinkRefresh', { expires_at }),
      data: CreatedPortalLink,
    },
    async ({ caller, database, project, id, body, records }) => {
      const link = await findApiKeyById(database.knex, linksOf(project), id);
      requireScopesFor(caller, LINK_SCOPES[found(link, 'portal link', id).role]);
      const fresh = await refreshPortalLink(database.knex, project.id, id, endOf(body));
      if (fresh) await records.forget({ masks: [fresh.oldMask] });
      return fresh;
    },
    ({ row, key: token }, call) => viewWithToken(row, token, call),
  ),
  projectRoute(
    'GET /portal',
    'Shows the portal link that authenticates the request.',
    { data: Portal, name: 'get', portal: 'any' },
    ({ caller, project }) => {
      const { name, owner_id, expires_at, role } = found(
        caller.type === 'portal' ? caller : undefined,
        'portal',
        project.id,
      );
      const can_manage_endpoint = managesEndpoints({ role });
      const data = { project_id: project.id, name, owner_id, can_manage_endpoint, expires_at };
      return { message: 'portal', data };
    },
  ),
];
