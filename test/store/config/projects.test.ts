import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { maskOfApiKey } from '#core/crypto/api-keys';
import { newId } from '#core/events/ids';
import { findApiKey, insertApiKey } from '#store/config/api-keys';
import {
  deleteProject,
  findProject,
  insertProject,
  listProjects,
  updateProject,
} from '#store/config/projects';
import { makeProject, readConfigVersion } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const projects = suite('store/config/projects');

const db = await migratedDatabase();
projects.after(() => db.close());

projects(
  'a project is listed among those of its organisation, changed, and gone when deleted',
  async () => {
    const made = await makeProject(db);
    await makeProject(db);
    const list = async () =>
      (
        await listProjects(
          db.knex,
          { organisationIds: [made.organisation_id] },
          {
            perPage: 10,
            direction: 'next',
            sort: 'ASC',
          },
        )
      ).content;
    const second = await insertProject(db.knex, made.organisation_id, {
      name: 'refunds',
      type: 'incoming',
      config: {},
    });
    assert.equal(
      (await list()).map(({ name }) => name),
      ['orders', 'refunds'],
    );
    const changed = await updateProject(db.knex, second.id, { name: 'returns' });
    assert.equal([changed?.name, changed?.type], ['returns', 'incoming']);
    assert.ok(changed!.updated_at >= second.updated_at);
    assert.is(await deleteProject(db.knex, second.id), true);
    assert.is(await deleteProject(db.knex, second.id), false);
    assert.is(await findProject(db.knex, second.id), undefined);
    assert.is(await updateProject(db.knex, second.id, { name: 'x' }), undefined);
    assert.equal(
      (await list()).map(({ name }) => name),
      ['orders'],
    );
  },
);

projects('deleting a project revokes its keys', async () => {
  const { id, organisation_id: organisationId } = await makeProject(db);
  const { key } = await insertApiKey(db.knex, {
    type: 'project',
    name: 'k',
    organisationId,
    projectId: id,
  });
  const mask = maskOfApiKey(key) ?? '';
  assert.is((await findApiKey(db.knex, mask))?.revoked_at, null);
  await deleteProject(db.knex, id);
  assert.instance((await findApiKey(db.knex, mask))?.revoked_at, Date);
});

projects('every write raises the version that agents compare', async () => {
  const before = BigInt(await readConfigVersion(db.pool));
  const { id } = await makeProject(db);
  await updateProject(db.knex, id, { config: {} });
  await deleteProject(db.knex, id);
  assert.is(BigInt(await readConfigVersion(db.pool)), before + 3n);
});

projects('an unknown project is not found', async () => {
  assert.is(await findProject(db.knex, newId()), undefined);
});

projects.run();
