import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { schemaRows } from '#dashboard/pages/event-types/schema-table';
import { inspect, leaveField, picture, press, push } from './browser.js';
import { dashboardScene, type Scene } from './scene.js';

const eventTypes = suite('dashboard/event-types');

let scene: Scene;
eventTypes.before(async () => {
  scene = await dashboardScene();
});
eventTypes.after(() => scene.close());

const schema = {
  type: 'object',
  required: ['number', 'total'],
  properties: {
    number: {
      type: 'string',
      description: 'Of the order, as the customer has it.',
      pattern: '^A-[0-9]+$',
    },
    total: { type: 'number', minimum: 0 },
    currency: { type: 'string', enum: ['EUR', 'USD'] },
    paid_at: { type: 'string', format: 'date-time' },
    items: { type: 'array', minItems: 1, items: { $ref: '#/$defs/Item' } },
  },
  $defs: {
    Item: {
      type: 'object',
      required: ['sku'],
      properties: { sku: { type: 'string' }, count: { type: 'integer', default: 1 } },
    },
  },
};
const example = { number: "A-1001 'quoted'", total: 12.5, items: [{ sku: 'tea' }] };

eventTypes('the fields of a schema are rows with their types, rules and references', () => {
  assert.equal(
    schemaRows(schema).map(({ uid, type, isRequired, rules }) =>
      [uid, type, isRequired, rules].join(' | '),
    ),
    [
      'number | string | true | matches ^A-[0-9]+$',
      'total | number | true | at least 0',
      'currency | string | false | one of EUR, USD',
      'paid_at | string (date-time) | false | ',
      'items | list of object | false | at least one element',
      'items[].sku | string | true | ',
      'items[].count | integer | false | 1 by default',
    ],
  );
  const composed = {
    allOf: [
      { properties: { a: { type: ['string', 'null'] } }, required: ['a'] },
      { properties: { b: { const: 7 } } },
    ],
    oneOf: [
      { properties: { card: true } },
      { properties: { iban: { $ref: '#/$defs/Iban' } }, required: ['iban'] },
    ],
    additionalProperties: { type: 'boolean' },
    $defs: { Iban: { type: 'string', maxLength: 34 } },
  };
  assert.equal(
    schemaRows(composed).map(({ uid, type, isRequired, rules }) =>
      [uid, type, isRequired, rules].join(' | '),
    ),
    [
      'a | string or null | true | ',
      'b | 7 | false | ',
      '* | boolean | false | ',
      'card | any | false | ',
      'iban | string | true | at most 34 characters',
    ],
  );
});

eventTypes('schemas that refer to themselves or are no schemas end', () => {
  const tree = {
    $ref: '#/$defs/Node',
    $defs: {
      Node: {
        properties: { next: { $ref: '#/$defs/Node' }, all: { items: { $ref: '#/$defs/Node' } } },
      },
    },
  };
  const rows = schemaRows(tree);
  assert.ok(rows.length > 2 && rows.length <= 300, String(rows.length));
  for (const odd of [
    null,
    true,
    [],
    'x',
    { $ref: '#/$defs/Gone' },
    { $ref: '#' },
    { $ref: 7 },
    { properties: 3, required: {} },
    { allOf: [{ $ref: '#' }] },
  ])
    assert.equal(schemaRows(odd), []);
  const wide = {
    properties: Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`f${n}`, {}])),
  };
  assert.is(schemaRows(wide).length, 300);
});

eventTypes(
  'an event type is created with schema and example, and its page tells a receiver what comes',
  async () => {
    const { page, close } = await scene.open('/event-types');
    await page.getByText('No event types yet').waitFor();
    await inspect(page);
    await page.getByRole('link', { name: 'Create event type' }).click();
    await page.getByLabel('Name').fill('order.paid');
    await page.getByLabel('Description').fill('The money has come in.');
    await page.getByLabel('Schema').fill('{"type": "money"}');
    await page.getByLabel('Example').fill('{"number"');
    await page.getByText(/^Example is not JSON/).waitFor();
    assert.is(await page.getByRole('button', { name: 'Create' }).isDisabled(), true);
    await page.getByLabel('Example').fill(JSON.stringify(example));
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText(/^Schema must be .*\(at type\)$/).waitFor();
    await page.getByLabel('Schema').fill(JSON.stringify(schema, null, 2));
    await page.getByRole('row', { name: /items\[\]\.sku string/ }).waitFor();
    await inspect(page, 'event-type-new-light');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'order.paid' }).waitFor();
    assert.match(page.url(), '/event-types/order.paid');
    await page
      .getByRole('row', {
        name: /number string Of the order, as the customer has it\. \(matches \^A/,
      })
      .waitFor();
    const command = (await page.getByLabel('Command', { exact: true }).textContent()) ?? '';
    await inspect(page, 'event-type-light');
    const env = { ...process.env, GATEWAY_KEY: scene.api.owner.api_key.key };
    const { stdout } = await promisify(execFile)('sh', ['-c', command], { env });
    assert.is((JSON.parse(stdout) as { status: boolean }).status, true);
    const [request] = await scene.shop.received(1);
    assert.equal(JSON.parse(String(request!.body)), example);
    await close();
  },
);

eventTypes(
  'an event type is found, edited, deprecated and made current with the keyboard',
  async () => {
    const { page, close } = await scene.open('/overview', { theme: 'dark' });
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await press(page, 'g', 't');
    await page
      .getByRole('row', { name: /order\.paid.*current.*The money has come in\..*schema, example/ })
      .waitFor();
    await picture(page, 'event-types-dark');
    await press(page, '/');
    await page.keyboard.type('MONEY');
    await press(page, 'Enter');
    await page.getByRole('row', { name: /order\.paid/ }).waitFor();
    await inspect(page);
    await leaveField(page);
    await press(page, 'j', 'Enter');
    await page.getByRole('heading', { name: 'order.paid' }).waitFor();
    await page.getByRole('button', { name: 'Edit' }).waitFor();
    await press(page, 'e');
    await page.getByLabel('Description').fill('Paid in full.');
    await scene.client.eventTypes.update(
      (await scene.client.eventTypes.list().page()).content[0]!.uid,
      { description: 'Paid by card.' },
    );
    await push(page, 'Save');
    await page.getByText('owner@example.com changed this event type').waitFor();
    await push(page, 'Overwrite with mine');
    await page.getByText('Saved.', { exact: true }).waitFor();
    await page.locator('main').getByText('Paid in full.').waitFor();
    await push(page, 'Deprecate');
    await page.getByText('Events are still delivered, but receivers').waitFor();
    await inspect(page, 'event-type-deprecated-dark');
    await push(page, 'Make current');
    await page.getByRole('button', { name: 'Deprecate' }).waitFor();
    await close();
  },
);

eventTypes(
  'webhooks of an OpenAPI document are imported, and what is wrong with it is told',
  async () => {
    const { $defs: _, ...inline } = {
      ...schema,
      properties: { ...schema.properties, items: { type: 'array', items: schema.$defs.Item } },
    };
    const webhook = (summary: string) => ({
      post: {
        summary,
        requestBody: { content: { 'application/json': { schema: inline, example } } },
        responses: { 200: { description: 'ok' } },
      },
    });
    const document = {
      openapi: '3.1.0',
      info: { title: 'Orders', version: '1' },
      webhooks: {
        'order.shipped': webhook('On its way'),
        'order.paid': webhook('Paid'),
        'a/b new?': webhook('An odd name'),
      },
    };
    const { page, close } = await scene.open('/event-types');
    await page.getByRole('button', { name: 'Import…' }).click();
    await page.getByLabel('OpenAPI document').fill('{"openapi": "2.0"}');
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByRole('alert').waitFor();
    await inspect(page);
    await page.getByLabel('File').setInputFiles({
      name: 'openapi.json',
      mimeType: 'application/json',
      buffer: Buffer.from(JSON.stringify(document)),
    });
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.getByText('2 created, 1 updated, 0 unchanged.').waitFor();
    await inspect(page, 'event-types-imported');
    await page.getByRole('dialog').getByRole('link', { name: 'a/b new?' }).click();
    await page.getByRole('heading', { name: 'a/b new?' }).waitFor();
    await page.getByText('An odd name').waitFor();
    await scene.client.eventTypes.create({ name: 'new' });
    await page.goBack();
    await page.getByRole('row', { name: /^new / }).getByRole('link').click();
    await page.getByText('No schema.').waitFor();
    await page.goto(`${scene.api.url}/projects/${scene.projectId}/event-types/order.gone`);
    await page.getByText('There is no event type order.gone').waitFor();
    await close();
  },
);

eventTypes('a test event of a type sends its example', async () => {
  const { page, close } = await scene.open(`/endpoints/${scene.endpointId}?test=1`, {
    isPhone: true,
  });
  const before = scene.shop.requests.length;
  await page.getByLabel('Event type').fill('order.paid');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.getByText('Delivered in').waitFor();
  assert.equal(JSON.parse(String(scene.shop.requests[before]!.body)), example);
  await picture(page, 'endpoint-test-phone');
  await close();
});

eventTypes.run();
