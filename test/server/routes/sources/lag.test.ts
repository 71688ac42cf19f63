import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { registerAgent } from '#store/deliveries/agents';
import { insertSource, updateSource } from '#store/config/sources';
import { writeSourceLag } from '#store/kv/source-lags';
import { makeProject, startApi, type Api } from '../../api.js';

const lag = suite('server/routes/sources/lag');

let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
lag.before(async () => {
  api = await startApi();
  project = await makeProject(api);
});
lag.after(() => api.close());

lag('the lag of a source is what agents have reported lately, or why it is not known', async () => {
  const fields = {
    name: 'orders',
    type: 'pub_sub',
    pub_sub: { type: 'kafka' },
    body_function: null,
    is_disabled: false,
  } as const;
  const { id } = await insertSource(api.db.knex, project.id, fields);
  const shown = async () => (await api.call('GET', `${project.path}/sources/${id}/lag`)).body.data;
  const none = await shown();
  assert.equal(
    [none.uid, none.messages, none.partitions, none.partition_count, none.reported_at],
    [id, null, [], 0, null],
  );
  assert.is(none.reason, 'No agent that reads sources is running.');

  const agentId = await registerAgent(api.db.pool, 'one', 60_000);
  assert.match((await shown()).reason, /^No agent has reported a lag within 30 seconds\./);
  await writeSourceLag(api.kv, { sourceId: id, agentId }, [
    { partition: '0', messages: 3, position: '4', end: '7' },
    { partition: '1', messages: 9, position: null, end: null },
  ]);
  const known = await shown();
  assert.equal([known.messages, known.partition_count, known.reason], [12, 2, null]);
  assert.equal(known.partitions, [
    { partition: '1', messages: 9, position: null, end: null },
    { partition: '0', messages: 3, position: '4', end: '7' },
  ]);
  assert.ok(Math.abs(Date.parse(known.reported_at) - Date.now()) < 10_000);

  const { get } = api.kv;
  api.kv.get = () => Promise.reject(new Error('away'));
  assert.is((await shown()).reason, 'KV, where agents report the lag, is unavailable.');
  api.kv.get = get;
  await updateSource(api.db.knex, project.id, id, { is_disabled: true });
  await api.db.rows('delete from agents');
  assert.is((await shown()).reason, 'The source is disabled, so agents do not query its broker.');
  const other = await makeProject(api, { name: 'other' });
  assert.is((await api.call('GET', `${other.path}/sources/${id}/lag`)).status, 404);
});

lag.run();
