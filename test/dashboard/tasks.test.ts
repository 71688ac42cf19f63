import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Page } from 'playwright-core';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { until } from '../support/until.js';
import { panel } from './browser.js';
import { dashboardScene, failures, ONCE, quarantined, subscribed, type Scene } from './scene.js';

// The most frequent tasks of operators, starting at the overview, with the mouse only:
// docs/guides/dashboard.md lists the numbers of clicks. Choosing in a select is one click.
const tasks = suite('dashboard/tasks');
const page = readFileSync(new URL('../../docs/guides/dashboard.md', import.meta.url), 'utf8');

let scene: Scene;
let billing: Endpoint;
let sourceId: string;
tasks.before(async () => {
  billing = await endpoint({ answer: { status: 500, body: 'out of order' } });
  const invoices = { event_types: ['invoice.*'], filter: { body: { total: { $gte: 1 } } } };
  const fields = { name: 'billing', url: billing.url, strategy: ONCE };
  scene = await dashboardScene({}, ({ client }) => subscribed(client, fields, invoices));
  const notJson = { code: 'not_json', reason: 'The message is not JSON.' };
  const source = { body_function: null, is_disabled: false, ...notJson };
  ({ sourceId } = await quarantined(
    scene,
    'orders',
    ['{"event_type":"order.paid","data":{}'],
    source,
  ));
  await scene.client.apiKeys.create({ name: 'ci' });
  for (let n = 1; n <= 2; n++)
    await scene.client.events.create({ event_type: 'invoice.sent', data: { total: n } });
  await failures(scene, 2);
});
tasks.after(async () => {
  await scene.close();
  await billing.close();
});

const click = (shown: Page, name: string) =>
  shown.getByRole('button', { name, exact: true }).click();
const follow = (shown: Page, name: string | RegExp) =>
  shown.getByRole('link', { name, exact: true }).first().click();
const goTo = (shown: Page, name: string) =>
  shown.getByRole('navigation').getByRole('link', { name, exact: true }).click();

/** Declares a documented task; `run` proves that it is done. */
function task(name: string, run: (shown: Page) => Promise<void>): void {
  tasks(name, async () => {
    const documented = new RegExp(`^\\| ${name} \\|.*\\| (\\d+) \\|$`, 'm').exec(page)?.[1];
    const { page: shown, close } = await scene.open('/overview');
    await shown.getByRole('heading', { name: 'Overview' }).waitFor();
    let clicks = 0;
    await shown.exposeFunction('countClick', () => clicks++);
    await shown.evaluate(`for (const kind of ['click', 'change']) addEventListener(kind, (event) => {
      if (kind === 'change' && event.target.localName !== 'select') return;
      // A label hands its click on to its field.
      if (kind === 'click' && (event.detail === 0 || event.target.localName === 'select')) return;
      countClick();
    }, true)`);
    await run(shown);
    assert.is(clicks, Number(documented), 'clicks, compared with docs/guides/dashboard.md');
    await close();
  });
}

task('Find what failed in the last hour and resend it', async (shown) => {
  billing.answer({ status: 200 });
  await follow(shown, 'Failed deliveries');
  await shown.getByLabel('Time').selectOption('Last hour');
  await click(shown, 'Resend…');
  await click(shown, 'Resend 2');
  await shown.getByText('2 queued.').waitFor();
  await failures(scene, 0);
});

task('Open an issue, see why, fix it, resend what failed since', async (shown) => {
  billing.answer({ status: 500, body: 'out of order' });
  await scene.client.events.create({ event_type: 'invoice.sent', data: { total: 3 } });
  await failures(scene, 1);
  await follow(shown, 'HTTP 500 at billing');
  await shown.getByLabel('Response body', { exact: true }).getByText('out of order').waitFor();
  billing.answer({ status: 200 });
  await shown.getByRole('button', { name: /^Retry all since/ }).click();
  await click(shown, 'Retry 1 now');
  await failures(scene, 0);
});

task('Find why an event was not delivered', async (shown) => {
  await scene.client.subscriptions.create({
    name: 'x',
    endpoint_id: scene.endpointId,
    filter_config: { event_types: ['other'] },
  });
  await scene.client.events.create({ event_type: 'refund.sent', data: {} });
  await goTo(shown, 'Events');
  await follow(shown, /refund\.sent/);
  await panel(shown, 'Routing')
    .getByText('the event type refund.sent does not match other')
    .waitFor();
});

task('Pause an endpoint', async (shown) => {
  await goTo(shown, 'Endpoints');
  await follow(shown, 'billing');
  await click(shown, 'Pause');
  await panel(shown, 'State')
    .getByText('Deliveries are held until the endpoint is activated.')
    .waitFor();
});

task('Rotate a secret', async (shown) => {
  await goTo(shown, 'Endpoints');
  await follow(shown, 'billing');
  await click(shown, 'Rotate…');
  await click(shown, 'Rotate');
  await shown.getByText(/^whsec_[A-Za-z0-9+/]{43}=$/).waitFor();
});

task('Find why a message was quarantined, correct it and replay it', async (shown) => {
  await panel(shown, 'Health').getByRole('link', { name: 'Quarantine' }).click();
  await follow(shown, 'Not JSON');
  await click(shown, 'Edit and replay');
  await shown.getByLabel('Message body').click();
  await shown.getByLabel('Message body').fill('{"event_type":"order.paid","data":{}}');
  await click(shown, 'Save and replay');
  await shown.getByText('Message replayed as an event.').waitFor();
});

task('Pause a source', async (shown) => {
  await goTo(shown, 'Sources');
  await follow(shown, 'orders');
  await click(shown, 'Pause');
  await shown.getByText('Source paused. Messages wait in the broker.').waitFor();
});

task('Change the function of a source', async (shown) => {
  await goTo(shown, 'Sources');
  await follow(shown, 'orders');
  await follow(shown, 'Function');
  await shown.getByRole('textbox', { name: 'Function' }).click();
  await shown.keyboard.insertText(
    'function transform(data) { return { event_type: "order.paid", data }; }',
  );
  await click(shown, 'Save');
  await until('the function', async () =>
    (await scene.client.sources.get(sourceId)).body_function?.includes('order.paid'),
  );
});

task('Find who changed an endpoint', async (shown) => {
  await scene.client.endpoints.update(scene.endpointId, { name: 'the shop' });
  await goTo(shown, 'Audit log');
  await shown.getByLabel('Resource', { exact: true }).selectOption('endpoints.*');
  await shown.locator('summary', { hasText: 'the shop' }).click();
  await shown.getByRole('row', { name: /name.*shop.*the shop/ }).waitFor();
});

task('Revoke a key', async (shown) => {
  await goTo(shown, 'API keys');
  await click(shown, 'Revoke ci');
  await click(shown, 'Revoke');
  await until(
    'the revoked key',
    async () => (await shown.getByRole('button', { name: 'Revoke ci' }).count()) === 0,
  );
});

task('Invite a colleague', async (shown) => {
  await goTo(shown, 'People');
  await click(shown, 'Invite…');
  await shown.getByLabel('Email').click();
  await shown.getByLabel('Email').fill('ada@example.com');
  await click(shown, 'Create link');
  await shown.getByText('/#invitation=').waitFor();
});

tasks.run();
