import { randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { deleteEndedKeys, findApiKey, insertApiKey, recordKeyUse } from '#store/config/api-keys';
import { insertAuditEntries, listAuditLog } from '#store/people/audit-log';
import { insertOrganisation } from '#store/people/organisations';
import { insertUser } from '#store/people/users';
import { maintainControlPlane } from '#store/retention/maintenance';
import { migratedDatabase } from '../migrated.js';

const auditLog = suite('store/people/audit-log');
const db = await migratedDatabase();
auditLog.after(() => db.close());

async function scene() {
  const user = await insertUser(db.knex, {
    email: `${randomUUID()}@example.com`,
    first_name: '',
    last_name: '',
    passwordHash: '',
  });
  return {
    user,
    organisation: await insertOrganisation(db.knex, { name: 'Acme', userId: user.id }),
  };
}

auditLog('entries older than retention.audit_days are deleted, the others stay', async () => {
  const { user, organisation } = await scene();
  const entry = {
    organisation_id: organisation.id,
    project_id: null,
    actor_type: 'user',
    actor_id: user.id,
    key_id: null,
    resource_id: null,
    changes: '{}',
    address: null,
    request_id: randomUUID(),
  } as const;
  await insertAuditEntries(db.knex, [
    { ...entry, action: 'endpoints.create' },
    { ...entry, action: 'endpoints.update' },
  ]);
  await db.rows(
    `update audit_log set id = '01000000-0000-7000-8000-000000000000' where action = 'endpoints.create'`,
  );
  const actions = async () =>
    (
      await listAuditLog(
        db.knex,
        organisation.id,
        {},
        { perPage: 10, direction: 'next', sort: 'ASC' },
      )
    ).content.map(({ action }) => action);
  await maintainControlPlane(db.pool, 36_500);
  assert.equal(await actions(), ['endpoints.create', 'endpoints.update']);
  await maintainControlPlane(db.pool, 1);
  assert.equal(await actions(), ['endpoints.update']);
});

auditLog(
  'ended sessions are deleted a day later, and the last use of a key is recorded',
  async () => {
    const { user } = await scene();
    const make = (expiresAt: Date) =>
      insertApiKey(db.knex, { type: 'session', name: 'browser', userId: user.id, expiresAt });
    const [old, recent] = [
      await make(new Date(Date.now() - 2 * 86_400_000)),
      await make(new Date(Date.now() - 60_000)),
    ];
    const at = new Date('2026-11-21T09:00:00Z');
    await recordKeyUse(db.pool, new Map([[recent.id, at]]));
    await recordKeyUse(db.pool, new Map([[recent.id, new Date(0)]]));
    await deleteEndedKeys(db.pool);
    assert.is(await findApiKey(db.knex, old.mask), undefined);
    assert.equal((await findApiKey(db.knex, recent.mask))?.row.last_used_at, at);
  },
);

auditLog.run();
