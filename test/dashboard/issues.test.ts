import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { until } from '../support/until.js';
import { inspect } from './browser.js';
import { dashboardScene, failures, ONCE, subscribed, type Scene } from './scene.js';

const issues = suite('dashboard/issues');

let scene: Scene;
let billing: Endpoint;
issues.before(async () => {
  billing = await endpoint({ answer: { status: 500, body: 'no ledger' } });
  const fields = { name: 'billing', url: billing.url, strategy: ONCE };
  scene = await dashboardScene({}, ({ client }) =>
    subscribed(client, fields, { event_types: ['invoice.*'] }),
  );
});
issues.after(async () => {
  await scene.close();
  await billing.close();
});

issues('an operator opens an issue, sees why, and sends what failed since', async () => {
  for (let n = 0; n < 3; n++)
    await scene.client.events.create({ event_type: 'invoice.sent', data: { n } });
  await failures(scene, 3);
  const { page, close } = await scene.open('/overview');
  await page.getByRole('link', { name: 'HTTP 500 at billing' }).click();
  await page.getByRole('heading', { name: 'HTTP 500 at billing' }).waitFor();
  await page.getByLabel('Response body', { exact: true }).getByText('no ledger').waitFor();
  await inspect(page, 'issue');
  billing.answer({ status: 200 });
  await page.getByRole('button', { name: /^Retry all since/ }).click();
  await page.getByText(/^3 failed and waiting deliveries to billing since/).waitFor();
  await page.getByRole('button', { name: 'Retry 3 now' }).click();
  await page.getByText('3 queued.').waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByText('resolved', { exact: true }).waitFor();
  await close();
  await failures(scene, 0);
});

issues('a muted issue leaves the open ones', async () => {
  billing.answer({ status: 503 });
  await scene.client.events.create({ event_type: 'invoice.due', data: {} });
  const { page, close } = await scene.open('/issues');
  await page
    .getByRole('row', { name: /HTTP 503.*billing/ })
    .getByRole('link')
    .click();
  await page.getByRole('button', { name: 'Mute', exact: true }).click();
  await page.getByText('muted', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'Issues' }).first().click();
  await page.getByLabel('State').selectOption('Muted');
  await page.getByRole('row', { name: /HTTP 503.*billing/ }).waitFor();
  await inspect(page, 'issues');
  await close();
});

issues('a delivery that waits for its retry is sent now', async () => {
  const { uid } = await scene.client.endpoints.create({
    name: 'ledger',
    url: billing.url,
    strategy: { type: 'linear', duration: 3_600, retry_count: 3 },
  });
  await scene.client.subscriptions.create({
    name: 'ledger',
    endpoint_id: uid,
    filter_config: { event_types: ['entry.*'] },
  });
  billing.answer({ status: 500 });
  const waiting = async () =>
    (await scene.client.eventDeliveries.list({ endpointId: uid, status: ['retry'] }).page())
      .content;
  // The agent hears of the new endpoint within a second.
  await until('a delivery to wait', async () => {
    if ((await waiting()).length === 0)
      await scene.client.events.create({ event_type: 'entry.made', data: {} });
    return (await waiting()).length > 0;
  });
  billing.answer({ status: 200 });
  const delivery = (await waiting())[0]!;
  const { page, close } = await scene.open(`/deliveries/${delivery.uid}`);
  await page.getByRole('button', { name: 'Retry now' }).click();
  await page.getByText('Attempt 2', { exact: true }).waitFor();
  assert.is((await scene.client.eventDeliveries.get(delivery.uid)).status, 'success');
  await page.goto(`${scene.api.url}/projects/${scene.projectId}/deliveries?status=retry`);
  await page.getByRole('button', { name: 'Retry now…' }).waitFor();
  await close();
});

issues.run();
