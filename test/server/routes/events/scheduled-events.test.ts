import { startAgent } from '@gateway/agent';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { timeOfId } from '#core/events/ids';
import { silentLog } from '#core/logging/log';
import { claimScheduled } from '#store/config/scheduled-events';
import { blocksOf, runBlocks } from '../../../docs/page.js';
import { endpoint } from '../../../support/endpoint.js';
import { tempFolder } from '../../../support/start/keep.js';
import { until } from '../../../support/until.js';
import { activated, configOf, makeProject, mistakes, startApi } from '../../api.js';

const scheduled = suite('server/routes/events/scheduled-events');

const file = {
  kv: { type: 'in-memory' },
  delivery: { allowed_networks: ['127.0.0.0/8'] },
  limits: { scheduled_events_per_project: 5 },
};
const api = await startApi({ file });
const inbox = await endpoint();
const project = await makeProject(api);
const made = await api.call('POST', `${project.path}/endpoints`, { name: 'shop', url: inbox.url });
const endpointId = made.body.data.uid as string;
scheduled.after(async () => {
  await api.close();
  await inbox.close();
});

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const DAY = 86_400_000;
const post = (fields: object) =>
  api.call('POST', `${project.path}/events`, {
    endpoint_id: endpointId,
    event_type: 'order.due',
    data: { n: 1 },
    ...fields,
  });
const at = `${project.path}/scheduled-events`;
const list = async () =>
  (await api.call('GET', at)).body.data.content as { uid: string; deliver_at: string }[];
const cancelAll = async () => {
  for (const { uid } of await list()) await api.call('DELETE', `${at}/${uid}`);
};
const agent = () =>
  activated().then((plugins) =>
    startAgent({
      config: configOf(api.db, {
        ...file,
        server: { http: { port: 0, agent_port: 0, bind: '127.0.0.1' } },
      }),
      plugins,
      log: silentLog,
      kv: api.kv,
    }),
  );

scheduled('an event is listed, shown, moved and cancelled until it is due', async () => {
  const deliver_at = inMs(30 * DAY);
  const created = await post({ deliver_at, idempotency_key: 'k1', data: { price: 1.0 } });
  assert.is(created.status, 201, created.text);
  assert.is(created.body.message, 'event scheduled');
  assert.is(created.body.data.deliver_at, deliver_at);
  const { uid } = created.body.data;
  assert.is(timeOfId(uid), Date.parse(deliver_at));
  const again = await post({ deliver_at, idempotency_key: 'k1' });
  assert.equal([again.status, again.body.data], [200, { uid, duplicate: true }]);
  assert.equal(
    (await list()).map((it) => it.uid),
    [uid],
  );
  assert.is((await api.call('GET', `${at}/${uid}`)).body.data.event_type, 'order.due');
  for (const path of [`events/${uid}`, `events/${uid}/explain`]) {
    const absent = await api.call('GET', `${project.path}/${path}`);
    assert.is(absent.status, 404);
    assert.match(absent.body.fix!, `it is scheduled for ${deliver_at}`);
  }
  const later = inMs(60 * DAY);
  const moved = await api.call('PUT', `${at}/${uid}`, { deliver_at: later });
  assert.is(moved.status, 200, moved.text);
  assert.is(moved.body.data.deliver_at, later);
  assert.is((await api.call('DELETE', `${at}/${uid}`)).status, 404);
  assert.is((await api.call('DELETE', `${at}/${moved.body.data.uid as string}`)).status, 200);
  assert.equal(await list(), []);
});

scheduled('times are checked, and a time in the past is now', async () => {
  for (const [deliver_at, sentence] of [
    [inMs(91 * DAY), 'deliver_at is more than 90 days ahead'],
    ['2026-12-24', 'deliver_at must be a time with a zone, such as 2026-12-24T08:00:00Z'],
    ['2026-13-24T08:00:00Z', 'deliver_at must be a time with a zone'],
  ] as const)
    assert.match(mistakes(await post({ deliver_at }))[0]!, sentence);
  const past = await post({ deliver_at: inMs(-1000) });
  assert.equal([past.status, past.body.message], [201, 'event created']);
  const unknown = await post({ deliver_at: inMs(DAY), endpoint_id: project.id });
  assert.match(mistakes(unknown)[0]!, 'is not an endpoint of this project');
});

scheduled('a project has a limited number of them', async () => {
  for (let k = 0; k < 5; k++) assert.is((await post({ deliver_at: inMs(DAY) })).status, 201);
  const full = await post({ deliver_at: inMs(DAY) });
  assert.is(full.status, 422);
  assert.is(full.body.code, 'project_full');
  await cancelAll();
});

scheduled('a due event is delivered once, in its bytes, also after an agent has died', async () => {
  const before = inbox.requests.length;
  const { body } = await post({ deliver_at: inMs(1500) });
  const batch = await api.call('POST', `${project.path}/events/batch`, {
    events: [{ endpoint_id: endpointId, event_type: 'b', data: {}, deliver_at: inMs(1500) }],
  });
  assert.ok(batch.body.data.content[0].deliver_at);
  const { uid } = body.data;
  const shard = (await api.db.rows<{ shard: string }>('select shard from projects'))[0]!.shard;
  const claimed = await until('a claim', async () => {
    const { events } = await claimScheduled(api.db.pool, [shard]);
    return events.length > 0 && events;
  });
  assert.is(claimed[0]!.data, '{"n":1}');
  for (const method of ['PUT', 'DELETE']) {
    const late = await api.call(method, `${at}/${uid as string}`, { deliver_at: inMs(DAY) });
    assert.is(late.status, 409, method);
  }
  // The agent that claimed them has died, and a minute has passed.
  await api.db.rows('update scheduled_events set due_at = now()');
  const agents = await Promise.all([agent(), agent()]);
  try {
    await until('no scheduled event', async () => (await list()).length === 0);
    await until('both', () => inbox.requests.length >= before + 2);
    const event = await api.call('GET', `${project.path}/events/${uid as string}`);
    assert.is(event.status, 200);
    const repeated = await post({ deliver_at: inMs(300), idempotency_key: 'once' });
    assert.is((await post({ idempotency_key: 'once' })).status, 201);
    await until('it is gone', async () => (await list()).length === 0);
    const twice = await api.call(
      'GET',
      `${project.path}/events/${repeated.body.data.uid as string}`,
    );
    assert.is(twice.status, 404, 'its key was used by another event');
    assert.is(inbox.requests.filter(({ body: of }) => of.toString() === '{}').length, 1);
  } finally {
    await Promise.all(agents.map((it) => it.close()));
  }
});

scheduled(
  'each line of docs/guides/send-later.md runs, and prints what the page says',
  async () => {
    await runBlocks(blocksOf('docs/guides/send-later.md'), {
      cwd: tempFolder('send-later'),
      env: { GATEWAY_URL: api.url, GATEWAY_KEY: api.owner.api_key.key, PROJECT_ID: project.id },
      outputs: ['json'],
    });
  },
);

scheduled.run();
