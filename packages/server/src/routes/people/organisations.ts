import { ROLES, type Role } from '@gateway/store/config';
import { GatewayError } from '@gateway/core/errors';
import {
  changeMember,
  countOpenInvitations,
  deleteOrganisation,
  findMember,
  insertInvitation,
  insertOrganisation,
  isEmail,
  listInvitations,
  listMembers,
  revokeInvitation,
  updateOrganisation,
} from '@gateway/store/people';
import { includes, organisationsOf, personOf, requireScopesFor } from '../../auth/access.js';
import {
  accountRoute,
  found,
  Id,
  invalid,
  Name,
  namedObject,
  nullable,
  object,
  oneOf,
  organisationItem,
  organisationList,
  organisationRoute,
  pageQuery,
  string,
  Timestamp,
  Type,
  withUid,
  type OrganisationCall,
  type Route,
} from '../../api/vocabulary.js';

const RoleSchema = oneOf(ROLES, 'Role of the user. Each role includes the ones before it.');
const organisation = { uid: Id, name: string(), created_at: Timestamp, updated_at: Timestamp };
const Organisation = namedObject('Organisation', organisation);
const Membership = namedObject('Membership', { ...organisation, role: RoleSchema });
const OrganisationName = namedObject('OrganisationName', { name: Name });

const Member = namedObject('Member', {
  uid: Id,
  email: string(),
  first_name: string(),
  last_name: string(),
  role: RoleSchema,
  created_at: Timestamp,
});

const invitation = {
  uid: Id,
  organisation_id: Id,
  email: string(),
  role: RoleSchema,
  created_at: Timestamp,
  expires_at: Timestamp,
  accepted_at: nullable(Timestamp),
  revoked_at: nullable(Timestamp),
};
const Invitation = namedObject('Invitation', invitation);
const CreatedInvitation = namedObject('CreatedInvitation', {
  ...invitation,
  token: string('Token that accepts the invitation. Only this response contains it.'),
});
const INVITATION_MS = 7 * 86_400_000;

export const organisationRoutes: readonly Route[] = [
  accountRoute(
    'POST /organisations',
    'Creates an organisation, owned by the authenticated user.',
    { body: OrganisationName, data: Organisation, status: 201 },
    async ({ caller, database, body, records, config }) => {
      const user = personOf(caller);
      if (!user)
        throw new GatewayError('forbidden', {
          reason: 'a credential of the process has no user to own the organisation',
        });
      const { organisations_per_user: max } = config.limits;
      if ((await records.organisations(user.user_id)).length >= max)
        throw new GatewayError('conflict', {
          sentence: `the user is already in ${max} organisations`,
          fix: 'the operator can raise limits.organisations_per_user',
        });
      const row = await database.knex.transaction((trx) =>
        insertOrganisation(trx, { name: body.name, userId: user.user_id }),
      );
      await records.forget({ users: [user.user_id] });
      return { message: 'organisation created', data: withUid(row), organisationId: row.id };
    },
  ),
  accountRoute(
    'GET /organisations',
    "Lists the organisations of the authenticated user, with the user's role in each.",
    { data: object({ content: Type.Array(Membership) }) },
    async (call) => ({
      message: 'organisations',
      data: { content: (await organisationsOf(call.caller, call)).map(withUid) },
    }),
  ),
  organisationItem(
    'GET',
    'Shows an organisation.',
    { thing: 'organisation', data: Membership, name: 'get' },
    async ({ organisation: it }) => it,
  ),
  organisationItem(
    'PUT',
    'Renames an organisation.',
    {
      thing: 'organisation',
      role: 'admin',
      body: OrganisationName,
      data: Organisation,
      name: 'update',
    },
    async ({ database, organisation: { id }, body, records, caller }) => {
      const row = await updateOrganisation(database.knex, id, body);
      if (row && caller.type !== 'process' && caller.user_id)
        await records.forget({ users: [caller.user_id] });
      return row;
    },
  ),
  organisationRoute(
    'DELETE',
    'Deletes an organisation with its memberships and audit log. The organisation must not have projects.',
    { role: 'owner', name: 'delete', isAudited: false },
    async (call) => {
      const { database, organisation: it, records } = call;
      const page = await listMembers(database.knex, it.id, {
        perPage: 200,
        direction: 'next',
        sort: 'ASC',
      });
      found(await deleteOrganisation(database.knex, it.id), 'organisation', it.id);
      await records.forget({ users: page.content.map(({ id }) => id) });
      return { message: 'organisation deleted', data: null };
    },
  ),
  organisationList(
    '/members',
    'Lists the members of an organisation.',
    { query: object(pageQuery), title: 'members', data: Member },
    ({ database, organisation: it }, page) => listMembers(database.knex, it.id, page),
  ),
  organisationItem(
    'GET /members/:user_id',
    'Shows a member of an organisation.',
    { thing: 'member', data: Member },
    ({ database, organisation: it, params }) =>
      findMember(database.knex, it.id, params['user_id']!),
  ),
  organisationItem(
    'PUT /members/:user_id',
    'Changes the role of a member. Only an owner can grant or change the role owner.',
    {
      thing: 'member',
      role: 'admin',
      body: namedObject('ChangedMember', { role: RoleSchema }),
      data: Member,
    },
    (call) => change(call, call.body.role),
  ),
  organisationItem(
    'DELETE /members/:user_id',
    'Removes a member from an organisation. Only an owner can remove an owner.',
    { thing: 'member', message: 'member removed', role: 'admin', data: Member },
    (call) => change(call, undefined),
  ),
  organisationRoute(
    'POST /invitations',
    'Invites a person by email address. Only this response contains the token: send the person the link <server>/#invitation=<token>.',
    {
      role: 'admin',
      body: namedObject('CreateInvitation', {
        email: Type.String({ minLength: 3, maxLength: 320 }),
        role: RoleSchema,
      }),
      data: CreatedInvitation,
      status: 201,
    },
    async (call) => {
      const { database, organisation: it, body, caller, config } = call;
      if (!isEmail(body.email)) throw invalid('email', 'must be an email address');
      requireOwner(call, body.role);
      requireScopesFor(caller, null);
      const { invitations_per_organisation: max } = config.limits;
      if ((await countOpenInvitations(database.knex, it.id)) >= max)
        throw new GatewayError('conflict', {
          sentence: `the organisation has ${max} open invitations`,
          fix: 'revoke some; the operator can raise limits.invitations_per_organisation',
        });
      const row = await insertInvitation(database.knex, {
        organisationId: it.id,
        ...body,
        invitedBy: caller.type === 'process' ? null : caller.user_id,
        expiresAt: new Date(Date.now() + INVITATION_MS),
      });
      return {
        message: 'invitation created; keep the token, it is not shown again',
        data: withUid(row),
      };
    },
  ),
  organisationList(
    '/invitations',
    'Lists the invitations of an organisation, including accepted, expired and revoked ones.',
    { role: 'admin', query: object(pageQuery), title: 'invitations', data: Invitation },
    ({ database, organisation: it }, page) => listInvitations(database.knex, it.id, page),
  ),
  organisationItem(
    'DELETE /invitations/:id',
    'Revokes an open invitation.',
    {
      thing: 'open invitation',
      message: 'invitation revoked',
      role: 'admin',
      data: Invitation,
      name: 'revoke',
    },
    ({ database, organisation: it, id }) => revokeInvitation(database.knex, it.id, id),
  ),
];

async function change(call: OrganisationCall, role: Role | undefined) {
  const { database, organisation: it, params, records } = call;
  const { user_id: id = '' } = params;
  const before = await findMember(database.knex, it.id, id);
  if (!before) return undefined;
  requireOwner(call, before.role, role);
  if (role && !includes(before.role, role)) requireScopesFor(call.caller, null);
  const row = await changeMember(database.knex, it.id, id, role);
  if (row) await records.forget({ users: [id] });
  return row;
}

function requireOwner(
  { organisation: { role: mine } }: OrganisationCall,
  ...roles: readonly (Role | undefined)[]
): void {
  if (roles.includes('owner') && mine !== 'owner')
    throw new GatewayError('forbidden', {
      reason: 'only an owner can add, change or remove an owner',
    });
}
