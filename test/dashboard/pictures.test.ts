// deadline: 600 s, long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { until } from '../support/until.js';
import { inspect, show, visit } from './browser.js';
import { dashboardScene, ONCE, quarantined, subscribed, type Scene } from './scene.js';

const pictures = suite('dashboard/pictures');

let scene: Scene;
let billing: Endpoint;
const pages: Record<string, string> = {};

pictures.before(async () => {
  scene = await dashboardScene();
  billing = await endpoint({
    answer: {
      status: 503,
      headers: { 'retry-after': '30' },
      body: '{"error":"database is read-only"}',
    },
  });
  const { client } = scene;
  const { url } = billing;
  const large = { event_types: ['order.*'], filter: { body: { total: { $gte: 100 } } } };
  const { endpointId, subscriptionId } = await subscribed(
    client,
    { name: 'billing', url, strategy: ONCE },
    large,
  );
  await subscribed(client, { name: 'crm', url }, { event_types: ['customer.*'] });
  const schema = {
    required: ['number', 'total'],
    properties: {
      number: { type: 'string', description: 'Order number.' },
      total: { type: 'number', minimum: 0 },
    },
  };
  const example = { number: 'A-1001', total: 12.5 };
  await client.eventTypes.create({
    name: 'order.paid',
    description: 'The money has come in.',
    json_schema: schema,
    example,
  });
  const types = [
    'order.created',
    'order.paid',
    'customer.changed',
    'order.shipped',
    'invoice.sent',
  ];
  let eventId = '';
  for (let n = 0; n < 60; n++) {
    const { uid: event } = await client.events.create({
      event_type: types[n % types.length]!,
      data: {
        number: `A-${1000 + n}`,
        total: 20 + n * 3,
        currency: 'EUR',
        items: [
          { sku: 'tea', count: 2 },
          { sku: 'pot', count: 1 },
        ],
      },
    });
    if (n === 41) eventId = event;
  }
  // An hour of traffic, as agents count it.
  for (const [kind, status, base] of [
    ['event', 'processed', 2_400],
    ['delivery', 'success', 3_000],
    ['delivery', 'failure', 30],
    ['attempt', 'success', 3_000],
    ['attempt', 'failure', 160],
  ] as const)
    await scene.api.db.pool.query(
      `insert into activity (project_id, endpoint_id, at, kind, status, n)
       select $1, '00000000-0000-0000-0000-000000000000', date_trunc('minute', now()) - m * interval '1 minute', $2, $3,
         ($4 * (1 + 0.3 * sin(m / 7.0) + 0.1 * sin(m * 1.7) + case when $3 = 'failure' and m between 8 and 14 then 6 else 0 end))::int
       from generate_series(1, 400) m on conflict do nothing`,
      [scene.projectId, kind, status, base],
    );
  const failed = await until(
    'failures',
    async () => (await client.eventDeliveries.list({ status: ['failure'] }).page()).content,
  );
  const issueId = await until(
    'an issue',
    async () => (await client.issues.list().page()).content[0]?.uid,
  );
  const { sourceId, ids } = await quarantined(scene, 'orders of the shop', [
    '{"id":"A-1"}',
    '{"id":"A-2","total":12.5}',
  ]);
  await client.apiKeys.create({ name: 'nightly export to the warehouse', role: 'viewer' });
  const { uid: revoked } = await client.apiKeys.create({ name: 'ci' });
  await client.apiKeys.revoke(revoked);
  await client.portalLinks.create({
    name: 'Acme',
    owner_id: 'acme-corporation-europe',
    can_manage_endpoint: true,
  });
  await client.portalLinks.create({ name: 'Globex', owner_id: 'globex' });
  const organisation = scene.api.owner.organisation.id;
  await client.invitations.create(organisation, {
    email: 'augusta.ada.king@lovelace.example.com',
    role: 'viewer',
  });
  const ofProject = {
    overview: '/overview',
    issues: '/issues',
    issue: `/issues/${issueId}`,
    events: '/events',
    event: `/events/${eventId}`,
    deliveries: '/deliveries',
    delivery: `/deliveries/${failed[0]!.uid}`,
    quarantine: '/quarantine',
    'quarantine-message': `/quarantine/${ids[0]}`,
    sources: '/sources',
    source: `/sources/${sourceId}`,
    'source-new': '/sources/new?type=http',
    endpoints: '/endpoints',
    endpoint: `/endpoints/${endpointId}`,
    'endpoint-new': '/endpoints/new',
    subscriptions: '/subscriptions',
    subscription: `/subscriptions/${subscriptionId}`,
    'event-types': '/event-types',
    'event-type': '/event-types/order.paid',
    'api-keys': '/api-keys',
    'portal-links': '/portal-links',
    'project-settings': '/settings',
    start: '/start',
  };
  for (const [name, path] of Object.entries(ofProject))
    pages[name] = `/projects/${scene.projectId}${path}`;
  Object.assign(pages, {
    people: '/people',
    audit: '/audit',
    'instance-health': '/instance',
    'instance-shards': '/instance?tab=shards',
    'instance-settings': '/instance?tab=settings',
    'instance-plugins': '/instance?tab=plugins',
    account: '/account',
    'project-new': '/new-project',
  });
});
pictures.after(async () => {
  await scene.close();
  await billing.close();
});

const windows = { 1440: { isWide: true }, 1280: {}, 390: { isPhone: true } } as const;
for (const [width, options] of Object.entries(windows)) {
  for (const theme of ['light', 'dark'] as const) {
    pictures(`pages are accessible and fit their window: ${width} px, ${theme}`, async () => {
      const { page, close } = await scene.open('/overview', { ...options, theme });
      for (const [name, path] of Object.entries(pages)) {
        await show(page, path);
        await inspect(page, `${name}-${width}-${theme}`);
      }
      await close();
    });
  }
}

pictures('pages are there in a second, and nothing moves while they load', async () => {
  const measured: string[] = [];
  for (const [name, path] of Object.entries(pages)) {
    const { shift, paintMs } = await best(path);
    if (shift > 0.05 || paintMs > 2_500)
      measured.push(
        `${name}: layout shift ${shift.toFixed(3)}, largest paint after ${Math.round(paintMs)} ms`,
      );
  }
  assert.equal(measured, []);
});

/** Measures a page, and repeats a slow result: another process may have caused it. */
async function best(path: string, tries = 3): ReturnType<typeof measure> {
  const { page, close } = await visit(scene.browser, scene.api.url + path, {
    cookie: scene.cookie,
  });
  await page.waitForLoadState('networkidle');
  const found = await page.evaluate(measure);
  await close();
  return found.paintMs > 2_500 && tries > 1 ? best(path, tries - 1) : found;
}

/**
 * Runs in the page: https://web.dev/articles/cls and https://web.dev/articles/lcp; their limits for
 * a good page are 0.1 and 2.5 s.
 */
async function measure(): Promise<{ shift: number; paintMs: number }> {
  interface Entry {
    readonly value: number;
    readonly startTime: number;
  }
  type Observer = new (callback: (list: { getEntries(): readonly Entry[] }) => void) => {
    observe(options: object): void;
  };
  const { PerformanceObserver: Observer } = globalThis as unknown as {
    PerformanceObserver: Observer;
  };
  const entries = (type: string) =>
    new Promise<readonly Entry[]>((resolve) => {
      new Observer((list) => resolve(list.getEntries())).observe({ type, buffered: true });
      setTimeout(() => resolve([]), 300);
    });
  const [shifts, paints] = await Promise.all([
    entries('layout-shift'),
    entries('largest-contentful-paint'),
  ]);
  return {
    shift: shifts.reduce((sum, { value }) => sum + value, 0),
    paintMs: paints.at(-1)?.startTime ?? 0,
  };
}

pictures.run();
