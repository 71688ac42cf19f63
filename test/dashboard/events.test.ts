import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../support/until.js';
import { dashboardScene, type Scene } from './scene.js';

const events = suite('dashboard/events');

let scene: Scene;
events.before(async () => {
  scene = await dashboardScene();
  const { client, endpointId } = scene;
  for await (const { uid } of client.subscriptions.list()) await client.subscriptions.delete(uid);
  const filter = { body: { total: { $gte: 100 } } };
  await client.subscriptions.create({ name: 'large', endpoint_id: endpointId, filter_config: { event_types: ['order.*'], filter } });
});
events.after(() => scene.close());

events('a person reads why an event reached nobody, and routes it again when the subscription is mended', async () => {
  const { uid } = await scene.client.events.create({
    event_type: 'order.paid',
    data: { total: 12.5 },
  });
  const { page, close } = await scene.open('/events');
  const row = page.getByRole('row', { name: /order\.paid.*no subscription matches/ });
  await row.getByRole('link').click();
  await page.getByText('large its filter wants total to be at least 100; it is 12.5').waitFor();
  for await (const subscription of scene.client.subscriptions.list())
    await scene.client.subscriptions.update(subscription.uid, {
      filter_config: { event_types: ['order.*'], filter: { headers: {}, body: {} } },
    });
  await page.getByRole('button', { name: 'Route again' }).click();
  await page.getByText(/Delivered to shop/).waitFor();
  assert.is((await scene.client.eventDeliveries.list({ eventId: uid }).page()).content.length, 1);
  await close();
});

events('numbers of a payload keep the digits that they came with', async () => {
  const { path } = { path: `/projects/${scene.projectId}/events` };
  const { body } = await scene.api.call('POST', path, '{"event_type":"order.big","data":{"n":12345678901234567890,"price":1.10}}');
  const { page, close } = await scene.open(`/events/${body.data.uid}`);
  const data = page.getByLabel('Data, as it is sent', { exact: true });
  await data.getByText('12345678901234567890').waitFor();
  assert.match((await data.textContent()) ?? '', '"price": 1.10');
  await close();
});

events('an event is found by the start of its id, by its type and by its time, and each is an address', async () => {
  const { uid } = await scene.client.events.create({ event_type: 'customer.created', data: {} });
  const { page, close } = await scene.open('/events');
  const search = page.getByRole('searchbox');
  const rows = page.getByRole('row', { name: /customer\.created|order\./ });
  await search.fill(uid.slice(0, 20));
  await search.press('Enter');
  await until('the event alone', async () => (await rows.count()) === 1);
  assert.match(page.url(), `search=${uid.slice(0, 20)}`);
  await search.fill('customer.created');
  await search.press('Enter');
  await until('those of the type', async () => (await rows.count()) === 1);
  await page.getByLabel('Time').selectOption('Between two times');
  await page.getByLabel('To').fill('2020-01-01T00:00');
  await page.getByText('No events match these filters').waitFor();
  await page.goBack();
  await until('the type again', async () => (await rows.count()) === 1);
  await page.getByRole('button', { name: 'Clear' }).click();
  await until('all of them', async () => (await rows.count()) >= 3);
  await close();
});

events('an empty log leads to the first message', async () => {
  const { uid } = await scene.client.projects.create({ name: 'Empty' });
  const { page, close } = await scene.open('/events');
  await page.getByLabel('Project', { exact: true }).selectOption('Empty');
  await page.getByText('No events yet').waitFor();
  await page.getByRole('link', { name: 'Deliver a first message' }).click();
  const line = await page.getByLabel('Post a message', { exact: true }).textContent();
  assert.match(line ?? '', `${scene.api.url}/api/v1/projects/${uid}/events`);
  await close();
});

events('an unknown event says what it is, and a lost server does not empty the page', async () => {
  const { page, close } = await scene.open('/events/00000000-0000-4000-8000-000000000000');
  await page.getByRole('alert').getByText('not found').waitFor();
  await page.getByRole('link', { name: 'Events' }).first().click();
  await page
    .getByRole('row', { name: /order\./ })
    .first()
    .waitFor();
  await page.context().setOffline(true);
  await page.getByText('The server cannot be reached', { exact: true }).waitFor();
  assert.ok(
    await page
      .getByRole('row', { name: /order\./ })
      .first()
      .isVisible(),
  );
  await page.context().setOffline(false);
  await page.getByText('Connected').waitFor();
  await close();
});

events.run();
