import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { keptMetrics } from '../../support/kept-metrics.js';
import { startApi, type Api } from '../api.js';

const measures = suite('server/api/measure');

const kept = keptMetrics();
let api: Api;
measures.before(async () => {
  api = await startApi({ metered: kept, file: { root_path: '/hooks' } });
});
measures.after(() => api.close());

const requests = () =>
  kept
    .all('gateway_api_requests_total')
    .map(({ labels: { method, route, status }, value }) => `${method} ${route} ${status} ${value}`)
    .sort();

measures(
  'requests are counted by the pattern of their route, without the prefix of a proxy; probes and scrapes are not',
  async () => {
    const at = '/hooks/api/v1/projects';
    assert.is((await api.call('GET', at)).status, 200);
    assert.is((await api.call('GET', at)).status, 200);
    assert.is((await api.call('GET', `${at}/01990000-0000-7000-8000-000000000000`)).status, 404);
    assert.is((await api.call('GET', at, undefined, { key: null })).status, 401);
    assert.is((await api.call('PATCH', at, {})).status, 405);
    assert.is((await api.call('GET', '/wp-login.php')).status, 404);
    assert.is((await api.call('PROPFIND', '/')).status, 404);
    for (const path of ['/healthz', '/metrics', '/hooks/healthz']) await api.call('GET', path);
    assert.equal(requests(), [
      'GET /api/v1/projects 200 2',
      'GET /api/v1/projects 401 1',
      'GET /api/v1/projects/:project_id 404 1',
      'GET unmatched 404 1',
      'PATCH unmatched 405 1',
      'other unmatched 404 1',
    ]);
    const timed = kept
      .all('gateway_api_request_duration_seconds')
      .map(({ labels, count }) => [labels['route'], count]);
    assert.equal(timed, [
      ['/api/v1/projects', 3],
      ['/api/v1/projects/:project_id', 1],
      ['unmatched', 3],
    ]);
  },
);

measures(
  'an event of the API is ingested once it is stored; a known key is a duplicate, bad input is no event, and a failure is an error',
  async () => {
    const made = await api.call('POST', '/hooks/api/v1/projects', { name: 'orders' });
    const { uid: id } = made.body.data as { uid: string };
    const events = `/hooks/api/v1/projects/${id}/events`;
    const ingest = () =>
      ['total', 'success', 'error', 'duplicate_total'].map((name) =>
        kept.value(`gateway_ingest_${name}`, { project: id, source: 'api' }),
      );
    const body = { event_type: 'order.paid', data: {}, idempotency_key: 'once' };
    assert.is((await api.call('POST', events, { data: {} })).status, 422);
    assert.equal(ingest(), [undefined, undefined, undefined, undefined]);
    assert.is((await api.call('POST', events, body)).status, 201);
    assert.equal(ingest(), [1, 1, 0, undefined]);
    assert.is((await api.call('POST', events, body)).status, 200);
    assert.equal(ingest(), [2, 2, 0, 1]);
    await api.db.rows('alter table events rename to gone');
    try {
      assert.is(
        (await api.call('POST', events, { ...body, idempotency_key: 'other' })).status,
        500,
      );
    } finally {
      await api.db.rows('alter table gone rename to events');
    }
    assert.equal(ingest(), [3, 2, 1, 1]);
    assert.is(kept.all('gateway_ingest_latency')[0]?.count, 1);
  },
);

measures.run();
