import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Page } from 'playwright-core';
import { until } from '../support/until.js';
import { inspect, leaveField, press, push } from './browser.js';
import { dashboardScene, type Scene } from './scene.js';

const subscriptions = suite('dashboard/subscriptions');

let scene: Scene;
let largeId: string;
subscriptions.before(async () => {
  scene = await dashboardScene({}, async ({ client, endpointId }) => {
    for await (const { uid } of client.subscriptions.list()) await client.subscriptions.delete(uid);
    ({ uid: largeId } = await client.subscriptions.create({
      name: 'large orders',
      endpoint_id: endpointId,
      filter_config: {
        event_types: ['order.*'],
        filter: { body: { total: { $gte: 100 } }, headers: { 'X-Region': 'eu' } },
      },
    }));
  });
});
subscriptions.after(() => scene.close());

const verdict = (page: Page) =>
  page.getByRole('region', { name: 'Filter test' }).getByRole('status');

subscriptions(
  'why an event reached nobody leads to the filter, which is mended against that event',
  async () => {
    const { uid } = await scene.client.events.create({
      event_type: 'order.paid',
      data: { total: 42 },
      custom_headers: { 'x-region': 'eu' },
    });
    const { page, close } = await scene.open('/overview');
    await page.getByRole('link', { name: 'Events', exact: true }).first().click();
    await page
      .getByRole('row', { name: /order\.paid.*no subscription matches/ })
      .getByRole('link')
      .click();
    await page.getByText('the filter requires total to be at least 100, but it is 42').waitFor();
    await page.getByRole('link', { name: 'large orders' }).click();
    await verdict(page)
      .getByText('The filter requires total to be at least 100, but it is 42.')
      .waitFor();
    assert.is(await page.getByLabel('Sample').inputValue(), uid);
    await inspect(page, 'subscription-light');
    await page.getByLabel('Data filter').fill('{"total": {"$gte": 40}}');
    await verdict(page).getByText('The sample would be delivered.').waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved. The change applies to new events.').waitFor();
    await page.getByRole('link', { name: 'Back to event' }).click();
    await page.getByRole('button', { name: 'Replay' }).click();
    await page.getByText(/Delivered to shop/).waitFor();
    assert.equal((await scene.client.subscriptions.get(largeId)).filter_config, {
      event_types: ['order.*'],
      filter: { body: { total: { $gte: 40 } }, headers: { 'X-Region': 'eu' } },
    });
    await close();
  },
);

subscriptions(
  'a new subscription is tried on a sample while it is typed, and mistakes stand at their fields',
  async () => {
    const { page, close } = await scene.open('/subscriptions/new', { theme: 'dark' });
    await page.getByLabel('Name').fill('gold customers');
    await page.getByLabel('Endpoint', { exact: true }).selectOption('shop');
    await page.getByLabel('Event types').fill('customer.*, *.closed');
    await page.getByText('Event types may have * alone or at the end after a dot').waitFor();
    await page.getByLabel('Event types').fill('customer.*, account.closed');
    const filter = page.getByLabel('Data filter');
    await filter.fill('{"tier": {"$regex": "g.*"}}');
    await page.getByText('Data filter $regex is not an operator').waitFor();
    await filter.fill('{"tier": "gold"');
    await page.getByText(/Data filter is not JSON/).waitFor();
    assert.is(await page.getByRole('button', { name: 'Create' }).isDisabled(), true);
    await filter.fill('{"tier": {"$in": ["gold", "platinum"]}}');
    await page.getByLabel('Event type', { exact: true }).fill('order.paid');
    await page.getByLabel('Data', { exact: true }).fill('{"tier": "silver"}');
    await verdict(page)
      .getByText('The event type order.paid does not match customer.*, account.closed.')
      .waitFor();
    await verdict(page)
      .getByText('The filter requires tier to be one of ["gold","platinum"], but it is "silver".')
      .waitFor();
    assert.is(await page.getByLabel('Sample').inputValue(), '');
    await inspect(page, 'subscription-new-dark');
    await page.getByLabel('Event type', { exact: true }).fill('customer.changed');
    await page.getByLabel('Data', { exact: true }).fill('{"tier": "gold"}');
    await page.getByLabel('Headers', { exact: true }).fill('X-Region: us');
    await page.getByLabel('Header filter').fill('{"x-REGION": "us"}');
    await verdict(page).getByText('The sample would be delivered.').waitFor();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'gold customers' }).waitFor();
    scene.shop.answer({ status: 200 });
    const before = scene.shop.requests.length;
    await scene.client.events.create({
      event_type: 'customer.changed',
      data: { tier: 'gold' },
      custom_headers: { 'x-region': 'us' },
    });
    await scene.shop.received(before + 1);
    await close();
  },
);

subscriptions(
  'a subscription is found, disabled, enabled and deleted with the keyboard',
  async () => {
    const { page, close } = await scene.open('/overview');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await press(page, 'g', 'b');
    await page
      .getByRole('row', {
        name: /gold customers.*enabled.*customer\.\*.*tier, header x-REGION.*shop/,
      })
      .waitFor();
    await inspect(page, 'subscriptions-light');
    await press(page, '/');
    await page.keyboard.type('GOLD');
    await press(page, 'Enter');
    await until('the row of the search', async () => (await page.getByRole('row').count()) === 2);
    await leaveField(page);
    await press(page, 'j', 'Enter');
    await page.getByRole('heading', { name: 'gold customers' }).waitFor();
    await push(page, 'Disable');
    await page.getByText('This subscription matches no events until it is enabled.').waitFor();
    await page.goBack();
    await page.getByRole('row', { name: /gold customers.*disabled/ }).waitFor();
    await page.goForward();
    await push(page, 'Enable');
    await page.getByRole('button', { name: 'Disable' }).waitFor();
    await push(page, 'Delete…');
    await page.getByRole('dialog').getByText('Matching events are no longer sent').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).focus();
    await press(page, 'Enter');
    await page.getByText('gold customers was deleted.').waitFor();
    await until('one row', async () => (await page.getByRole('row').count()) === 2);
    await close();
  },
);

subscriptions('of two who edit at once the second reads what the first has changed', async () => {
  const { page, close } = await scene.open(`/subscriptions/${largeId}`);
  await page.getByLabel('Event types').fill('order.paid');
  await scene.client.subscriptions.update(largeId, {
    filter_config: { filter: { body: { total: 1 } } },
  });
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('owner@example.com changed this subscription').waitFor();
  await page.getByRole('button', { name: 'Discard mine' }).click();
  assert.is(await page.getByLabel('Event types').inputValue(), 'order.*');
  assert.match(await page.getByLabel('Data filter').inputValue(), '"total": 1');
  await close();
});

subscriptions('a viewer tries filters and changes nothing; on a phone the page fits', async () => {
  await scene.become('viewer');
  const { page, close } = await scene.open(`/subscriptions/${largeId}`, { isPhone: true });
  await verdict(page).getByText('The sample would').waitFor();
  await until(
    'the role',
    async () => (await page.getByRole('button', { name: 'Save' }).count()) === 0,
  );
  assert.is(await page.getByRole('button', { name: /Disable|Delete/ }).count(), 0);
  await inspect(page, 'subscription-phone');
  await close();
});

subscriptions.run();
