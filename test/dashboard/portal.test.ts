// long
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Page } from 'playwright-core';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { until } from '../support/until.js';
import { inspect, picture, visit, type Visit } from './browser.js';
import { dashboardScene, ONCE, type Scene } from './scene.js';

const portal = suite('dashboard/portal');

let scene: Scene;
let site: http.Server;
let siteUrl: string;
/** The receiver of the endpoints of the owners `acme` and `globex`. */
let receiver: Endpoint;
let acme: { readonly endpointId: string; readonly deliveryId: string };
let globex: typeof acme;

portal.before(async () => {
  site = http.createServer((_, response) =>
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>App</title>'),
  );
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  siteUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  [scene, receiver] = await Promise.all([
    dashboardScene({ file: { portal: { frame_ancestors: [siteUrl] } } }),
    endpoint(),
  ]);
  await scene.client.eventTypes.create({
    name: 'invoice.sent',
    description: 'An invoice was sent to a customer.',
    json_schema: {
      type: 'object',
      properties: { total: { type: 'number', description: 'In euros.' } },
      required: ['total'],
    },
    example: { total: 12.5 },
  });
  acme = await deliveredTo('acme');
  globex = await deliveredTo('globex');
  const { uid } = await scene.client.endpoints.create({
    name: 'archive of everything that was ever sent to the warehouse in Rotterdam',
    url: 'https://archive.example.com/webhooks',
    owner_id: 'acme',
  });
  await scene.client.endpoints.pause(uid);
});
portal.after(async () => {
  await scene.close();
  await receiver.close();
  site.close();
});

/** Creates an endpoint of an owner with a failed delivery. */
async function deliveredTo(owner: string): Promise<typeof acme> {
  receiver.answer({ status: 500, body: 'out of order' });
  const fields = { name: `${owner} hooks`, url: receiver.url, owner_id: owner, strategy: ONCE };
  const { uid: endpointId } = await scene.client.endpoints.create(fields);
  await scene.client.events.fanout({
    event_type: 'invoice.sent',
    owner_id: owner,
    data: { total: 12.5, for: owner },
  });
  return until(`the delivery to ${owner}`, async () => {
    const { content } = await scene.client.eventDeliveries
      .list({ endpointId, status: ['failure'] })
      .page();
    return content[0] && { endpointId, deliveryId: content[0].uid };
  });
}

async function linkOf(owner: string, managing = true): Promise<string> {
  const link = await scene.client.portalLinks.create({
    name: owner,
    owner_id: owner,
    can_manage_endpoint: managing,
  });
  return link.url ?? '';
}

/** Opens the portal of `acme`; `more` is appended to the fragment. */
async function open(
  options: Parameters<typeof visit>[2] & {
    readonly managing?: boolean;
    readonly more?: string;
  } = {},
): Promise<Visit> {
  const { managing = true, more = '' } = options;
  const it = await visit(scene.browser, (await linkOf('acme', managing)) + more, options);
  await it.page.getByRole('heading', { name: 'Endpoints' }).waitFor();
  return it;
}

const go = (page: Page, path: string) =>
  page.goto(`${scene.api.url}/portal/${scene.projectId}${path}`);

portal(
  'an owner sees their own endpoints and deliveries; those of another are neither listed nor reached by their address',
  async () => {
    const { page, close } = await open();
    await page.getByRole('row', { name: /acme hooks/ }).waitFor();
    assert.is(await page.getByRole('row', { name: /globex|shop/ }).count(), 0);
    assert.is(new URL(page.url()).hash, '', 'the token is taken out of the address bar');
    await page.reload();
    await page.getByRole('row', { name: /acme hooks/ }).waitFor();
    await inspect(page);
    await page.getByRole('link', { name: 'Deliveries' }).click();
    await page.getByRole('row', { name: /invoice\.sent.*acme/ }).waitFor();
    assert.is(await page.getByRole('row', { name: /globex|shop/ }).count(), 0);
    await inspect(page);
    for (const path of [
      `/endpoints/${globex.endpointId}`,
      `/endpoints/${scene.endpointId}`,
      `/deliveries/${globex.deliveryId}`,
    ]) {
      await go(page, path);
      await page.getByText('not found').first().waitFor();
      assert.not.match(await page.locator('main').innerText(), /globex|shop|out of order/);
    }
    await go(page, '/events');
    await page.getByText('This page does not exist').waitFor();
    await close();
  },
);

portal(
  'an owner creates an endpoint, finds what failed, reads why, and sends it again',
  async () => {
    receiver.answer({ status: 500, body: 'out of order' });
    const { page, close } = await open();
    await page.getByRole('link', { name: 'New endpoint' }).click();
    await page.getByLabel('Name', { exact: true }).fill('new hooks');
    await page.getByLabel('URL', { exact: true }).fill(receiver.url);
    await page.getByLabel('Event types').fill('invoice.*');
    assert.is(await page.getByLabel('Concurrency').count(), 0);
    await inspect(page);
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Copy the secret now').waitFor();
    const { content } = await scene.client.endpoints
      .list({ ownerId: 'acme', q: 'new hooks' })
      .page();
    const [{ uid: endpointId } = { uid: '' }] = content;
    const { content: subscribed } = await scene.client.subscriptions.list({ endpointId }).page();
    assert.equal(subscribed[0]?.filter_config.event_types, ['invoice.*']);
    await page.getByRole('link', { name: 'Send test event' }).click();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText('Failed after').waitFor();
    await page
      .getByText('Your server answered 500 Internal Server Error. Look for the error')
      .first()
      .waitFor();
    await page.getByRole('link', { name: 'View delivery' }).click();
    await page.getByLabel('Response body', { exact: true }).getByText('out of order').waitFor();
    await page.getByLabel('Request data', { exact: true }).getByText('This is a test').waitFor();
    await inspect(page, 'portal-delivery');
    await page.getByRole('link', { name: 'Deliveries' }).first().click();
    await page.getByLabel('Status').selectOption('failure');
    await page
      .getByRole('row', { name: /invoice\.sent.*acme hooks/ })
      .getByRole('link')
      .click();
    receiver.answer({ status: 200, body: 'thanks' });
    await page.getByRole('button', { name: 'Resend' }).click();
    await page.getByText('Attempt 2', { exact: true }).waitFor();
    await page.getByLabel('Response body', { exact: true }).getByText('thanks').waitFor();
    await page.getByRole('link', { name: 'acme hooks' }).click();
    await page.getByRole('button', { name: 'Rotate…' }).click();
    await page.getByRole('button', { name: 'Rotate', exact: true }).click();
    await page.getByText('Copy the secret now').waitFor();
    await page.getByRole('button', { name: 'Close' }).last().click();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('This endpoint is paused.').waitFor();
    await page.getByRole('button', { name: 'Activate' }).click();
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await close();
  },
);

portal('an owner reads what an event type holds, and subscribes to it', async () => {
  const { page, close } = await open();
  await page.getByRole('link', { name: 'Event types' }).click();
  await page
    .getByRole('row', { name: /invoice\.sent/ })
    .getByRole('link')
    .click();
  await page.getByRole('cell', { name: 'In euros.' }).waitFor();
  await page.getByText('12.5').waitFor();
  assert.is(await page.getByRole('button', { name: /Edit|Deprecate/ }).count(), 0);
  assert.is(await page.getByText('GATEWAY_KEY').count(), 0);
  await inspect(page, 'portal-event-type');
  await page.getByRole('link', { name: 'Subscribe' }).click();
  await page.getByLabel('Name', { exact: true }).fill('invoices');
  await page.getByLabel('Endpoint', { exact: true }).selectOption('acme hooks');
  assert.equal(
    await page
      .getByLabel('Endpoint', { exact: true })
      .locator('option', { hasText: /globex|shop/ })
      .count(),
    0,
  );
  await page.getByText('The sample would be delivered.').waitFor();
  await picture(page, 'portal-subscribe');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('heading', { name: 'invoices' }).waitFor();
  await close();
});

portal('a link that does not manage endpoints reads, tests and sends again', async () => {
  const { page, close } = await open({ managing: false });
  assert.is(await page.getByRole('link', { name: /New endpoint|Create/ }).count(), 0);
  await page
    .getByRole('row', { name: /acme hooks/ })
    .getByRole('link')
    .click();
  await page.getByRole('button', { name: 'Send test event…' }).waitFor();
  assert.is(await page.getByRole('button', { name: /^(Pause|Delete|Edit|Rotate)/ }).count(), 0);
  await go(page, `/deliveries/${acme.deliveryId}`);
  await page.getByRole('button', { name: 'Resend' }).waitFor();
  await close();
});

/** Words of operators and names of others, which no page of a customer shows. */
const INTERNAL =
  /\boperator\b|circuit breaker|\bagents?\b|globex|Orders|GATEWAY_|allowed_networks/i;

const LOOKS = {
  wide: { isWide: true },
  'wide-dark': { isWide: true, theme: 'dark' },
  phone: { isPhone: true },
  'phone-dark': { isPhone: true, theme: 'dark' },
} as const;
for (const [look, options] of Object.entries(LOOKS)) {
  portal(`pages fit their window, are accessible and show nothing internal: ${look}`, async () => {
    const { page, close } = await open(options);
    const pages = {
      endpoints: '/endpoints',
      endpoint: `/endpoints/${acme.endpointId}`,
      'endpoint-new': '/endpoints/new',
      subscribe: `/subscriptions/new?endpoint=${acme.endpointId}`,
      deliveries: '/deliveries',
      delivery: `/deliveries/${acme.deliveryId}`,
      'event-types': '/event-types',
      'event-type': '/event-types/invoice.sent',
      missing: `/endpoints/${globex.endpointId}`,
    };
    for (const [name, path] of Object.entries(pages)) {
      await go(page, path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.getByLabel('Loading').first().waitFor({ state: 'detached' });
      await inspect(page, `portal-${name}-${look}`);
      assert.not.match(await page.locator('body').innerText(), INTERNAL, name);
    }
    await close();
  });
}

portal('a link brings the colours of the site around it, and no CSS', async () => {
  const styleOf = (page: Page, name: string) =>
    page.evaluate(
      (it) => getComputedStyle(document.documentElement).getPropertyValue(it).trim(),
      name,
    );
  const hostile = `&text=${encodeURIComponent('red}body{display:none')}&font=${encodeURIComponent('x;background:url(//evil.example)')}`;
  for (const [name, more] of [
    ['light', `&theme=light&accent=0a7d5a&radius=14${hostile}`],
    ['dark', '&theme=dark&accent=ffcc00&font=rounded'],
    ['own', '&background=fdf6e3&surface=fffdf6&text=2b2518&accent=b4530a&radius=2&font=serif'],
  ] as const) {
    const { page, close } = await open({ more });
    await page.getByRole('row', { name: /acme hooks/ }).waitFor();
    await inspect(page, `portal-${name}`);
    await page.reload();
    await page.getByRole('row', { name: /acme hooks/ }).waitFor();
    if (name === 'light')
      assert.equal(
        [await styleOf(page, '--accent-fill'), await styleOf(page, '--radius')],
        ['#0a7d5a', '14px'],
      );
    assert.not.match(
      String(await page.evaluate('document.documentElement.getAttribute("style")')),
      /red|evil|url|display/,
    );
    if (name === 'dark')
      assert.equal(
        [await styleOf(page, '--on-accent'), await styleOf(page, 'color-scheme')],
        ['#000000', 'dark'],
      );
    if (name === 'own') assert.is(await styleOf(page, '--surface'), '#fffdf6');
    await close();
  }
});

portal(
  'a site that the settings name shows it in a frame, and hears when the link has ended',
  async () => {
    const { page, close } = await visit(scene.browser, siteUrl);
    await page.evaluate(
      (src) => {
        const frame = document.createElement('iframe');
        frame.src = src;
        frame.title = 'Webhooks';
        frame.style.cssText = 'width: 700px; height: 500px';
        addEventListener('message', ({ data }) => Object.assign(globalThis, { heard: data.type }));
        document.body.append(frame);
      },
      `${scene.api.url}/portal/${scene.projectId}#token=gw_0123456789abcdef_${'x'.repeat(43)}`,
    );
    const frame = page.frameLocator('iframe');
    await frame.getByText('This link is no longer valid').waitFor();
    assert.is(await page.evaluate('globalThis.heard'), 'gateway.portal.ended');
    // Only the fragment differs.
    await page.evaluate(
      (src) => document.querySelector('iframe')!.setAttribute('src', src),
      await linkOf('acme'),
    );
    await frame.getByRole('row', { name: /acme hooks/ }).waitFor();
    await close();
  },
);

portal(
  'without a link, and with one that ended meanwhile, it says so and shows nothing',
  async () => {
    const { page, close } = await visit(
      scene.browser,
      `${scene.api.url}/portal/${scene.projectId}`,
      { cookie: scene.cookie },
    );
    await page.getByText('This link is no longer valid').waitFor();
    await inspect(page);
    const link = await scene.client.portalLinks.create({ name: 'short', owner_id: 'acme' });
    await page.goto(link.url ?? '');
    await page.getByRole('row', { name: /acme hooks/ }).waitFor();
    await scene.client.portalLinks.revoke(link.uid);
    await page.getByText('This link is no longer valid').waitFor();
    assert.is(await page.getByText('acme hooks').count(), 0);
    await close();
  },
);

portal.run();
