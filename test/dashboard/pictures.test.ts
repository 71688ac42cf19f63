// deadline: 240 s
import { setTimeout as sleep } from 'node:timers/promises';
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
const pages: Record<string, string> = { overview: '/overview', events: '/events', deliveries: '/deliveries' };

pictures.before(async () => {
  scene = await dashboardScene();
  billing = await endpoint({ answer: { status: 503, headers: { 'retry-after': '30' }, body: '{"error":"database is read-only"}' } });
  const { client } = scene;
  const once = { type: 'linear', duration: 1, retry_count: 0 } as const;
  const { uid } = await client.endpoints.create({ name: 'billing', url: billing.url, strategy: once });
  await client.subscriptions.create({
    name: 'large orders',
    endpoint_id: uid,
    filter_config: { event_types: ['order.*'], filter: { body: { total: { $gte: 100 } } } },
  });
  const { uid: crm } = await client.endpoints.create({ name: 'crm', url: billing.url });
  await client.subscriptions.create({ name: 'customers', endpoint_id: crm, filter_config: { event_types: ['customer.*'] } });
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
  await sleep(1_000);
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

pictures.run();
