// deadline: 240 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { until } from '../support/until.js';
import { accessibilityMistakes, picture } from './browser.js';
import { dashboardScene, type Scene } from './scene.js';

const pictures = suite('dashboard/pictures');

let scene: Scene;
let billing: Endpoint;
/** Pages below the project, by the name of their picture. */
const pages: Record<string, string> = { overview: '/overview', events: '/events', deliveries: '/deliveries', endpoints: '/endpoints' };

pictures.before(async () => {
  scene = await dashboardScene();
  billing = await endpoint({ answer: { status: 503, headers: { 'retry-after': '30' }, body: '{"error":"database is read-only"}' } });
  const { client } = scene;
  const once = { type: 'linear', duration: 1, retry_count: 0 } as const;
  const { uid } = await client.endpoints.create({ name: 'billing', url: billing.url, strategy: once });
  const { uid: large } = await client.subscriptions.create({
    name: 'large orders',
    endpoint_id: uid,
    filter_config: { event_types: ['order.*'], filter: { body: { total: { $gte: 100 } } } },
  });
  const { uid: crm } = await client.endpoints.create({ name: 'crm', url: billing.url });
  await client.subscriptions.create({ name: 'customers', endpoint_id: crm, filter_config: { event_types: ['customer.*'] } });
  const schema = {
    required: ['number', 'total'],
    properties: { number: { type: 'string', description: 'Of the order.' }, total: { type: 'number', minimum: 0 } },
  };
  const example = { number: 'A-1001', total: 12.5 };
  await client.eventTypes.create({ name: 'order.paid', description: 'The money has come in.', json_schema: schema, example });
  Object.assign(pages, { endpoint: `/endpoints/${uid}`, subscription: `/subscriptions/${large}`, 'event-type': '/event-types/order.paid' });
  const types = ['order.created', 'order.paid', 'customer.changed', 'order.shipped', 'invoice.sent'];
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
    if (n === 41) pages['event'] = `/events/${event}`;
  }
  const failed = await until('failures', async () => (await client.eventDeliveries.list({ status: ['failure'] }).page()).content);
  pages['delivery'] = `/deliveries/${failed[0]!.uid}`;
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
});
pictures.after(async () => {
  await scene.close();
  await billing.close();
});

const looks = { light: {}, dark: { theme: 'dark' }, phone: { isPhone: true } } as const;
for (const [look, options] of Object.entries(looks)) {
  pictures(`pages are accessible and fit their window: ${look}`, async () => {
    const { page, problems, close } = await scene.open('/overview', options);
    for (const [name, path] of Object.entries(pages)) {
      await page.evaluate(
        `history.pushState(null, '', '/projects/${scene.projectId}${path}'); dispatchEvent(new PopStateEvent('popstate'))`,
      );
      await page.waitForLoadState('networkidle');
      await page.getByRole('heading', { level: 1 }).waitFor();
      await until('the content', async () => (await page.locator('.loading').count()) === 0);
      await picture(page, `${name}-${look}`);
      assert.equal(await accessibilityMistakes(page), [], name);
      const wide = await page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');
      assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
    }
    assert.equal(problems, []);
    await close();
  });
}

pictures('pages are there in a second, and nothing moves while they load', async () => {
  const measured: string[] = [];
  for (const [name, path] of Object.entries(pages)) {
    const { page, close } = await scene.open(path);
    await page.waitForLoadState('networkidle');
    const { shift, paintMs } = await page.evaluate(measure);
    if (shift > 0.05 || paintMs > 2_500)
      measured.push(`${name}: layout shift ${shift.toFixed(3)}, largest paint after ${Math.round(paintMs)} ms`);
    await close();
  }
  assert.equal(measured, []);
});

/** Runs in the page: https://web.dev/articles/cls and https://web.dev/articles/lcp, whose limits for a good page are 0.1 and 2.5 s. */
async function measure(): Promise<{ shift: number; paintMs: number }> {
  interface Entry {
    readonly value: number;
    readonly startTime: number;
  }
  type Observer = new (callback: (list: { getEntries(): readonly Entry[] }) => void) => { observe(options: object): void };
  const { PerformanceObserver: Observer } = globalThis as unknown as { PerformanceObserver: Observer };
  const entries = (type: string) =>
    new Promise<readonly Entry[]>((resolve) => {
      new Observer((list) => resolve(list.getEntries())).observe({ type, buffered: true });
      setTimeout(() => resolve([]), 300);
    });
  const [shifts, paints] = await Promise.all([entries('layout-shift'), entries('largest-contentful-paint')]);
  return { shift: shifts.reduce((sum, { value }) => sum + value, 0), paintMs: paints.at(-1)?.startTime ?? 0 };
}

pictures.run();
