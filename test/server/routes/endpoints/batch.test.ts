import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeProject, mistakes, startApi, type Api } from '../../api.js';

const endpoints = suite('server/routes/endpoints/batch');

let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
endpoints.before(async () => {
  api = await startApi({});
  project = await makeProject(api);
});
endpoints.after(() => api.close());

const batch = { max_events: 50, max_bytes: 100_000, max_wait_ms: 500 };
const create = (fields: object) =>
  api.call('POST', `${project.path}/endpoints`, {
    name: 'shop',
    url: 'https://example.com/hooks',
    ...fields,
  });
const put = (uid: string, fields: object) =>
  api.call('PUT', `${project.path}/endpoints/${uid}`, fields);

endpoints('an endpoint has batches, changes them and ends them', async () => {
  const made = await create({ batch });
  assert.equal(made.body.data.batch, batch);
  const { uid } = made.body.data as { uid: string };
  const changed = await put(uid, { batch: { ...batch, max_wait_ms: 0 } });
  assert.is(changed.body.data.batch.max_wait_ms, 0);
  assert.is((await put(uid, { batch: null })).body.data.batch, null);
});

endpoints('batches beyond the limits, ordered or in a format of others are refused', async () => {
  const beyond = await create({ batch: { max_events: 101, max_bytes: 1, max_wait_ms: 60_001 } });
  assert.is(beyond.status, 422);
  assert.is(mistakes(beyond).length, 3);
  const format = mistakes(await create({ batch, format: 'pagerduty' }));
  assert.match(format.join(), 'batch cannot be combined with the format pagerduty');
  const { uid } = (await create({ ordering: 'message.key' })).body.data as { uid: string };
  assert.match(mistakes(await put(uid, { batch })).join(), 'set ordering or batch to null');
  assert.is((await put(uid, { batch, ordering: null })).status, 200);
  assert.match(mistakes(await put(uid, { ordering: 'message.key' })).join(), 'batch cannot');
});

endpoints.run();
