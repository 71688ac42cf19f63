import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { deleteEndpoint, setEndpointStatus, deactivateEndpoint } from '#store/config/endpoints';
import { deleteProject, updateProject } from '#store/config/projects';
import { readChanges, readProjects, NO_CHANGE } from '#store/config/snapshot';
import { deleteSource, insertSource, updateSource } from '#store/config/sources';
import { deleteSubscription, insertSubscription } from '#store/config/subscriptions';
import { until } from '../../support/until.js';
import {
  makeEndpoint,
  makeProject,
  readConfigVersion,
  readSnapshot,
  type Snapshot,
} from '../made.js';
import { migratedDatabase } from '../migrated.js';

const snapshots = suite('store/config/snapshot');

const db = await migratedDatabase();
snapshots.after(() => db.close());

const source = {
  name: 'orders',
  type: 'pub_sub',
  pub_sub: { type: 'kafka', workers: 2, kafka: { topic_name: 'orders' } },
  body_function: 'x',
  is_disabled: false,
} as const;

async function makeAll() {
  const { id: projectId } = await makeProject(db);
  const { id: endpointId } = await makeEndpoint(db, projectId, { owner_id: `it's "mine"` });
  const subscription = await insertSubscription(db.knex, projectId, {
    name: 's',
    endpoint_id: endpointId,
    event_types: ['order.*', 'a,b'],
    filter: { body: { a: 1 } },
  });
  const { id: sourceId } = await insertSource(db.knex, projectId, source);
  return { projectId, endpointId, subscriptionId: subscription.id, sourceId };
}

function of(snapshot: Snapshot, projectId: string): string[] {
  const { projects, endpoints, subscriptions, sources } = snapshot;
  return [
    ...projects.filter(({ id }) => id === projectId),
    ...[...endpoints, ...subscriptions, ...sources].filter((row) => row.project_id === projectId),
  ].map(({ id }) => id);
}

snapshots('everything that agents need is read, field by field', async () => {
  const { projectId, endpointId, subscriptionId, sourceId } = await makeAll();
  const config = {
    strategy: { type: 'linear', duration: 5, retry_count: 2 },
    signature: { header: 'X-Hmac', hash: 'SHA512', encoding: 'base64' },
  } as const;
  await updateProject(db.knex, projectId, { config });
  const snapshot = await readSnapshot(db.pool);
  assert.equal(
    snapshot.projects.find(({ id }) => id === projectId),
    {
      ...{ id: projectId, name: 'orders', type: 'outgoing', config, shard: 'default' },
    },
  );
  const endpoint = snapshot.endpoints.find(({ id }) => id === endpointId)!;
  const [secret] = endpoint.secrets;
  assert.equal(secret?.value, 'sealed');
  assert.equal(
    { ...endpoint, secrets: [] },
    {
      project_id: projectId,
      id: endpointId,
      url: 'https://example.com/hooks',
      owner_id: `it's "mine"`,
      status: 'active',
      status_reason: null,
      secrets: [],
      authentication: null,
      mtls_client_cert: null,
      format: null,
      timeout_ms: 10_000,
      concurrency: null,
      strategy: null,
      rate_limit: null,
      rate_limit_duration: null,
      ordering: null,
      ordering_failure: null,
      ordering_park_after_seconds: null,
      signatures: null,
      signature_prefix: null,
      headers: null,
      batch: null,
    },
  );
  assert.equal(
    snapshot.subscriptions.find(({ id }) => id === subscriptionId),
    {
      project_id: projectId,
      id: subscriptionId,
      endpoint_id: endpointId,
      event_types: ['order.*', 'a,b'],
      filter: { body: { a: 1 } },
      function_version: null,
      ordering: null,
    },
  );
  assert.equal(
    snapshot.sources.find(({ id }) => id === sourceId),
    {
      project_id: projectId,
      id: sourceId,
      name: 'orders',
      pub_sub: source.pub_sub,
      body_function: 'x',
      is_disabled: false,
      keep_messages: false,
      pauses: 0,
      is_paused: false,
      pause_reason: null,
      resumes_in_ms: null,
    },
  );
});

snapshots('what is deleted is not read', async () => {
  const { projectId, endpointId, subscriptionId, sourceId } = await makeAll();
  assert.equal(of(await readSnapshot(db.pool), projectId), [
    projectId,
    endpointId,
    subscriptionId,
    sourceId,
  ]);
  await deleteSubscription(db.knex, projectId, subscriptionId);
  assert.equal(of(await readSnapshot(db.pool), projectId), [projectId, endpointId, sourceId]);
  await deleteSource(db.knex, projectId, sourceId);
  await deleteEndpoint(db.knex, projectId, endpointId);
  assert.equal(of(await readSnapshot(db.pool), projectId), [projectId]);
});

snapshots('of a deleted project nothing is read', async () => {
  const { projectId } = await makeAll();
  const other = await makeAll();
  await deleteProject(db.knex, projectId);
  const snapshot = await readSnapshot(db.pool);
  assert.equal(of(snapshot, projectId), []);
  assert.is(of(snapshot, other.projectId).length, 4);
});

snapshots(
  'every write raises the version and notifies, and a snapshot tells the version that it is of',
  async () => {
    const listener = await db.connect();
    let notified = 0;
    listener.on(
      'notification',
      ({ channel }) => (notified += channel === 'gateway_config' ? 1 : 0),
    );
    await listener.query('listen gateway_config');
    try {
      const { projectId, endpointId, subscriptionId, sourceId } = await makeAll();
      const writes = [
        () => updateProject(db.knex, projectId, { name: 'other' }),
        () => makeEndpoint(db, projectId),
        () => setEndpointStatus(db.knex, projectId, endpointId, { status: 'paused', reason: 'x' }),
        () => updateSource(db.knex, projectId, sourceId, { is_disabled: true }),
        () => deleteSubscription(db.knex, projectId, subscriptionId),
        () => deleteProject(db.knex, projectId),
      ];
      for (const write of writes) {
        const before = await readConfigVersion(db.pool);
        notified = 0;
        await write();
        const after = await readConfigVersion(db.pool);
        assert.ok(BigInt(after) > BigInt(before));
        assert.is((await readSnapshot(db.pool)).version, after);
        await until('a notification', () => notified > 0);
      }
    } finally {
      await listener.end();
    }
  },
);

snapshots(
  'an endpoint that answered 410 is deactivated with the reason, unless somebody has decided otherwise',
  async () => {
    const { projectId, endpointId } = await makeAll();
    const status = async () => {
      const { status: now, status_reason: reason } = (await readSnapshot(db.pool)).endpoints.find(
        ({ id }) => id === endpointId,
      )!;
      return [now, reason];
    };
    await deactivateEndpoint(db.pool, projectId, endpointId, 'It answered 410 Gone.');
    assert.equal(await status(), ['inactive', 'It answered 410 Gone.']);
    await setEndpointStatus(db.knex, projectId, endpointId, {
      status: 'paused',
      reason: 'By hand.',
    });
    await deactivateEndpoint(db.pool, projectId, endpointId, 'It answered 410 Gone.');
    assert.equal(await status(), ['paused', 'By hand.']);
    await deactivateEndpoint(db.pool, newId(), endpointId, 'Of another project.');
    assert.equal(await status(), ['paused', 'By hand.']);
  },
);

snapshots('a large store is read as of one moment', async () => {
  const { projectId } = await makeAll();
  await db.rows(
    `insert into endpoints (project_id, id, name, url, secrets) select $1, gen_random_uuid(), 'e' || n, 'https://example.com/' || n, '[]' from generate_series(1, 5000) n`,
    [projectId],
  );
  const snapshot = await readSnapshot(db.pool);
  assert.is(snapshot.endpoints.filter((row) => row.project_id === projectId).length, 5001);
});

snapshots(
  'a write is a change of its project alone, and a write that touches nothing is none',
  async () => {
    const [one, other] = [await makeAll(), await makeAll()];
    const place = (await readChanges(db.pool, NO_CHANGE, 1_000_000)).at(-1)!;
    const writes = [
      () => makeEndpoint(db, one.projectId),
      () => updateProject(db.knex, one.projectId, { name: 'other' }),
      () => updateSource(db.knex, one.projectId, one.sourceId, { is_disabled: true }),
      () => deleteSubscription(db.knex, one.projectId, one.subscriptionId),
      () => deleteEndpoint(db.knex, one.projectId, one.endpointId),
      () => db.rows('delete from sources where project_id = $1', [one.projectId]),
    ];
    let after = place;
    for (const write of writes) {
      await write();
      const changes = await readChanges(db.pool, after, 10);
      assert.equal(
        changes.map(({ id }) => id),
        [one.projectId],
      );
      after = changes[0]!;
    }
    await db.rows('update endpoints set name = name where id = $1', [newId()]);
    assert.equal(await readChanges(db.pool, after, 10), []);
    await db.rows('update endpoints set name = name where project_id = any ($1)', [
      [one.projectId, other.projectId],
    ]);
    // One write of two projects: pages end between projects of the same version.
    const [first] = await readChanges(db.pool, after, 1);
    const [second] = await readChanges(db.pool, first!, 1);
    assert.equal([first!.id, second!.id].sort(), [one.projectId, other.projectId].sort());
  },
);

snapshots(
  'projects are read up to a size, the first of them in any case, without its text when it alone is larger',
  async () => {
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push((await makeAll()).projectId);
    const [{ bytes } = { bytes: 0 }] = await readProjects(db.pool, ids, 1_000_000);
    const read = async (maxBytes: number) =>
      (await readProjects(db.pool, ids, maxBytes)).map(({ id, texts }) => [id, texts !== null]);
    assert.equal(
      await read(bytes * 4),
      ids.map((id) => [id, true]),
    );
    assert.equal(await read(bytes * 2 + 20), [
      [ids[0], true],
      [ids[1], true],
    ]);
    assert.equal(await read(bytes - 1), [[ids[0], false]]);
    await deleteProject(db.knex, ids[0]!);
    assert.equal((await readProjects(db.pool, ids, bytes * 4))[0], {
      id: ids[0],
      bytes: 0,
      texts: null,
    });
  },
);

snapshots(
  'a shard reads its projects, and without their sources those that move away',
  async () => {
    const { projectId, sourceId } = await makeAll();
    const read = async (shard: string | null) => {
      const [project] = await readProjects(
        db.pool,
        [projectId],
        1_000_000,
        shard === null ? null : [shard],
      );
      return (
        project?.texts &&
        project.texts.sources.map((text) => (JSON.parse(text) as { id: string }).id)
      );
    };
    await db.rows(`insert into shards (name, schema_name) values ('other', 's1')`);
    assert.equal(await read('default'), [sourceId]);
    assert.is(await read('other'), null);
    await db.rows(
      `with m as (insert into project_moves (project_id, from_shard, to_shard, phase) values ($1, 'default', 'other', 'history'))
       update projects set shard = 'other' where id = $1`,
      [projectId],
    );
    assert.equal(await read('default'), []);
    assert.equal(await read('other'), [sourceId]);
    assert.equal(await read(null), [sourceId]);
    await db.rows(`update project_moves set phase = 'done'`);
    assert.is(await read('default'), null);
  },
);

snapshots.run();
