import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Activity, EventDelivery, SourceState, Summary } from '@gateway/client';
import { filled, summaryOf, lineOf } from '#dashboard/pages/overview/activity';
import { byEndpoint } from '#dashboard/pages/overview/findings';
import { findingsOf } from '#dashboard/pages/overview/findings';
import { dashboardScene, type Scene } from './scene.js';

const overview = suite('dashboard/overview');

let scene: Scene;
overview.before(async () => {
  scene = await dashboardScene();
});
overview.after(() => scene.close());

overview(
  'it says that all is well, and when an endpoint fails which one, why, and where to look',
  async () => {
    await scene.client.events.create({ event_type: 'order.paid', data: {} });
    await scene.shop.received(1);
    const { page, close } = await scene.open('/overview');
    await page.getByText('Healthy: messages are accepted, routed and delivered.').waitFor();
    scene.shop.answer({ status: 410 });
    await scene.client.events.create({ event_type: 'order.paid', data: {} });
    const health = page.getByRole('region', { name: 'Health' });
    await health.getByText('Something is wrong.').waitFor();
    await health.getByText(/shop/).first().waitFor();
    await health.getByRole('link').first().click();
    await page.getByRole('heading', { level: 1 }).waitFor();
    assert.not.match(page.url(), 'overview');
    await close();
  },
);

const summary: Summary = {
  pending_events: 0,
  oldest_pending_seconds: null,
  waiting_deliveries: 0,
  held_deliveries: 0,
  processing_deliveries: 0,
  quarantined_messages: 0,
  endpoints: { active: 2, paused: 0, inactive: 0 },
  sources: { running: 1, paused: 0, disabled: 0 },
  latency_ms: null,
};

overview('each thing that is not well is a sentence with a page', () => {
  assert.equal(findingsOf(summary, []), []);
  const found = findingsOf(
    {
      ...summary,
      pending_events: 4_000,
      oldest_pending_seconds: 200,
      held_deliveries: 1,
      quarantined_messages: 2,
      endpoints: { active: 0, paused: 1, inactive: 1 },
      sources: { running: 0, paused: 3, disabled: 0 },
    },
    [],
  );
  assert.equal(
    found.map(({ tone, to }) => `${tone} ${to}`),
    [
      'bad /events?status=pending',
      'bad /endpoints?status=inactive',
      'warn /sources?state=paused',
      'warn /quarantine',
      'warn /deliveries?status=waiting',
    ],
  );
  assert.match(found[0]!.sentence, '4K events wait to be routed, the oldest for 3 min');
});

overview(
  'a source that cannot be read is named with its reason, and several lead to their list',
  () => {
    const state = (name: string, it: SourceState['state']): SourceState => ({
      uid: `id-${name}`,
      name,
      state: it,
      reason: it === 'failing' ? 'The broker refused the password.' : null,
      messages: 3,
      reported_at: null,
    });
    const [one] = findingsOf(summary, [], [state('orders', 'failing'), state('returns', 'active')]);
    assert.equal([one?.tone, one?.to], ['bad', '/sources/id-orders']);
    assert.is(one?.sentence, 'The source orders cannot be read. The broker refused the password.');
    const [both] = findingsOf(
      summary,
      [],
      [state('orders', 'failing'), state('returns', 'failing')],
    );
    assert.equal(
      [both?.sentence, both?.to],
      ['2 sources cannot be read.', '/sources?state=failing'],
    );
  },
);

const delivery = (uid: string, name: string) =>
  ({ endpoint_metadata: { uid, name }, reason: 'It answered 500.' }) as unknown as EventDelivery;

overview('failing endpoints are counted by their deliveries, and named', () => {
  const failing = byEndpoint([delivery('a', 'shop'), delivery('b', 'crm'), delivery('b', 'crm')]);
  assert.equal(
    failing.map(({ name, count }) => `${name} ${count}`),
    ['crm 2', 'shop 1'],
  );
  assert.match(findingsOf(summary, failing)[0]!.sentence, 'Deliveries to crm and shop fail.');
  assert.match(
    findingsOf(summary, failing.slice(1))[0]!.sentence,
    'Deliveries to shop fail. It answered 500.',
  );
  const many = byEndpoint(Array.from({ length: 6 }, (_, n) => delivery(String(n), `e${n}`)));
  assert.match(findingsOf(summary, many)[0]!.sentence, 'e0, e1, e2 and 3 more');
});

overview(
  'minutes in which nothing ended are zero, and the one that is not over is left out',
  () => {
    const counted = (at: string, success: number): Activity['content'][number] => ({
      at,
      events: { processed: success, failed: 0 },
      deliveries: { success, failure: 0, discarded: 0 },
      attempts: { success, failure: 0 },
    });
    const activity = {
      step_seconds: 60,
      content: [counted('2026-11-25T10:01:00.000Z', 120), counted('2026-11-25T10:03:00.000Z', 60)],
    };
    const times = {
      fromMs: Date.parse('2026-11-25T10:00:30Z'),
      toMs: Date.parse('2026-11-25T10:04:30Z'),
    };
    const steps = filled(activity, times);
    assert.equal(
      steps.atMs.map((ms) => new Date(ms).toISOString().slice(11, 16)),
      ['10:01', '10:02', '10:03'],
    );
    const line = lineOf(steps, 'Delivered', 'ok', (step) => step.deliveries.success);
    assert.equal(line.values, [2, 0, 1]);
    assert.is(summaryOf([line]), 'Delivered: now 1.0/s, at most 2.0/s');
  },
);

overview.run();
