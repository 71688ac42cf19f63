import type { Knex } from 'knex';
import { GatewayError } from '@gateway/core/errors';
import { newId } from '@gateway/core/events';
import { ROLES, type Role } from '../config/api-keys.js';
import { readRows, type PageRequest, type PageResult } from '../pagination/page.js';

export interface OrganisationRow {
  readonly id: string;
  readonly name: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type Membership = OrganisationRow & { readonly role: Role };

export interface MemberRow {
  /** The user's id. */
  readonly id: string;
  readonly email: string;
  readonly first_name: string;
  readonly last_name: string;
  readonly role: Role;
  readonly created_at: Date;
}

const COLUMNS = [
  'organisations.id',
  'organisations.name',
  'organisations.created_at',
  'organisations.updated_at',
];

/** The user becomes the owner. Two statements: pass a transaction for atomicity. */
export async function insertOrganisation(
  knex: Knex,
  { name, userId }: { name: string; userId: string },
): Promise<OrganisationRow> {
  const [row] = await knex<OrganisationRow>('organisations')
    .insert({ id: newId(), name })
    .returning('*');
  await insertMember(knex, { organisationId: row!.id, userId, role: 'owner' });
  return row!;
}

export async function updateOrganisation(
  knex: Knex,
  id: string,
  { name }: { name: string },
): Promise<OrganisationRow | undefined> {
  const rows = (await knex('organisations')
    .where({ id })
    .update({ name, updated_at: knex.fn.now() })
    .returning('*')) as OrganisationRow[];
  return rows[0];
}

/**
 * With its members, invitations, keys and audit log.
 * @throws GatewayError `conflict` while it has projects, even deleted ones
 */
export async function deleteOrganisation(knex: Knex, id: string): Promise<boolean> {
  return knex.transaction(async (trx) => {
    await trx('organisations').where({ id }).forUpdate().first('id');
    const project = await trx('projects')
      .where({ organisation_id: id })
      .orderByRaw('deleted_at is not null')
      .first<{ name: string; deleted_at: Date | null } | undefined>('name', 'deleted_at');
    if (project?.deleted_at)
      throw new GatewayError('conflict', {
        sentence: 'events of deleted projects of the organisation are still stored',
        fix: 'leave the organisation empty until the retention of its events ends',
      });
    if (project)
      throw new GatewayError('conflict', {
        sentence: `the project ${project.name} belongs to the organisation`,
        fix: 'delete its projects first',
      });
    return (await trx('organisations').where({ id }).delete()) > 0;
  });
}

/** In the order in which the user joined them. */
export function organisationsOfUser(knex: Knex, userId: string): Promise<Membership[]> {
  return knex('organisations')
    .join('organisation_members', 'organisation_members.organisation_id', 'organisations.id')
    .where('organisation_members.user_id', userId)
    .orderBy(['organisation_members.created_at', 'organisations.id'])
    .select<Membership[]>([...COLUMNS, 'organisation_members.role']);
}

/** Oldest first. */
export function listOrganisations(knex: Knex): Promise<OrganisationRow[]> {
  return knex('organisations').orderBy('id').select<OrganisationRow[]>(COLUMNS);
}

/** Postgres rejects an `id` that is not a UUID. */
export async function findOrganisation(
  knex: Knex,
  id: string,
): Promise<OrganisationRow | undefined> {
  return knex('organisations').where({ id }).first<OrganisationRow | undefined>(COLUMNS);
}

/** An existing member keeps the higher of the two roles. */
export async function insertMember(
  knex: Knex,
  { organisationId, userId, role }: { organisationId: string; userId: string; role: Role },
): Promise<void> {
  await knex('organisation_members')
    .insert({ organisation_id: organisationId, user_id: userId, role })
    .onConflict(['organisation_id', 'user_id'])
    .merge({
      role: knex.raw(
        `case when ${rank('excluded.role')} > ${rank('organisation_members.role')} then excluded.role else organisation_members.role end`,
      ),
    });
}

/** The dashboard offers the first of a member's list. */
export async function putFirst(
  knex: Knex,
  { organisationId, userId }: { organisationId: string; userId: string },
): Promise<void> {
  const first = knex.raw(
    `(select min(created_at) - interval '1 millisecond' from organisation_members where user_id = ?)`,
    [userId],
  );
  await knex('organisation_members')
    .where({ organisation_id: organisationId, user_id: userId })
    .update({ created_at: first });
}

/** Without it, Postgres would rank enum values in the order in which they were added. */
function rank(column: string): string {
  return `array_position(array['${ROLES.join("','")}'], ${column}::text)`;
}

const members = (knex: Knex, organisationId: string) =>
  knex('organisation_members')
    .join('users', 'users.id', 'organisation_members.user_id')
    .where({ organisation_id: organisationId });
const MEMBER = [
  'users.id',
  'email',
  'first_name',
  'last_name',
  'role',
  'organisation_members.created_at',
];

/** In the order of their accounts. */
export function listMembers(
  knex: Knex,
  organisationId: string,
  page: PageRequest,
): Promise<PageResult<MemberRow>> {
  return readRows(members(knex, organisationId), MEMBER, page, 'users.id');
}

export function findMember(
  knex: Knex,
  organisationId: string,
  userId: string,
): Promise<MemberRow | undefined> {
  return members(knex, organisationId)
    .where('users.id', userId)
    .first<MemberRow | undefined>(MEMBER);
}

/**
 * Without a `role`, removes the member. Locks the rows of all members, so that two owners cannot
 * remove each other.
 * @throws GatewayError `conflict` if no owner would remain
 */
export function changeMember(
  knex: Knex,
  organisationId: string,
  userId: string,
  role: Role | undefined,
): Promise<MemberRow | undefined> {
  return knex.transaction(async (trx) => {
    const all = await trx('organisation_members')
      .where({ organisation_id: organisationId })
      .orderBy('user_id')
      .forUpdate()
      .select<{ user_id: string; role: Role }[]>('user_id', 'role');
    const before = await findMember(trx, organisationId, userId);
    if (!before) return undefined;
    if (
      before.role === 'owner' &&
      role !== 'owner' &&
      !all.some((it) => it.role === 'owner' && it.user_id !== userId)
    )
      throw new GatewayError('conflict', {
        sentence: `${before.email} is the only owner of the organisation`,
        fix: 'make another member an owner first',
      });
    const row = trx('organisation_members').where({
      organisation_id: organisationId,
      user_id: userId,
    });
    if (role === undefined) await row.delete();
    else await row.update({ role });
    return role === undefined ? before : { ...before, role };
  });
}
