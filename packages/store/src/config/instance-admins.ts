import type { Knex } from 'knex';

/** Whether a user may see what belongs to the instance: its settings, plugins, licence and health. False for an unknown user. */
export async function isInstanceAdmin(knex: Knex, userId: string): Promise<boolean> {
  return (await knex('users').where({ id: userId, is_instance_admin: true }).first('id')) !== undefined;
}
