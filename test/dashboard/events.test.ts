import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../support/until.js';
import { inspect, push } from './browser.js';
import { dashboardScene, type Scene } from './scene.js';

const events = suite('dashboard/events');

const HOSTILE = '<img src=x onerror=window.hacked=1>';

let scene: Scene;
events.before(async () => {
  scene = await dashboardScene({}, async ({ client, endpointId }) => {
    for await (const { uid } of client.subscriptions.list()) await client.subscriptions.delete(uid);
    const filter = { body: { total: { $gte: 100 } } };
    await client.subscriptions.create({
      name: 'large',
      endpoint_id: endpointId,
      filter_config: { event_types: ['order.*'], filter },
    });
  });
});
events.after(() => scene.close());

events(
  'a person reads why an event reached nobody, and routes it again when the subscription is mended',
  async () => {
    const { uid } = await scene.client.events.create({
      event_type: 'order.paid',
      data: { total: 12.5 },
    });
    const { page, close } = await scene.open('/events');
    const row = page.getByRole('row', { name: /order\.paid.*no subscription matches/ });
    await row.getByRole('link').click();
    await page
      .getByText('large the filter requires total to be at least 100, but it is 12.5')
      .waitFor();
    for await (const subscription of scene.client.subscriptions.list())
      await scene.client.subscriptions.update(subscription.uid, {
        filter_config: { event_types: ['order.*'], filter: { headers: {}, body: {} } },
      });
    await page.getByRole('button', { name: 'Replay' }).click();
    await page.getByText(/Delivered to shop/).waitFor();
    assert.is((await scene.client.eventDeliveries.list({ eventId: uid }).page()).content.length, 1);
    await close();
  },
);

events('numbers of a payload keep the digits that they came with', async () => {
  const { path } = { path: `/projects/${scene.projectId}/events` };
  const { body } = await scene.api.call(
    'POST',
    path,
    '{"event_type":"order.big","data":{"n":12345678901234567890,"price":1.10}}',
  );
  const { page, close } = await scene.open(`/events/${body.data.uid}`);
  await page.getByLabel('Data', { exact: true }).getByText('12345678901234567890').waitFor();
  await push(page, 'Raw');
  const data = page.getByLabel('Raw data', { exact: true });
  await data.getByText('12345678901234567890').waitFor();
  assert.match((await data.textContent()) ?? '', '"price": 1.10');
  await close();
});

events(
  'the message that an event was made of stands beside it, in its forms, and whatever it holds stays text',
  async () => {
    const { client } = scene;
    const body_function =
      'function transform(order) { return { event_type: "kept.order", data: { total: order.total } }; }';
    const { uid: sourceId, url } = await client.sources.create({
      name: 'kept',
      type: 'http',
      body_function,
      forward_headers: ['x-shop'],
    });
    const post = (note: string) =>
      fetch(url!, {
        method: 'POST',
        body: JSON.stringify({ total: 200, note }),
        headers: { 'x-shop': HOSTILE },
      });
    await post('not kept');
    const [before] = (await client.events.list({ sourceId }).page()).content;
    const { page, close } = await scene.open(`/events/${before!.uid}`);
    const what = page.getByRole('region', { name: 'Timeline' });
    await what.getByText('Message not stored.').waitFor();
    await what.getByRole('link', { name: 'Keep messages' }).click();
    await page.getByRole('checkbox', { name: 'Keep messages' }).check();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Source saved.').waitFor();
    await page.goto(page.url().replace('?tab=settings', ''));
    await page.getByText('with their events').waitFor();
    await new Promise((resolve) => setTimeout(resolve, 1_100));

    await post(HOSTILE);
    const { uid } = (await client.events.list({ sourceId }).page()).content[0]!;
    await page.goto(page.url().replace(/sources.*/, `events/${uid}`));
    await what.getByText(/Message stored, \d+ B/).waitFor();
    await push(page, 'Raw');
    assert.not.match(
      (await page.getByLabel('Raw data', { exact: true }).textContent()) ?? '',
      'onerror',
    );
    const message = page.getByRole('region', { name: 'Payload' });
    await message.getByRole('button', { name: /^Message/ }).click();
    await message.getByLabel('Message', { exact: true }).getByText(HOSTILE).waitFor();
    await message.getByLabel('Message headers').getByText(HOSTILE).waitFor();
    await message.getByRole('button', { name: 'JSON' }).click();
    await message.getByLabel('JSON', { exact: true }).getByText('"note"').waitFor();
    await message.getByRole('button', { name: 'Hex' }).click();
    await message.getByLabel('Bytes', { exact: true }).getByText('000000').waitFor();
    await inspect(page, 'event-message');
    assert.is(await page.evaluate('window.hacked'), undefined);

    await page.goto(page.url().replace(/events.*/, `sources/${sourceId}/function?event=${uid}`));
    await page.getByText('"total": 200').waitFor();
    assert.match(await page.getByLabel('Message body').inputValue(), '"note":"<img');
    await page
      .getByLabel('Message', { exact: true })
      .selectOption({ value: `event ${before!.uid}` });
    await page.getByText(/The original message was not kept. This is the event data/).waitFor();
    await close();
  },
);

events(
  'an event is found by the start of its id, its data, its type and its time, and each is an address',
  async () => {
    const { uid } = await scene.client.events.create({
      event_type: 'customer.created',
      data: { customer: { number: 4711 } },
    });
    const { page, close } = await scene.open('/events');
    const search = page.getByRole('searchbox');
    const rows = page.getByRole('row', { name: /customer\.created|order\./ });
    await search.fill(uid.slice(0, 20));
    await search.press('Enter');
    await until('the event alone', async () => (await rows.count()) === 1);
    assert.match(page.url(), `search=${uid.slice(0, 20)}`);
    await search.fill('data.customer.number 4711');
    await page.getByText(/at character 22, such as data\.order\.id = 42/).waitFor();
    await search.fill('data.customer.number = 4711');
    await until('the event with the number', async () => (await rows.count()) === 1);
    await search.fill('customer.created');
    await search.press('Enter');
    await until('those of the type', async () => (await rows.count()) === 1);
    await page.getByLabel('Time').selectOption('Custom range');
    await page.getByLabel('To').fill('2020-01-01T00:00');
    await page.getByText('No events match these filters').waitFor();
    await page.goBack();
    await until('the type again', async () => (await rows.count()) === 1);
    await page.getByRole('button', { name: 'Clear' }).click();
    await until('all of them', async () => (await rows.count()) >= 3);
    await close();
  },
);

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
  await page.getByText(/^The server cannot be reached since \d/).waitFor();
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
