import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../support/until.js';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { inspect, leaveField, press, push } from './browser.js';
import { dashboardScene, failures, ONCE, subscribed, type Scene } from './scene.js';

const deliveries = suite('dashboard/deliveries');

/** Text that would be executed as HTML. */
const HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';

let scene: Scene;
let billing: Endpoint;
deliveries.before(async () => {
  billing = await endpoint({
    answer: {
      status: 500,
      headers: { 'x-note': HOSTILE },
      body: `{"reason":${JSON.stringify(HOSTILE)},"total":1.10}`,
    },
  });
  const fields = { name: 'billing', url: billing.url, strategy: ONCE };
  scene = await dashboardScene({}, ({ client }) =>
    subscribed(client, fields, { event_types: ['invoice.*'] }),
  );
  for (let n = 0; n < 3; n++)
    await scene.client.events.create({ event_type: 'invoice.sent', data: { n, note: HOSTILE } });
  await failures(scene, 3);
});
deliveries.after(async () => {
  await scene.close();
  await billing.close();
});

deliveries(
  'an operator finds a failed delivery, reads why, sends it again, and sees it succeed',
  async () => {
    const { page, close } = await scene.open('/deliveries');
    await page.getByLabel('Status').selectOption('failure');
    await page.getByRole('button', { name: 'Time ↓' }).click();
    await page.getByRole('columnheader', { name: 'Time ↑' }).waitFor();
    await page
      .getByRole('row', { name: /^invoice\.sent failure billing 500 [\d.]+ m?s 1 / })
      .first()
      .getByRole('link')
      .click();
    await page.getByRole('heading', { name: 'invoice.sent' }).waitFor();
    await page.getByText('Attempt 1', { exact: true }).waitFor();
    await page.getByLabel('Response headers', { exact: true }).getByText('HTTP 500').waitFor();
    await page.getByLabel('Response body', { exact: true }).getByText('1.10').waitFor();
    await inspect(page, 'delivery-failed');
    billing.answer({ status: 200, body: 'thanks' });
    await page.getByRole('button', { name: 'Resend' }).click();
    await page.getByText('Attempt 2', { exact: true }).waitFor();
    await page.getByLabel('Response body', { exact: true }).getByText('thanks').waitFor();
    await page.getByText('Compare two attempts').click();
    await page.getByRole('row', { name: /^Response 500 200$/ }).waitFor();
    await inspect(page, 'delivery-compared');
    // The filter is in the address: the back button restores the list.
    await page.goBack();
    await until(
      'two rows',
      async () => (await page.getByRole('row', { name: /invoice/ }).count()) === 2,
    );
    assert.is(await page.getByLabel('Status').inputValue(), 'failure');
    await close();
  },
);

deliveries('payloads, answers and names are shown as text, whatever they hold', async () => {
  await scene.client.events.create({
    event_type: HOSTILE,
    data: { [HOSTILE]: HOSTILE },
    custom_headers: { 'x-note': HOSTILE },
  });
  const { page, close } = await scene.open(`/deliveries?search=${encodeURIComponent(HOSTILE)}`);
  await page.getByRole('link', { name: HOSTILE }).first().click();
  await page.getByRole('heading', { name: HOSTILE }).waitFor();
  await page.getByLabel('Request data', { exact: true }).getByText('onerror').first().waitFor();
  await push(page, 'Raw');
  await page.getByLabel('Request body', { exact: true }).getByText('onerror').waitFor();
  await push(page, 'Headers');
  await page.getByLabel('Request headers', { exact: true }).getByText('x-note').waitFor();
  const { event_id: event } = (await scene.client.eventDeliveries.list({ perPage: 1 }).page())
    .content[0]!;
  await page.goto(`${scene.api.url}/projects/${scene.projectId}/events/${event}`);
  await page.reload();
  assert.is(await page.evaluate('window.hacked'), undefined);
  assert.is(await page.locator('img').count(), 0);
  await close();
});

deliveries('all that a filter matches is sent again after a count, with its progress', async () => {
  billing.answer({ status: 500 });
  for (let n = 0; n < 4; n++)
    await scene.client.events.create({ event_type: 'invoice.due', data: { n } });
  await failures(scene, 6);
  billing.answer({ status: 200 });
  const { page, close } = await scene.open('/deliveries?status=failure&search=invoice.due');
  await page
    .getByRole('row', { name: /invoice\.due/ })
    .first()
    .waitFor();
  await page.getByRole('button', { name: 'Resend…' }).click();
  await page.getByText('4 failed deliveries of invoice.due, any time.').waitFor();
  await inspect(page, 'deliveries-resend');
  await page.getByRole('button', { name: 'Resend 4' }).click();
  await page.getByText('4 queued.').waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByText('No deliveries match these filters').waitFor();
  await failures(scene, 2);
  await close();
});

deliveries('everything is done with the keyboard alone', async () => {
  billing.answer({ status: 500 });
  await scene.client.events.create({ event_type: 'invoice.late', data: {} });
  await failures(scene, 3);
  billing.answer({ status: 200 });
  const { page, close } = await scene.open('/overview');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await press(page, 'g', 'd');
  await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
  await press(page, '?');
  await page.getByRole('dialog').getByText('Next row').waitFor();
  const menu = await page.getByRole('navigation').getByRole('link').allTextContents();
  const listed = await page.getByRole('dialog').locator('section:last-child dd').allTextContents();
  assert.ok(menu.length > 10);
  assert.equal(listed, menu);
  await press(page, 'Escape');
  await press(page, '/');
  await page.keyboard.type('invoice.late');
  await press(page, 'Enter');
  await until(
    'the rows of the search',
    async () => (await page.getByRole('row', { name: /invoice\.late/ }).count()) === 2,
  );
  await leaveField(page);
  await press(page, 'j', 'j', 'k', 'Enter');
  await page.getByRole('heading', { name: 'invoice.late' }).waitFor();
  await page.goBack();
  await page
    .getByRole('row', { name: /invoice\.late.*failure/ })
    .getByRole('link')
    .focus();
  await press(page, 'r');
  await page.getByText('Resending invoice.late.').waitFor();
  await failures(scene, 2);
  await close();
});

deliveries(
  'a log of thousands renders the rows that are seen, and the reader is not moved by new ones',
  async () => {
    const events = Array.from({ length: 1_000 }, (_, n) => ({
      event_type: 'load.test',
      data: { n },
    }));
    await scene.client.events.createBatch({ events });
    await until('the deliveries', async () => {
      const { content } = await scene.client.eventDeliveries.list({ perPage: 100 }).page();
      return (
        content.length === 100 &&
        content.every(({ event_metadata: { event_type: type } }) => type === 'load.test')
      );
    });
    const { page, close } = await scene.open('/deliveries');
    const body = page.locator('.log-body');
    await page
      .getByRole('row', { name: /load\.test/ })
      .first()
      .waitFor();
    for (let n = 0; n < 12; n++) {
      await body.evaluate((it) => (it.scrollTop = it.scrollHeight));
      await page.waitForTimeout(80);
    }
    assert.ok((await page.getByRole('row').count()) < 80);
    const top = await body.evaluate((it) => it.scrollTop);
    assert.ok(top > 5_000, `scrolled to ${top}`);
    await scene.client.events.create({ event_type: 'invoice.new', data: {} });
    await page.getByRole('button', { name: /^Show \d+ new$/ }).waitFor();
    assert.is(await body.evaluate((it) => it.scrollTop), top);
    await page.getByRole('button', { name: /^Show \d+ new$/ }).click();
    await body.evaluate((it) => (it.scrollTop = 0));
    await page
      .getByRole('row', { name: /invoice\.new/ })
      .first()
      .waitFor();
    await close();
  },
);

deliveries.run();
