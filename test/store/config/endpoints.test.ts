import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import {
  deleteEndpoint,
  findEndpoint,
  listEndpoints,
  setEndpointStatus,
  updateEndpoint,
} from '#store/config/endpoints';
import { findSubscription, insertSubscription } from '#store/config/subscriptions';
import { rotateSecret } from '#store/config/secrets';
import type { PageRequest } from '#store/pagination/page';
import { makeEndpoint, makeProject, readSnapshot } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const endpoints = suite('store/config/endpoints');

const db = await migratedDatabase();
endpoints.after(() => db.close());

const first: PageRequest = { perPage: 20, direction: 'next', sort: 'ASC' };
const secret = () => ({
  id: newId(),
  value: 'sealed',
  created_at: new Date().toISOString(),
  expires_at: null,
});

endpoints('endpoints are listed by owner', async () => {
  const { id: projectId } = await makeProject(db);
  await makeEndpoint(db, projectId, { name: 'a', owner_id: 'acme' });
  await makeEndpoint(db, projectId, { name: 'b', owner_id: 'globex' });
  await makeEndpoint(db, projectId, { name: 'c' });
  const names = async (ownerId?: string) =>
    (
      await listEndpoints({ knex: db.knex, data: db.pool }, projectId, { owner_id: ownerId }, first)
    ).content.map(({ name }) => name);
  assert.equal(await names(), ['a', 'b', 'c']);
  assert.equal(await names('acme'), ['a']);
});

endpoints(
  'pages are whole and in order, sorted by name, failures or the last request',
  async () => {
    const { id: projectId } = await makeProject(db);
    const ids: string[] = [];
    // Names and failures repeat, so that the edge of a page falls between equal ones.
    for (const name of ['b', 'A', 'a', 'c', 'B', 'a', 'd'])
      ids.push((await makeEndpoint(db, projectId, { name })).id);
    const failures = [3, 0, 11, 3, 200, 3, 0];
    await db.rows(
      `insert into activity select $1, id, date_bin('10 minutes', now(), 'epoch') - k * interval '10 minutes', 'attempt', 'failure', n
     from unnest($2::uuid[], $3::int[]) with ordinality u(id, n, k) where n > 0`,
      [projectId, ids, failures],
    );
    await db.rows(
      `insert into activity select $1, $2, now() - interval '2 days', 'attempt', 'failure', 1000`,
      [projectId, ids[1]],
    );
    const walk = async (by: string, sort: 'ASC' | 'DESC', direction: 'next' | 'prev') => {
      const pages: string[][] = [];
      let request: PageRequest = { perPage: 2, direction: 'next', sort, by };
      if (direction === 'prev') {
        const all = await listEndpoints(
          { knex: db.knex, data: db.pool },
          projectId,
          {},
          { ...request, perPage: 7 },
        );
        assert.is(all.content.length, 7);
        assert.not('sort_key' in all.content[0]!);
        const { nextPageCursor: end } = await listEndpoints(
          { knex: db.knex, data: db.pool },
          projectId,
          {},
          { ...request, perPage: 6 },
        );
        request = { ...request, direction, cursor: end! };
      }
      for (let n = 0; n < 9; n++) {
        const page = await listEndpoints({ knex: db.knex, data: db.pool }, projectId, {}, request);
        pages.push(page.content.map(({ id }) => id));
        const cursor = direction === 'next' ? page.nextPageCursor : page.prevPageCursor;
        if (cursor === null) break;
        request = { ...request, cursor };
      }
      return direction === 'next' ? pages.flat() : pages.reverse().flat();
    };
    const byFailures = [1, 6, 0, 3, 5, 2, 4].map((k) => ids[k]!);
    assert.equal(await walk('failures', 'ASC', 'next'), byFailures);
    assert.equal(await walk('failures', 'DESC', 'next'), [...byFailures].reverse());
    assert.equal(await walk('failures', 'ASC', 'prev'), byFailures.slice(0, 5));
    const byName = [1, 2, 5, 0, 4, 3, 6].map((k) => ids[k]!);
    assert.equal(await walk('name', 'ASC', 'next'), byName);
    assert.equal(await walk('name', 'DESC', 'next'), [...byName].reverse());
    const byRequest = [0, 2, 3, 4, 5, 6, 1].map((k) => ids[k]!);
    assert.equal(await walk('last_request', 'DESC', 'next'), byRequest);
  },
);

endpoints('a change touches what is given, and null clears', async () => {
  const { id: projectId } = await makeProject(db);
  const { id } = await makeEndpoint(db, projectId, { owner_id: 'acme' });
  const strategy = { type: 'linear', duration: 5, retry_count: 3 } as const;
  assert.equal((await updateEndpoint(db.knex, projectId, id, { strategy }))?.strategy, strategy);
  const changed = await updateEndpoint(db.knex, projectId, id, {
    owner_id: null,
    strategy: null,
    timeout_ms: 500,
  });
  assert.equal(
    [changed?.owner_id, changed?.strategy, changed?.timeout_ms, changed?.name],
    [null, null, 500, 'shop'],
  );
});

endpoints('four secrets given at once are all kept', async () => {
  const { id: projectId } = await makeProject(db);
  const { id } = await makeEndpoint(db, projectId);
  const rotate = (endpointId: string) =>
    rotateSecret(db.knex, projectId, endpointId, secret(), 3_600_000);
  await Promise.all(Array.from({ length: 4 }, () => rotate(id)));
  assert.is((await findEndpoint(db.knex, projectId, id))?.secrets.length, 5);
  assert.is(await rotate(newId()), undefined);
});

endpoints(
  'a rotation ends the secrets that sign now, and none of them later than it would have ended',
  async () => {
    const { id: projectId } = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId);
    const rotate = async (overlapMs: number) =>
      (await rotateSecret(db.knex, projectId, id, secret(), overlapMs))!.secrets.map(
        ({ expires_at }) => expires_at,
      );
    const [fresh, first] = await rotate(60_000);
    assert.equal([fresh, typeof first], [null, 'string']);
    const [, second, stillFirst] = await rotate(3_600_000);
    assert.is(stillFirst, first, 'the longer overlap is that of the second');
    assert.ok(new Date(second!) > new Date(first!));
    const [, third, sooner, same] = await rotate(120_000);
    assert.equal([sooner, same], [third, first], 'a shorter one shortens it');
  },
);

endpoints('a deleted endpoint gets no secret', async () => {
  const { id: projectId } = await makeProject(db);
  const { id } = await makeEndpoint(db, projectId);
  await deleteEndpoint(db.knex, projectId, id);
  assert.is(await rotateSecret(db.knex, projectId, id, secret(), 0), undefined);
});

endpoints(
  'a deleted endpoint takes its subscriptions with it and leaves the snapshot of the agents',
  async () => {
    const { id: projectId } = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId);
    const subscription = await insertSubscription(db.knex, projectId, {
      name: 's',
      endpoint_id: id,
      event_types: ['*'],
      filter: null,
    });
    const inSnapshot = async () =>
      (await readSnapshot(db.pool)).endpoints.some((it) => it.id === id);
    assert.is(await inSnapshot(), true);
    assert.is(await deleteEndpoint(db.knex, projectId, id), true);
    assert.is(await deleteEndpoint(db.knex, projectId, id), false);
    assert.is(await findEndpoint(db.knex, projectId, id), undefined);
    assert.is(await findSubscription(db.knex, projectId, subscription.id), undefined);
    assert.is(await inSnapshot(), false);
    assert.is(
      await setEndpointStatus(db.knex, projectId, id, { status: 'active', reason: null }),
      undefined,
    );
  },
);

endpoints.run();
