import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import {
  changeSecrets,
  deleteEndpoint,
  findEndpoint,
  listEndpoints,
  ownerExists,
  setEndpointStatus,
  updateEndpoint,
} from '#store/config/endpoints';
import { readSnapshot } from '#store/config/snapshot';
import { findSubscription, insertSubscription } from '#store/config/subscriptions';
import type { PageRequest } from '#store/pagination/page';
import { makeEndpoint, makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const endpoints = suite('store/config/endpoints');

const db = await migratedDatabase();
endpoints.after(() => db.close());

const first: PageRequest = { perPage: 20, direction: 'next', sort: 'ASC' };
const secret = () => ({ id: newId(), value: 'sealed', created_at: new Date().toISOString(), expires_at: null });

endpoints('endpoints are listed by owner', async () => {
  const { id: projectId } = await makeProject(db);
  await makeEndpoint(db, projectId, { name: 'a', owner_id: 'acme' });
  await makeEndpoint(db, projectId, { name: 'b', owner_id: 'globex' });
  await makeEndpoint(db, projectId, { name: 'c' });
  const names = async (ownerId?: string) => (await listEndpoints(db.knex, projectId, { ownerId }, first)).content.map(({ name }) => name);
  assert.equal(await names(), ['a', 'b', 'c']);
  assert.equal(await names('acme'), ['a']);
  assert.equal([await ownerExists(db.knex, projectId, 'globex'), await ownerExists(db.knex, projectId, 'nobody')], [true, false]);
});

endpoints('a change touches what is given, and null clears', async () => {
  const { id: projectId } = await makeProject(db);
  const { id } = await makeEndpoint(db, projectId, { owner_id: 'acme' });
  const strategy = { type: 'linear', duration: 5, retry_count: 3 } as const;
  assert.equal((await updateEndpoint(db.knex, projectId, id, { strategy }))?.strategy, strategy);
  const changed = await updateEndpoint(db.knex, projectId, id, { owner_id: null, strategy: null, timeout_ms: 500 });
  assert.equal([changed?.owner_id, changed?.strategy, changed?.timeout_ms, changed?.name], [null, null, 500, 'shop']);
});

endpoints('ten secrets given at once are all kept', async () => {
  const { id: projectId } = await makeProject(db);
  const { id } = await makeEndpoint(db, projectId);
  await Promise.all(Array.from({ length: 10 }, () => changeSecrets(db.knex, projectId, id, (present) => [secret(), ...present])));
  assert.is((await findEndpoint(db.knex, projectId, id))?.secrets.length, 11);
  assert.is(await changeSecrets(db.knex, projectId, newId(), () => []), undefined);
});

endpoints('the secrets of a deleted endpoint are not asked for, and stay', async () => {
  const { id: projectId } = await makeProject(db);
  const { id } = await makeEndpoint(db, projectId);
  await deleteEndpoint(db.knex, projectId, id);
  let asked = 0;
  assert.is(await changeSecrets(db.knex, projectId, id, (present) => (asked++, present)), undefined);
  assert.is(asked, 0);
});

endpoints('a deleted endpoint takes its subscriptions with it and leaves the snapshot of the agents', async () => {
  const { id: projectId } = await makeProject(db);
  const { id } = await makeEndpoint(db, projectId);
  const subscription = await insertSubscription(db.knex, projectId, { name: 's', endpoint_id: id, event_types: ['*'], filter: null });
  const inSnapshot = async () => (await readSnapshot(db.pool)).endpoints.some((it) => it.id === id);
  assert.is(await inSnapshot(), true);
  assert.is(await deleteEndpoint(db.knex, projectId, id), true);
  assert.is(await deleteEndpoint(db.knex, projectId, id), false);
  assert.is(await findEndpoint(db.knex, projectId, id), undefined);
  assert.is(await findSubscription(db.knex, projectId, subscription.id), undefined);
  assert.is(await inSnapshot(), false);
  assert.is(await setEndpointStatus(db.knex, projectId, id, { status: 'active', reason: null }), undefined);
});

endpoints.run();
