import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { registerAgent } from '#store/deliveries/agents';
import { openUrl } from '../../store/migrated.js';
import { database } from '../../support/database.js';
import { makeProject, mistakes, startApi, type Api } from '../api.js';

const shards = suite('server/routes/shards');

const PROCESS_KEY = 'process-key-0123456789';
const second = await database();
let api: Api;
shards.before(async () => {
  api = await startApi({ file: { server: { auth: { api_keys: [PROCESS_KEY] } } } });
});
shards.after(async () => {
  await api.close();
  await second.close();
});

const { host, port, username, database: name } = second.connection;
const big = { name: 'big', address: { host, port, username, database: name, password: 'secret' } };
const listed = async () =>
  (await api.call('GET', '/shards')).body.data.content as { name: string; projects: number }[];

shards('they are for process credentials and instance admins', async () => {
  const project = await makeProject(api);
  for (const [method, path, body] of [
    ['GET', '/shards'],
    ['GET', '/shards/default'],
    ['POST', '/shards', big],
    ['PUT', '/shards/default', { is_draining: true }],
    ['DELETE', '/shards/default'],
  ] as const)
    assert.is((await api.call(method, path, body, { key: project.key })).status, 403, path);
  assert.is((await api.call('GET', '/shards', undefined, { key: PROCESS_KEY })).status, 200);
});

shards('a shard is added, and wrong places are refused', async () => {
  const { status, body, text } = await api.call('POST', '/shards', big);
  assert.is(status, 201, text);
  const { created_at, bytes, ...shown } = body.data;
  assert.ok(bytes > 0 && created_at);
  assert.equal(shown, {
    ...{ name: 'big', host, port, database: name, schema: null, is_citus: false },
    ...{ is_draining: false, state: 'ready', reason: null, projects: 0, moves: [] },
    events_per_day: 0,
  });
  assert.is((await api.call('POST', '/shards', { ...big, name: 'other' })).status, 409);
  assert.is((await api.call('POST', '/shards', { name: 'nowhere' })).status, 400);
  assert.is((await api.call('POST', '/shards', { name: 'Odd', schema: 'odd' })).status, 422);
  const away = { ...big, name: 'away', address: { ...big.address, port: 1 } };
  assert.is((await api.call('POST', '/shards', away)).body.code, 'shard_unusable');
  const unreadable = { ...away, address: { ...big.address, host: '\u0095\u00cb' } };
  assert.is((await api.call('POST', '/shards', unreadable)).body.code, 'shard_unusable');
  assert.equal(
    (await listed()).map((it) => it.name),
    ['default', 'big'],
  );
  const [entry] = await api.db.rows<{ changes: string }>(
    `select changes::text from audit_log where action = 'shards.create'`,
  );
  assert.match(entry!.changes, '"big"');
  assert.not.match(entry!.changes, 'secret');
});

shards('a new project gets the ready shard with the fewest events, then projects', async () => {
  const create = async (fields: object = {}) =>
    (await api.call('POST', '/projects', { name: 'new', ...fields })).body.data.shard as string;
  assert.is(await create(), 'big', 'there is a project on the default shard');
  await second.rows(
    `insert into activity select gen_random_uuid(), '00000000-0000-0000-0000-000000000000', now(), 'event', 'processed', 7`,
  );
  assert.is(await create(), 'default');
  assert.is(await create({ shard: 'big' }), 'big');
  const [{ uid }] = (await api.call('GET', '/projects')).body.data.content;
  assert.ok((await api.call('GET', `/projects/${uid}`)).body.data.shard);
  await api.db.rows(`update shards set port = 1 where name = 'big'`);
  await api.call('PUT', '/shards/default', { is_draining: true });
  assert.is(await create(), 'default', 'no shard is ready that takes projects');
  assert.is(
    (await api.call('POST', '/projects', { name: 'new', shard: 'big' })).body.code,
    'shard_unusable',
  );
  assert.equal(
    (await api.call('GET', '/shards/big')).body.data.reason,
    `Postgres at ${host}:1 cannot be reached: nothing listens there`,
  );
  await api.db.rows(`update shards set port = $1 where name = 'big'`, [port]);
  await api.call('PUT', '/shards/default', { is_draining: false });
  await api.db.rows('update users set is_instance_admin = false');
  assert.is((await api.call('POST', '/projects', { name: 'new', shard: 'big' })).status, 403);
  await api.db.rows('update users set is_instance_admin = true');
});

shards(
  'the address of a shard is changed, part by part, and only to where its tables are',
  async () => {
    const changed = (address: object) => api.call('PUT', '/shards/big', { address });
    assert.is((await changed({ port: 1, password: 'secret' })).body.code, 'shard_unusable');
    for (const moved of [{ port: 1 }, { host: '127.0.0.2' }, { options: 'sslmode=disable' }])
      assert.match(
        mistakes(await changed(moved)).join(),
        'address.password is not sent to another',
      );
    assert.is((await changed({ database: 'postgres' })).body.code, 'conflict');
    assert.is(
      (await api.call('PUT', '/shards/default', { address: { port } })).body.code,
      'conflict',
    );
    assert.is((await changed({ port: 70_000 })).status, 422);
    const { status, body, text } = await changed({ host: 'localhost', password: 'new' });
    assert.is(status, 200, text);
    assert.equal([body.data.host, body.data.state], ['localhost', 'ready']);
    assert.not.match(text, 'new');
    const [row] = await api.db.rows<{ password: string }>(
      `select password from shards where name = 'big'`,
    );
    assert.match(row!.password, 'sealed:');
    assert.is((await changed({ host, password: 'secret' })).status, 200);
  },
);

shards('wrong options of a connection are refused, with their place', async () => {
  const { length } = await listed();
  for (const [options, mistake] of [
    ['0', /address\.options must be a list of <name>=<value>/],
    ['sslmode=on', /address\.options has sslmode of "on"/],
    ['a=%', /address\.options holds a "%"/],
  ] as const) {
    const added = { ...big, name: 'odd', address: { ...big.address, options } };
    for (const answer of [
      await api.call('POST', '/shards', added),
      await api.call('PUT', '/shards/big', { address: { options, password: 'secret' } }),
    ]) {
      assert.is(answer.status, 422, answer.text);
      assert.match(mistakes(answer).join(), mistake);
    }
  }
  const options = 'sslmode=verify-full&sslrootcert=/nowhere';
  const address = { ...big.address, options };
  for (const answer of [
    await api.call('POST', '/shards', { ...big, name: 'odd', address }),
    await api.call('PUT', '/shards/big', { address: { options, password: 'secret' } }),
  ])
    assert.equal([answer.status, answer.body.code], [409, 'shard_unusable']);
  assert.is((await listed()).length, length);
});

shards('a project is moved, and the shard shows how far its history is', async () => {
  const { uid, shard } = (await api.call('POST', '/projects', { name: 'moved' })).body.data;
  const to = shard === 'big' ? 'default' : 'big';
  const shown = async (name: string) =>
    (await api.call('GET', `/shards/${name}`)).body.data as { projects: number; moves: object[] };
  const [from, into] = [await shown(shard), await shown(to)];
  const move = (name: string, id: string) => api.call('PUT', `/shards/${name}/projects/${id}`);
  assert.is((await move('none', uid)).status, 404);
  assert.is((await move(to, newId())).status, 404);
  assert.is((await move(to, uid)).body.data.name, to);
  assert.is((await api.call('GET', `/projects/${uid}`)).body.data.shard, to);
  assert.is((await shown(shard)).projects, from.projects - 1);
  const { projects, moves } = await shown(to);
  assert.is(projects, into.projects + 1);
  const [{ begun_at: at, ...state }] = moves as [{ begun_at: string }];
  assert.ok(at);
  assert.equal(state, {
    ...{ project_id: uid, from: shard, to, phase: 'history', error: null },
    ...{ events_left: null, copied_to: null, seconds_left: null },
  });
  const { findings } = (await api.call('GET', `/projects/${uid}/health`)).body.data;
  const finding = (findings as { code: string; sentence: string }[]).find(
    ({ code }) => code === 'project_moving',
  );
  assert.match(finding!.sentence, `Earlier events are still on the shard ${shard}, are not listed`);
  const back = await move(shard, uid);
  assert.equal([back.status, back.body.code], [409, 'conflict']);
  await api.call('DELETE', `/projects/${uid}`);
  await api.db.rows('delete from project_moves');
});

shards('agents of all shards are listed', async () => {
  const opened = openUrl(second.url);
  try {
    await registerAgent(opened.pool, 'far', 60_000);
    const { agents } = (await api.call('GET', '/instance/health')).body.data;
    assert.equal(
      agents.map((it: { name: string; shard: string }) => [it.name, it.shard]),
      [['far', 'big']],
    );
  } finally {
    await opened.close();
  }
});

shards('a shard is drained, and removed when no project uses it', async () => {
  assert.ok((await api.call('PUT', '/shards/big', { is_draining: true })).body.data.is_draining);
  assert.is((await api.call('PUT', '/shards/default', { is_draining: true })).status, 409);
  assert.is((await api.call('PUT', '/shards/none', { is_draining: true })).status, 404);
  assert.is((await api.call('DELETE', '/shards/big')).status, 409);
  await api.db.rows(`update projects set shard = 'default'`);
  assert.is((await api.call('DELETE', '/shards/big')).status, 200);
  assert.is((await api.call('GET', '/shards/big')).status, 404);
  assert.is((await api.call('PATCH', '/shards/big')).status, 405);
});

shards.run();
