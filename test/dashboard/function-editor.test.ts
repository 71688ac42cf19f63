import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Page } from 'playwright-core';
import { eventId } from '#core/events/ids';
import { insertSource } from '#store/config/sources';
import { quarantineMessages } from '#store/quarantine/messages';
import { until } from '../support/until.js';
import { accessibilityMistakes, picture } from './browser.js';
import { dashboardScene, type Scene } from './scene.js';

const editor = suite('dashboard/function-editor');

const WRONG = `function transform(order) {
  return { event_type: 'order.' + order.status.toLowerCase(), data: order };
}`;
const GOOD = `// go: a line of text with the letters of shortcuts
function transform(order) {
  console.log(order.id);
  return { event_type: 'order.' + (order.status ?? 'new'), data: order };
}`;

let scene: Scene;
editor.before(async () => {
  scene = await dashboardScene();
});
editor.after(() => scene.close());

/** A source that is not read, with a message that its function could not take. */
async function sourceWith(name: string, body_function: string | null) {
  const { api, projectId } = scene;
  const pub_sub = { type: 'kafka', kafka: { brokers: ['localhost:1'], topic_name: 'orders' } };
  const { id } = await insertSource(api.db.knex, projectId, { name, type: 'pub_sub', pub_sub, body_function, is_disabled: true });
  const coordinates = `${name}/0/1`;
  const occurredAtMs = Date.now() - 1_000;
  const messageId = eventId(id, coordinates, occurredAtMs);
  const reason = 'The transform function threw a TypeError on line 2.';
  const raw = Buffer.from('{"id":"A-7","price":1.10}');
  await quarantineMessages(api.db.pool, [
    { projectId, id: messageId, sourceId: id, occurredAtMs, coordinates, code: 'transform_threw', reason, headers: '{}', raw },
  ]);
  return { id, messageId };
}

async function write(page: Page, text: string): Promise<void> {
  const field = page.getByRole('textbox', { name: 'Function' });
  await field.focus();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.insertText(text);
}

editor(
  'from a quarantined message its function is opened, corrected with the error at its line, saved, and the message replayed',
  async () => {
    const { id, messageId } = await sourceWith('orders', WRONG);
    const before = scene.shop.requests.length;
    const { page, problems, close } = await scene.open(`/quarantine/${messageId}`);
    await page.getByRole('link', { name: 'Open the function on this message' }).click();
    const outcome = page.getByRole('region', { name: 'What would become of it' });
    await outcome.getByText('would be quarantined').waitFor();
    await page.locator('.cm-mistake', { hasText: 'toLowerCase' }).waitFor();
    assert.match((await page.locator('.cm-bad-line').textContent()) ?? '', 'order.status.toLowerCase');
    assert.equal(await accessibilityMistakes(page), []);
    await picture(page, 'function-wrong');
    await write(page, 'function transform(order) {\n  return order +;\n}');
    await page.locator('.cm-mistake', { hasText: 'on line 2' }).waitFor();
    await write(page, GOOD);
    await outcome.getByText('would be accepted').waitFor();
    assert.is(await page.locator('.cm-mistake').count(), 0);
    await outcome.getByText('It would go to shop.').waitFor();
    await outcome.getByLabel('Console', { exact: true }).getByText('A-7').waitFor();
    await outcome.getByText('"event_type": "order.new"').waitFor();
    await page.keyboard.press('ControlOrMeta+s');
    await page.getByText(/The function is saved/).waitFor();
    assert.is((await scene.client.sources.get(id)).body_function, GOOD);
    await picture(page, 'function');
    await page.getByRole('link', { name: 'To the quarantined message, to replay it' }).click();
    await page.getByRole('button', { name: 'Replay', exact: true }).click();
    await scene.shop.received(before + 1);
    assert.equal(problems, []);
    await close();
  },
);

editor(
  'it runs on a sample of one’s own and on the message of an event, and a source without a function begins with an example',
  async () => {
    const { id } = await sourceWith('plain', null);
    const { page, problems, close } = await scene.open(`/sources/${id}/function`, { theme: 'dark' });
    await page.getByText('would be quarantined').waitFor();
    await page.getByRole('button', { name: 'Begin with an example' }).click();
    await page.getByText('would be accepted').waitFor();
    await page.getByText('"event_type": "order.paid"').waitFor();
    await page.getByLabel('Its text').fill('{"id":"B-2","status":"lost","price":1.10}');
    await page.getByText('"event_type": "order.lost"').waitFor();
    await page.getByLabel('Message', { exact: true }).selectOption({ label: 'Quarantined: Function threw, plain/0/1' });
    await until('its text', async () => (await page.getByLabel('Its text').inputValue()) === '{"id":"A-7","price":1.10}');
    assert.match(page.url(), /message=/);
    assert.equal(await accessibilityMistakes(page), []);
    await picture(page, 'function-dark');
    assert.equal(problems, []);
    await close();
  },
);

editor('a function that somebody else has saved meanwhile is shown, and neither is lost', async () => {
  const { id } = await sourceWith('shared', WRONG);
  const { page, problems, close } = await scene.open(`/sources/${id}/function`);
  await write(page, GOOD);
  await page.getByText('Not saved').waitFor();
  await scene.client.sources.update(id, { name: 'shared by two' });
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText(/The function is saved/).waitFor();
  await write(page, `${GOOD}\n// mine`);
  await scene.client.sources.update(id, { body_function: `${GOOD}\n// theirs` });
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Someone has saved another function meanwhile').waitFor();
  await page.getByLabel('The function as it is now').getByText('// theirs').waitFor();
  await picture(page, 'function-conflict');
  await page.getByRole('button', { name: 'Save mine over it' }).click();
  await until('mine', async () => (await scene.client.sources.get(id)).body_function?.endsWith('// mine'));
  assert.equal(problems, []);
  await close();
});

editor('the function of a subscription is tried on a recent event, saved, and a delivery shows what it made', async () => {
  const { client, endpointId } = scene;
  const { uid } = await client.subscriptions.create({
    name: 'chat',
    endpoint_id: endpointId,
    filter_config: { event_types: ['chat.*'] },
  });
  await client.events.create({ event_type: 'order.new', data: { id: 'A-8', card: '4111' } });
  const { page, problems, close } = await scene.open(`/subscriptions/${uid}`);
  await page.getByRole('link', { name: 'Function', exact: true }).click();
  await until('the data of the event', async () => (await page.getByLabel('Its data').inputValue()).includes('"A-8"'));
  await page.getByRole('button', { name: 'Begin with an example' }).click();
  const outcome = page.getByRole('region', { name: 'What would become of it' });
  await outcome.getByText('"text": "Order A-8"').waitFor();
  await write(page, 'function transform(payload) {\n  return payload.missing.id;\n}');
  await outcome.getByText('the attempt would fail').waitFor();
  await page.locator('.cm-mistake', { hasText: 'on line 2' }).waitFor();
  assert.equal(await accessibilityMistakes(page), []);
  await picture(page, 'subscription-function-wrong');
  await page.keyboard.press('ControlOrMeta+s');
  await page.getByText(/The function is saved/).waitFor();

  const { uid: eventId } = await client.events.create({ event_type: 'chat.order', data: { id: 'A-9', card: '4111' } });
  const deliveryOf = async () => {
    const { content } = await client.eventDeliveries.list({ eventId }).page();
    return content.find(({ subscription_id: id }) => id === uid);
  };
  const failed = await until('a failed attempt', async () => {
    const found = await deliveryOf();
    return found && found.attempts > 0 ? found : undefined;
  });
  const delivery = await scene.open(`/deliveries/${failed.uid}`);
  await delivery.page.getByText('Nothing was sent: the function of the subscription failed.').waitFor();
  await write(page, 'const transform = ({ id }) => ({ text: id });');
  await page.keyboard.press('ControlOrMeta+s');
  await until('the corrected function', async () => (await client.subscriptions.get(uid)).function?.startsWith('const'));
  await until('the delivery', async () => (await deliveryOf())?.status === 'success');
  await delivery.page.getByText('changed the data: its endpoint gets what the requests below show').waitFor();
  await delivery.page.getByText('"text": "A-9"').waitFor();
  assert.is(await delivery.page.getByText('4111').count(), 0);
  assert.equal(await accessibilityMistakes(delivery.page), []);
  await picture(delivery.page, 'delivery-transformed');
  assert.equal([problems, delivery.problems], [[], []]);
  await delivery.close();
  await close();
});

editor('letters typed into it are no shortcuts, Tab leaves it, and what was not saved is there after another page', async () => {
  const { id } = await sourceWith('keys', WRONG);
  const { page, problems, close } = await scene.open(`/sources/${id}/function`);
  const field = page.getByRole('textbox', { name: 'Function' });
  await field.focus();
  await page.keyboard.press('ControlOrMeta+Home');
  await page.keyboard.type('// g s q ? / ');
  assert.match(page.url(), /\/function$/);
  assert.match((await field.textContent()) ?? '', '// g s q ? / function transform');
  await page.keyboard.press('Tab');
  assert.is(await page.evaluate('document.activeElement.textContent'), 'Save');
  await page.keyboard.press('g');
  await page.keyboard.press('o');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.goBack();
  await page.getByText('Not saved').waitFor();
  assert.match((await field.textContent()) ?? '', '// g s q');
  await page.getByRole('button', { name: 'Undo changes' }).click();
  await until('the stored one', async () => !((await field.textContent()) ?? '').includes('// g s q'));
  assert.equal(problems, []);
  await close();
});

editor.run();
