import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeProject, startApi, type Api } from './api.js';

const rootPath = suite('server/root-path');

let api: Api;
rootPath.before(async () => {
  api = await startApi({ file: { root_path: '/gateway', env: 'staging' } });
});
rootPath.after(() => api.close());

rootPath('the API is below the prefix alone', async () => {
  assert.is((await api.call('GET', '/gateway/api/v1/organisations')).status, 200);
  for (const path of [
    '/api/v1/organisations',
    '/gatewayapi/v1/organisations',
    '/gateway/gateway/api/v1/organisations',
  ]) {
    const { status, body } = await api.call('GET', path);
    assert.is(status, 404, path);
    assert.is(body.message, `path ${path} not found`);
    assert.match(body.fix ?? '', '/gateway/api/v1 (root_path)');
  }
  for (const path of ['/gateway', '/gateway/']) {
    const { status, headers } = await fetch(api.url + path);
    assert.equal([status, headers.get('content-type')], [200, 'text/html; charset=utf-8'], path);
  }
  const { status, body, headers } = await api.call('PATCH', '/gateway/api/v1/projects');
  assert.equal(
    [status, body.message, headers.get('allow')],
    [405, '/gateway/api/v1/projects does not support PATCH', 'GET, POST'],
  );
});

rootPath(
  'health and metrics are answered with and without it, and health tells the environment',
  async () => {
    for (const path of [
      '/healthz',
      '/gateway/healthz',
      '/healthz?ready',
      '/gateway/healthz?ready',
    ]) {
      const { status, body } = await api.call('GET', path, undefined, { key: null });
      assert.equal([status, body.data.environment], [200, 'staging'], path);
    }
    for (const path of ['/metrics', '/gateway/metrics']) {
      assert.match(
        (await api.call('GET', path, undefined, { key: null })).text,
        'no metrics backend',
      );
    }
  },
);

rootPath('what is created is where Location says, a path below the prefix', async () => {
  const created = await api.call('POST', '/gateway/api/v1/projects/', { name: 'orders' });
  const project = `/gateway/api/v1/projects/${created.body.data.uid}`;
  assert.is(created.headers.get('location'), project);
  assert.is((await api.call('GET', project)).body.data.uid, created.body.data.uid);
});

rootPath(
  'without a prefix every collection tells where the created thing is; an event too, however it is routed',
  async () => {
    const plain = await startApi({ file: { host: 'https://gateway.example.com' } });
    try {
      const { path } = await makeProject(plain);
      const endpoint = await plain.call('POST', `${path}/endpoints`, {
        name: 'e',
        url: 'https://example.com',
        owner_id: 'shop',
      });
      const event = { event_type: 'a', data: {} };
      const made = {
        endpoints: endpoint,
        subscriptions: await plain.call('POST', `${path}/subscriptions`, {
          name: 's',
          endpoint_id: endpoint.body.data.uid,
        }),
        events: await plain.call('POST', `${path}/events`, { ...event, idempotency_key: 'once' }),
        'events ': await plain.call('POST', `${path}/events/fanout`, {
          ...event,
          owner_id: 'shop',
        }),
        'events  ': await plain.call('POST', `${path}/events/broadcast`, event),
      };
      for (const [collection, { status, headers, body }] of Object.entries(made)) {
        assert.is(status, 201, collection);
        assert.is(
          headers.get('location'),
          `https://gateway.example.com/api/v1${path}/${collection.trim()}/${body.data.uid}`,
        );
      }
      const again = await plain.call('POST', `${path}/events`, {
        ...event,
        idempotency_key: 'once',
      });
      assert.equal(
        [again.status, again.headers.get('location')],
        [200, null],
        'nothing was created',
      );
    } finally {
      await plain.close();
    }
  },
);

rootPath.run();
