import type { Knex } from 'knex';
import { newId } from '@gateway/core/events';

export interface OrganisationRow {
  readonly id: string;
  readonly name: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const COLUMNS = ['organisations.id', 'organisations.name', 'organisations.created_at', 'organisations.updated_at'];

/** Makes an organisation with its first member, who administers it. Call it in a transaction. */
export async function insertOrganisation(knex: Knex, { name, userId }: { name: string; userId: string }): Promise<OrganisationRow> {
  const [row] = await knex<OrganisationRow>('organisations')
    .insert({ id: newId(), name })
    .returning(['id', 'name', 'created_at', 'updated_at']);
  await knex('organisation_members').insert({ organisation_id: row!.id, user_id: userId, role: 'admin' });
  return row!;
}

/** The organisations that a user is a member of, oldest first. */
export function organisationsOfUser(knex: Knex, userId: string): Promise<OrganisationRow[]> {
  return knex('organisations')
    .join('organisation_members', 'organisation_members.organisation_id', 'organisations.id')
    .where('organisation_members.user_id', userId)
    .orderBy('organisations.id')
    .select<OrganisationRow[]>(COLUMNS);
}

/** All organisations, oldest first. */
export function listOrganisations(knex: Knex): Promise<OrganisationRow[]> {
  return knex('organisations').orderBy('id').select<OrganisationRow[]>(COLUMNS);
}

/** True when there is an organisation with this id. */
export async function organisationExists(knex: Knex, id: string): Promise<boolean> {
  return (await knex('organisations').where({ id }).first('id')) !== undefined;
}
