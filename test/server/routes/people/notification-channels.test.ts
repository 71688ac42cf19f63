import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeProject, mistakes, startApi, type Api } from '../../api.js';

const channels = suite('server/routes/people/notification-channels');
let api: Api;

channels.before(async () => {
  api = await startApi({ file: { limits: { notification_channels_per_project: 2 } } });
});
channels.after(() => api.close());

const pager = { name: 'On call', type: 'pagerduty', settings: { routing_key: 'R-secret' } };

channels('a channel is created with defaults, shown without secrets, and changed', async () => {
  const { path } = await makeProject(api);
  const created = await api.call('POST', `${path}/notification-channels`, pager);
  assert.is(created.status, 201);
  const { uid, settings, kinds, enabled } = created.body.data;
  const mask = settings.routing_key;
  assert.equal(
    [settings, kinds, enabled],
    [{ routing_key: mask, api_url: 'https://events.pagerduty.com' }, null, true],
  );
  assert.not.match(created.text, 'R-secret');
  const at = `${path}/notification-channels/${uid}`;
  const changed = await api.call('PUT', at, {
    kinds: ['endpoint_failing'],
    settings: { routing_key: mask },
  });
  assert.equal(changed.body.data.kinds, ['endpoint_failing']);
  const moved = { routing_key: mask, api_url: 'http://127.0.0.1:9' };
  assert.equal(mistakes(await api.call('PUT', at, { settings: moved })), [
    'settings.routing_key is not sent to another origin; give it again',
  ]);
  const given = { ...moved, routing_key: 'another' };
  assert.is((await api.call('PUT', at, { settings: given })).status, 200);
  const [row] = await api.db.rows<{ settings: Record<string, string> }>(
    'select settings from notification_channels where id = $1',
    [uid],
  );
  assert.match(row!.settings['routing_key']!, /^sealed:/);
  assert.is((await api.call('POST', `${at}/test`)).status, 200);
  const queued = await api.db.rows('select from channel_notifications where channel_id = $1', [
    uid,
  ]);
  assert.is(queued.length, 1);
  assert.is((await api.call('DELETE', at)).status, 200);
  assert.is((await api.call('GET', at)).status, 404);
});

channels(
  'settings of another type, missing ones and other URLs are refused, and the limit holds',
  async () => {
    const { path } = await makeProject(api);
    const post = (body: object) => api.call('POST', `${path}/notification-channels`, body);
    assert.equal(mistakes(await post({ ...pager, settings: { url: 'https://example.com' } })), [
      'settings.url does not belong to the type pagerduty',
      'settings.routing_key is missing',
    ]);
    const hook = { name: 'a', type: 'webhook', settings: { url: 'ftp://example.com' } };
    assert.equal(mistakes(await post(hook)), [
      'settings.url must be a URL that begins with https:// or http://, without credentials',
    ]);
    assert.is((await post({ ...pager, type: 'fax' })).status, 422);
    for (const status of [201, 201, 422])
      assert.is((await post({ ...hook, settings: { url: 'https://example.com' } })).status, status);
  },
);

channels('a channel of events has no settings', async () => {
  const { path } = await makeProject(api);
  const post = (settings: object) =>
    api.call('POST', `${path}/notification-channels`, { name: 'ops', type: 'events', settings });
  assert.equal(mistakes(await post({ url: 'https://example.com' })), [
    'settings.url does not belong to the type events',
  ]);
  const { status, body } = await post({});
  assert.equal([status, body.data.type, body.data.settings], [201, 'events', {}]);
});

channels.run();
