// long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Page } from 'playwright-core';
import { until } from '../support/until.js';
import { inspect, picture, press, push } from './browser.js';
import { dashboardScene, quarantined, type Scene } from './scene.js';

const editor = suite('dashboard/function-editor');

const GOOD = `// go: a line of text with the letters of shortcuts
function transform(order) {
  console.log(order.id);
  return { event_type: 'order.' + (order.status ?? 'new'), data: order };
}`;

const MESSAGES = ['{"id":"A-7","price":1.10}'];

let scene: Scene;
editor.before(async () => {
  scene = await dashboardScene();
});
editor.after(() => scene.close());

async function write(page: Page, text: string): Promise<void> {
  const field = page.getByRole('textbox', { name: 'Function' });
  await field.focus();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.insertText(text);
}

editor(
  'from a quarantined message its function is opened, corrected with the error at its line, saved, and the message replayed',
  async () => {
    const { sourceId: id, ids } = await quarantined(scene, 'orders', MESSAGES);
    const [messageId] = ids;
    const before = scene.shop.requests.length;
    const { page, close } = await scene.open(`/quarantine/${messageId}`);
    await page.getByRole('link', { name: 'Test the function with this message' }).click();
    const outcome = page.getByRole('region', { name: 'Result' });
    await outcome.getByText('would be quarantined').waitFor();
    await page.locator('.cm-mistake', { hasText: 'toLowerCase' }).waitFor();
    assert.match(
      (await page.locator('.cm-bad-line').textContent()) ?? '',
      'order.status.toLowerCase',
    );
    await inspect(page, 'function-wrong');
    await write(page, 'function transform(order) {\n  return order +;\n}');
    await page.locator('.cm-mistake', { hasText: 'on line 2' }).waitFor();
    await write(page, GOOD);
    await outcome.getByText('would be accepted').waitFor();
    assert.is(await page.locator('.cm-mistake').count(), 0);
    await outcome.getByText('The event would go to shop.').waitFor();
    await outcome.getByLabel('Console', { exact: true }).getByText('A-7').waitFor();
    await outcome.getByText('"event_type": "order.new"').waitFor();
    await page.keyboard.press('ControlOrMeta+s');
    await page.getByText(/Function saved/).waitFor();
    assert.is((await scene.client.sources.get(id)).body_function, GOOD);
    await picture(page, 'function');
    await page.getByRole('link', { name: 'Open and replay the message' }).click();
    await page.getByRole('button', { name: 'Replay', exact: true }).click();
    await scene.shop.received(before + 1);
    await close();
  },
);

editor(
  'it runs on a sample of one’s own and on the message of an event, and a source without a function begins with an example',
  async () => {
    const { sourceId: id } = await quarantined(scene, 'plain', MESSAGES, { body_function: null });
    const { page, close } = await scene.open(`/sources/${id}/function`, { theme: 'dark' });
    await page.getByText('would be quarantined').waitFor();
    assert.match(page.url(), /message=/);
    await page.getByRole('button', { name: 'Insert example' }).click();
    await page.getByLabel('Message', { exact: true }).selectOption('Custom');
    await page.getByLabel('Message body').fill('{"id":"B-2","status":"paid"}');
    await page.getByText('would be accepted').waitFor();
    await page.getByText('"event_type": "order.paid"').waitFor();
    await page.getByLabel('Message body').fill('{"id":"B-2","status":"lost","price":1.10}');
    await page.getByText('"event_type": "order.lost"').waitFor();
    await page
      .getByLabel('Message', { exact: true })
      .selectOption({ label: 'Quarantined: Function threw, plain/0/0' });
    await until(
      'its text',
      async () =>
        (await page.getByLabel('Message body').inputValue()) === '{"id":"A-7","price":1.10}',
    );
    assert.match(page.url(), /message=/);
    await inspect(page, 'function-dark');
    await close();
  },
);

editor(
  'a function that somebody else has saved meanwhile is shown, and neither is lost',
  async () => {
    const { sourceId: id } = await quarantined(scene, 'shared', MESSAGES);
    const { page, close } = await scene.open(`/sources/${id}/function`);
    await write(page, GOOD);
    await page.getByText('Unsaved changes').waitFor();
    await scene.client.sources.update(id, { name: 'shared by two' });
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText(/Function saved/).waitFor();
    await write(page, `${GOOD}\n// mine`);
    await scene.client.sources.update(id, { body_function: `${GOOD}\n// theirs` });
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Someone else saved this function').waitFor();
    await page.getByLabel('Current function').getByText('// theirs').waitFor();
    await picture(page, 'function-conflict');
    await page.getByRole('button', { name: 'Overwrite with mine' }).click();
    await until('mine', async () =>
      (await scene.client.sources.get(id)).body_function?.endsWith('// mine'),
    );
    await close();
  },
);

editor(
  'the function of a subscription is tried on a recent event, saved, and a delivery shows what it made',
  async () => {
    const { client, endpointId } = scene;
    const { uid } = await client.subscriptions.create({
      name: 'chat',
      endpoint_id: endpointId,
      filter_config: { event_types: ['chat.*'] },
    });
    await client.events.create({ event_type: 'order.new', data: { id: 'A-8', card: '4111' } });
    const { page, close } = await scene.open(`/subscriptions/${uid}`);
    await page.getByRole('link', { name: 'Function', exact: true }).click();
    await until('the data of the event', async () =>
      (await page.getByLabel('Event data').inputValue()).includes('"A-8"'),
    );
    await page.getByRole('button', { name: 'Insert example' }).click();
    const outcome = page.getByRole('region', { name: 'Result' });
    await outcome.getByText('"text": "Order A-8"').waitFor();
    await write(page, 'function transform(payload) {\n  return payload.missing.id;\n}');
    await outcome.getByText('the attempt would fail').waitFor();
    await page.locator('.cm-mistake', { hasText: 'on line 2' }).waitFor();
    await inspect(page, 'subscription-function-wrong');
    await page.keyboard.press('ControlOrMeta+s');
    await page.getByText(/Function saved/).waitFor();

    const { uid: eventId } = await client.events.create({
      event_type: 'chat.order',
      data: { id: 'A-9', card: '4111' },
    });
    const deliveryOf = async () => {
      const { content } = await client.eventDeliveries.list({ eventId }).page();
      return content.find(({ subscription_id: id }) => id === uid);
    };
    const failed = await until('a failed attempt', async () => {
      const found = await deliveryOf();
      return found && found.attempts > 0 ? found : undefined;
    });
    const delivery = await scene.open(`/deliveries/${failed.uid}`);
    await delivery.page
      .getByText('No request was sent because the function of the subscription failed.')
      .waitFor();
    await write(page, 'const transform = ({ id }) => ({ text: id });');
    await page.keyboard.press('ControlOrMeta+s');
    await until('the corrected function', async () =>
      (await client.subscriptions.get(uid)).function?.startsWith('const'),
    );
    await until('the delivery', async () => (await deliveryOf())?.status === 'success');
    await delivery.page.getByText('transformed the data. The payload shows the result.').waitFor();
    await push(delivery.page, 'Raw');
    await delivery.page.getByText('"text": "A-9"').waitFor();
    assert.is(await delivery.page.getByText('4111').count(), 0);
    await inspect(delivery.page, 'delivery-transformed');
    await delivery.close();
    await close();
  },
);

editor(
  'letters typed into it are no shortcuts, Tab leaves it, and what was not saved is there after another page',
  async () => {
    const { sourceId: id } = await quarantined(scene, 'keys', MESSAGES);
    const { page, close } = await scene.open(`/sources/${id}/function`);
    const field = page.getByRole('textbox', { name: 'Function' });
    await field.focus();
    await page.keyboard.press('ControlOrMeta+Home');
    await page.keyboard.type('// g s q ? / ');
    assert.match(page.url(), /\/function\b/);
    assert.match((await field.textContent()) ?? '', '// g s q ? / function transform');
    await page.keyboard.press('Tab');
    assert.is(await page.evaluate('document.activeElement.textContent'), 'Save');
    await press(page, 'g', 'o');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.goBack();
    await page.getByText('Unsaved changes').waitFor();
    assert.match((await field.textContent()) ?? '', '// g s q');
    await page.getByRole('button', { name: 'Undo changes' }).click();
    await until(
      'the stored one',
      async () => !((await field.textContent()) ?? '').includes('// g s q'),
    );
    await close();
  },
);

editor.run();
