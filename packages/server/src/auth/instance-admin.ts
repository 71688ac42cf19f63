import { GatewayError } from '@gateway/core/errors';
import { isInstanceAdmin } from '@gateway/store/people';
import type { Database } from '@gateway/store/postgres';
import type { Caller } from './caller.js';

/**
 * Throws `forbidden` unless the caller is a process credential or acts for an instance admin. Not
 * cached: such requests are rare.
 */
export async function requireInstanceAdmin(
  caller: Caller,
  { database }: { readonly database: Pick<Database, 'knex'> },
): Promise<void> {
  if (caller.type === 'process') return;
  const isUser = caller.type === 'personal' || caller.type === 'session';
  // A key with a role can have fewer rights than its user.
  if (isUser && caller.role === null && (await isInstanceAdmin(database.knex, caller.user_id)))
    return;
  throw new GatewayError('forbidden', {
    reason:
      'this is about the whole instance: it takes a credential of the process, or the personal key of an instance admin, whom `gateway bootstrap` makes',
  });
}
