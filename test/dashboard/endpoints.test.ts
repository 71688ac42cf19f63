import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { changed } from '#dashboard/api/change';
import { fieldsOf } from '#dashboard/pages/endpoints/form/endpoint-fields';
import { until } from '../support/until.js';
import { inspect, leaveField, panel, picture, press } from './browser.js';
import { dashboardScene, failures, ONCE, subscribed, type Scene } from './scene.js';

const endpoints = suite('dashboard/endpoints');

let scene: Scene;
let billing: Endpoint;
let mended: Endpoint;
let billingId: string;
endpoints.before(async () => {
  billing = await endpoint({ answer: { status: 500, body: '{"error":"database is read-only"}' } });
  mended = await endpoint();
  const authentication = { type: 'bearer', bearer: { token: 'the-old-token' } } as const;
  const fields = { name: 'billing', url: billing.url, strategy: ONCE, authentication };
  const invoices = { event_types: ['invoice.*'], filter: { body: { total: { $gte: 1 } } } };
  scene = await dashboardScene({}, async ({ client }) => {
    ({ endpointId: billingId } = await subscribed(client, fields, invoices));
  });
});
endpoints.after(async () => {
  await scene.close();
  await billing.close();
  await mended.close();
});

endpoints(
  'an operator finds what fails, reads why, mends the endpoint, sends again, and sees it succeed',
  async () => {
    for (let n = 1; n <= 2; n++)
      await scene.client.events.create({ event_type: 'invoice.sent', data: { total: n } });
    await failures(scene, 2, billingId);
    const { page, close } = await scene.open('/overview');
    await panel(page, 'Health').getByText('Requests to billing fail: 2 of 2').waitFor();
    await panel(page, 'Health').getByRole('link', { name: 'Open billing' }).click();
    await page.getByRole('heading', { name: 'billing' }).waitFor();
    await panel(page, 'Health').getByText('The endpoint answered 500.').waitFor();
    await inspect(page, 'endpoint-failing-light');
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('URL', { exact: true }).fill(mended.url);
    await page.getByRole('button', { name: 'Save' }).click();
    // The stored secret is not sent to another origin: the API requires it again, and the field says
    // so.
    await page.getByText(/Token is not sent to another origin than/).waitFor();
    await inspect(page);
    await panel(page, 'Settings').scrollIntoViewIfNeeded();
    await picture(page, 'endpoint-moved');
    await page.getByLabel('Token', { exact: true }).fill('the-new-token');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.', { exact: true }).waitFor();
    await panel(page, 'Settings').getByText(mended.url).waitFor();
    assert.not.match((await page.locator('main').textContent()) ?? '', /the-(old|new)-token/);
    await page.getByRole('link', { name: 'Resend failed deliveries…' }).click();
    await page.getByRole('button', { name: 'Resend…' }).click();
    await page.getByRole('button', { name: 'Resend 2' }).click();
    await page.getByText('2 queued.').waitFor();
    const [request] = await mended.received(2);
    assert.is(request!.headers['authorization'], 'Bearer the-new-token');
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByLabel('Status').selectOption('success');
    await until(
      'two rows',
      async () => (await page.getByRole('row', { name: /invoice\.sent.*success/ }).count()) === 2,
    );
    await close();
  },
);

endpoints('a parked key is released, and the later deliveries of the key follow', async () => {
  const at = await endpoint({ answer: { status: 500 } });
  const fields = { name: 'orders', url: at.url, strategy: ONCE, ordering: 'data.id' };
  const orders = { event_types: ['order.*'] };
  const { endpointId } = await subscribed(scene.client, fields, orders);
  for (const step of ['made', 'paid', 'sent'])
    await scene.client.events.create({ event_type: `order.${step}`, data: { id: 'o-17' } });
  const { page, close } = await scene.open(`/endpoints/${endpointId}`);
  const parked = panel(page, 'Parked keys');
  await parked.getByRole('row', { name: /o-17.*3/ }).waitFor();
  await inspect(page, 'endpoint-parked-keys');
  at.answer({ status: 200 });
  await parked.getByRole('button', { name: 'Skip o-17' }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await parked.getByRole('button', { name: 'Release o-17' }).click();
  await page.getByText('The failed delivery is sent again.').waitFor();
  await at.received(4);
  await parked.waitFor({ state: 'detached' });
  await close();
  await at.close();
});

endpoints('a list of many is narrowed to those whose circuit breaker is open', async () => {
  const { uid } = await scene.client.endpoints.create({ name: 'ledger', url: mended.url });
  const nowMs = Date.now();
  const times = { since_ms: nowMs, until_ms: nowMs + 600_000, forget_ms: nowMs + 900_000 };
  const record = {
    project_id: scene.projectId,
    state: 'open',
    ...times,
    requests: 9,
    failures: 9,
    trips: 1,
  };
  const breakers = scene.api.kv.map('breakers');
  await breakers.change([{ field: uid, from: undefined, to: JSON.stringify(record) }]);
  const { page, close } = await scene.open('/endpoints');
  const names = () => page.getByRole('row').getByRole('link').allInnerTexts();
  await page.getByRole('row', { name: /billing/ }).waitFor();
  await page.getByLabel('Circuit breaker').selectOption('breaker open');
  await until('the open one alone', async () => (await names()).join() === 'ledger');
  assert.match(page.url(), /breaker=open/);
  await inspect(page, 'endpoints-breaker-open');
  await page.getByLabel('Circuit breaker').selectOption('breaker closed');
  await until(
    'the others',
    async () => !(await names()).includes('ledger') && (await names()).includes('billing'),
  );
  await close();
});

endpoints('the list is sorted by the heading of a column, and the address keeps it', async () => {
  for (const name of ['zebra', 'Aardvark'])
    await scene.client.endpoints.create({ name, url: mended.url });
  const { page, close } = await scene.open('/endpoints');
  const names = () => page.getByRole('row').getByRole('link').allInnerTexts();
  await page.getByRole('button', { name: 'Name' }).click();
  await until('the first name first', async () => (await names())[0] === 'Aardvark');
  assert.match(page.url(), /by=name&sort=ASC/);
  await page.reload();
  await page.getByRole('row', { name: /zebra/ }).waitFor();
  assert.is((await names()).at(-1), 'zebra');
  assert.is(
    await page.getByRole('columnheader', { name: /^Name/ }).getAttribute('aria-sort'),
    'ascending',
  );
  await page.getByRole('button', { name: 'Name' }).click();
  await until('the last name first', async () => (await names())[0] === 'zebra');
  await page.getByRole('button', { name: 'Name' }).click();
  await until('the list in its own order', async () => !page.url().includes('by='));
  await close();
});

endpoints(
  'a secret is shown once, and a rotated one says until when the old one signs',
  async () => {
    const { page, close } = await scene.open('/endpoints/new');
    await page.getByLabel('Name').fill('crm');
    await page.getByLabel('URL', { exact: true }).fill(mended.url);
    await page.getByLabel('Event types').fill('customer.*, contact.changed');
    await inspect(page, 'endpoint-new-light');
    await page.getByRole('button', { name: 'Create' }).click();
    const secret = page.getByText(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const first = await secret.textContent();
    await inspect(page, 'endpoint-created');
    await page.getByRole('link', { name: 'Open endpoint' }).click();
    await panel(page, 'Subscriptions').getByText('customer.*, contact.changed').waitFor();
    await panel(page, 'Secrets').getByText('whsec_********').waitFor();
    assert.is(await secret.count(), 0);
    await page.getByRole('button', { name: 'Rotate…' }).click();
    await page.getByLabel('Old secret expires').selectOption('In an hour');
    await page.getByRole('button', { name: 'Rotate', exact: true }).click();
    await page.getByText(/The old secret stays valid until/).waitFor();
    assert.is.not(await secret.textContent(), first);
    await inspect(page, 'endpoint-rotated');
    await page.getByRole('button', { name: 'Close' }).click();
    await panel(page, 'Secrets')
      .getByText(/in 59 min|in 1 h/)
      .waitFor();
    assert.is(await panel(page, 'Secrets').getByText('whsec_********').count(), 2);
    await page.reload();
    await panel(page, 'Secrets').getByText('Active').waitFor();
    assert.is(await secret.count(), 0);
    await close();
  },
);

endpoints('everything is done with the keyboard: find, pause, test, activate', async () => {
  scene.shop.answer({ status: 202, body: 'noted' });
  const { page, close } = await scene.open('/overview');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await press(page, 'g', 'p');
  await page.getByRole('row', { name: /billing/ }).waitFor();
  await press(page, '/');
  await page.keyboard.type('shop');
  await press(page, 'Enter');
  await until('the row of the search', async () => (await page.getByRole('row').count()) === 2);
  await inspect(page);
  await leaveField(page);
  await press(page, 'j', 'Enter');
  await page.getByRole('heading', { name: 'shop' }).waitFor();
  await press(page, 'p');
  await page.getByText('shop is paused. Its deliveries are held.').waitFor();
  await panel(page, 'State')
    .getByText('Deliveries are held until the endpoint is activated.')
    .waitFor();
  await press(page, 't');
  await page.getByText('The endpoint is paused. The event is held').waitFor();
  await press(page, 'Escape');
  await press(page, 'p');
  await panel(page, 'State').getByText('Deliveries are being sent.').waitFor();
  await press(page, 't');
  await page.getByRole('dialog').waitFor();
  await page.getByLabel('Data').fill('{"hello": 1');
  await page.getByRole('button', { name: 'Send', exact: true }).focus();
  await press(page, 'Enter');
  await page.getByText(/Data is not JSON/).waitFor();
  await page.getByLabel('Data').fill('{"hello": 1}');
  await page.getByRole('button', { name: 'Send', exact: true }).focus();
  await press(page, 'Enter');
  const outcome = panel(page, 'Outcome');
  await outcome.getByText('Delivered in').waitFor();
  await outcome.getByText('202').waitFor();
  await outcome.getByLabel('Response body', { exact: true }).getByText('noted').waitFor();
  await inspect(page, 'endpoint-test');
  assert.match(String(scene.shop.requests.at(-1)?.body), '{"hello":1}');
  await close();
});

endpoints(
  'of two who edit at once the second reads who changed what, and saves on top or goes on from there',
  async () => {
    const { page, close } = await scene.open(`/endpoints/${billingId}?edit=1`);
    await page.getByLabel('Description').fill('Invoices and reminders');
    await scene.client.endpoints.update(billingId, { http_timeout: 7, name: 'billing EU' });
    await page.getByRole('button', { name: 'Save' }).click();
    const alert = page.getByRole('alert');
    await alert.getByText('owner@example.com changed this endpoint').waitFor();
    await alert.getByText('name changed from "billing" to "billing EU"').waitFor();
    await inspect(page);
    await alert.scrollIntoViewIfNeeded();
    await picture(page, 'endpoint-conflict');
    await page.getByRole('button', { name: 'Overwrite with mine' }).click();
    await page.getByText('Saved.', { exact: true }).waitFor();
    const {
      name,
      description,
      http_timeout: timeout,
    } = await scene.client.endpoints.get(billingId);
    assert.equal([name, description, timeout], ['billing EU', 'Invoices and reminders', 7]);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Name').fill('mine');
    await scene.client.endpoints.update(billingId, { name: 'billing' });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'Discard mine' }).click();
    assert.is(await page.getByLabel('Name').inputValue(), 'billing');
    await close();
  },
);

endpoints('an open breaker says when the endpoint is tried, and is closed on request', async () => {
  const { uid } = await scene.client.endpoints.create({ name: 'parcels', url: billing.url });
  const now = Date.now();
  const record = {
    project_id: scene.projectId,
    state: 'open',
    since_ms: now,
    until_ms: now + 500_000,
    requests: 12,
    failures: 10,
  };
  await scene.api.kv.map('breakers').change([
    {
      field: uid,
      from: undefined,
      to: JSON.stringify({ ...record, trips: 1, forget_ms: now + 900_000 }),
    },
  ]);
  const { page, close } = await scene.open('/endpoints', { theme: 'dark' });
  const row = page.getByRole('row', { name: /parcels.*breaker open.*next try in 8 min/ });
  await row.waitFor();
  await inspect(page, 'endpoints-dark');
  await row.getByRole('link').click();
  await panel(page, 'State').getByText('10 of 12 requests failed').waitFor();
  await panel(page, 'State').getByText('in 8 min').waitFor();
  await inspect(page, 'endpoint-breaker-dark');
  await page.getByRole('button', { name: 'Close breaker and send now' }).click();
  await panel(page, 'State').getByText('Deliveries are being sent.').waitFor();
  await close();
});

endpoints(
  'what is wrong with a new endpoint stands at its field, and a deleted one is gone',
  async () => {
    const { page, close } = await scene.open('/endpoints/new');
    await page.getByLabel('Name').fill('fax');
    await page.getByLabel('URL', { exact: true }).fill('ftp://example.com');
    await page.getByLabel('Authentication').selectOption('Header');
    await page.getByLabel('Header name').fill('webhook-id');
    await page.getByLabel('Header value').fill('x');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText(/^URL must begin with https:\/\/ or http:\/\//).waitFor();
    await page
      .getByText('Header name is a header that the gateway or the connection sets')
      .waitFor();
    await page.getByLabel('URL', { exact: true }).fill(mended.url);
    await page.getByLabel('Authentication').selectOption('None');
    const more = page.getByText('Description, owner, client certificate');
    await more.click();
    await page.getByLabel('Client certificate').fill('-----BEGIN CERTIFICATE-----');
    await page.getByLabel('Private key').fill('none');
    await more.click();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Client certificate requires a url that begins with https://').waitFor();
    assert.is(
      await page.evaluate('document.activeElement.getAttribute("aria-invalid")'),
      'true',
      'the focus is at the field',
    );
    await page.getByLabel('Client certificate').fill('');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('link', { name: 'Open endpoint' }).click();
    await page.getByRole('button', { name: 'Delete…' }).click();
    await page.getByText('discards its waiting deliveries').waitFor();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('heading', { name: 'Endpoints' }).waitFor();
    await page.getByRole('row', { name: /shop/ }).waitFor();
    assert.is(await page.getByRole('row', { name: /fax/ }).count(), 0);
    await close();
  },
);

endpoints('an edit sends what was changed, and the mask for secrets that stay', () => {
  const stored = {
    name: 'a',
    url: 'https://a.example.com',
    owner_id: null,
    description: '',
    authentication: {
      type: 'api_key',
      api_key: { header_name: 'x-key', header_value: '********' },
    },
    mtls_client_cert: {
      client_cert: 'PEM',
      client_key: '********',
      expires_at: '2027-01-01T00:00:00.000Z',
    },
    http_timeout: 10,
    concurrency: null,
    strategy: { type: 'exponential', duration: 5, retry_count: 3 },
    rate_limit: 0,
    rate_limit_duration: null,
  };
  const sent = (changes: object) => changed(fieldsOf(stored), fieldsOf({ ...stored, ...changes }));
  assert.equal(sent({}), {});
  const {
    authentication,
    mtls_client_cert: certificate,
    strategy,
    rate_limit: limit,
  } = fieldsOf(stored);
  assert.equal(
    [authentication, certificate, strategy, limit].map((it) => JSON.stringify(it)),
    [
      stored.authentication,
      { client_cert: 'PEM', client_key: '********' },
      // Fields in the order of the schema.
      { type: 'exponential', duration: 5, retry_count: 3 },
      0,
    ].map((it) => JSON.stringify(it)),
  );
  assert.equal(sent({ mtls_client_cert: { ...stored.mtls_client_cert, client_key: 'KEY' } }), {
    mtls_client_cert: { client_cert: 'PEM', client_key: 'KEY' },
  });
  assert.equal(sent({ mtls_client_cert: null }), { mtls_client_cert: null });
  assert.equal(sent({ name: ' b ', owner_id: ' ' }), { name: 'b' });
  assert.equal(sent({ rate_limit: '5', rate_limit_duration: '60' }), {
    rate_limit: 5,
    rate_limit_duration: 60,
  });
  assert.equal(sent({ strategy: null }), { strategy: null });
  assert.equal(sent({ http_timeout: 3 }), { http_timeout: 3 });
  assert.equal(sent({ http_timeout: '1.50' }), { http_timeout: 1.5 });
  assert.equal(sent({ http_timeout: undefined }), {}, 'an emptied field has its default');
  const basic = { type: 'basic', basic: { username: 'u' } };
  assert.equal(
    JSON.stringify(sent({ authentication: basic })),
    JSON.stringify({ authentication: { type: 'basic', basic: { username: 'u', password: '' } } }),
  );
});

endpoints(
  'on a phone the page of an endpoint fits, and a viewer sees no button that the server would refuse',
  async () => {
    await scene.become('viewer');
    const { page, close } = await scene.open(`/endpoints/${billingId}`, { isPhone: true });
    await panel(page, 'Settings').waitFor();
    await panel(page, 'Subscriptions').getByText('billing').waitFor();
    await until(
      'the role',
      async () => (await page.getByRole('button', { name: 'Pause' }).count()) === 0,
    );
    assert.is(await page.getByRole('button', { name: /test event|Delete|Rotate|Edit/ }).count(), 0);
    assert.is(await page.getByRole('link', { name: 'Subscribe', exact: true }).count(), 0);
    await inspect(page, 'endpoint-phone');
    await close();
  },
);

endpoints.run();
