import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { insertSource, updateSource } from '#store/config/sources';
import { registerAgent } from '#store/deliveries/agents';
import { writeSourceState } from '#store/kv/source-states';
import { makeProject, startApi, type Api } from '../../api.js';

const states = suite('server/routes/sources/states');

let api: Api;
states.before(async () => {
  api = await startApi();
});
states.after(() => api.close());

states('each source is active, or says why not', async () => {
  const project = await makeProject(api);
  const fields = {
    type: 'pub_sub',
    pub_sub: { type: 'kafka', kafka: {} },
    body_function: null,
    is_disabled: false,
  } as const;
  const ids: string[] = [];
  for (const name of ['orders', 'returns', 'paused', 'off'])
    ids.push((await insertSource(api.db.knex, project.id, { ...fields, name })).id);
  const [orders = '', returns = '', paused = '', off = ''] = ids;
  await api.call('POST', `${project.path}/sources/${paused}/pause`);
  await updateSource(api.db.knex, project.id, off, { is_disabled: true });
  const http = (await api.call('POST', `${project.path}/sources`, { name: 'hooks', type: 'http' }))
    .body.data.uid as string;
  const shown = async () => {
    const { content } = (await api.call('GET', `${project.path}/sources/states`)).body.data as {
      content: { uid: string; state: string; reason: string | null; messages: number | null }[];
    };
    return new Map(
      content.map(({ uid, state, reason, messages }) => [uid, [state, reason, messages]]),
    );
  };
  const before = await shown();
  assert.equal(before.get(orders), ['unknown', 'No agent that reads sources is running.', null]);
  assert.equal(before.get(paused), [
    'paused',
    'The source was paused over the management API.',
    null,
  ]);
  assert.equal(before.get(off), ['disabled', 'The source is disabled.', null]);
  assert.equal(before.get(http), ['active', null, null]);

  const agentId = await registerAgent(api.db.pool, 'one', 60_000);
  await writeSourceState(
    api.kv,
    { projectId: project.id, sourceId: orders, agentId },
    { state: 'reading', reason: null, sinceMs: 1, messages: 12 },
  );
  await writeSourceState(
    api.kv,
    { projectId: project.id, sourceId: returns, agentId },
    { state: 'failing', reason: 'The password is wrong.', sinceMs: 1, messages: null },
  );
  const known = await shown();
  assert.equal(known.get(orders), ['active', null, 12]);
  assert.equal(known.get(returns), ['failing', 'The password is wrong.', null]);
  const other = await makeProject(api, { name: 'other' });
  assert.equal((await api.call('GET', `${other.path}/sources/states`)).body.data, { content: [] });
});

states.run();
