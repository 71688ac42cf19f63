import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PluginError } from '@gateway/plugin';
import {
  fieldsOf,
  kindOf,
  labelOf,
  MASK,
  submitted,
  type FormSchema,
} from '#dashboard/components/schema-form/schema';
import { sourceOf } from '../server/api.js';
import { kafka, type KafkaBroker } from '../support/kafka.js';
import { until } from '../support/until.js';
import { inspect, picture } from './browser.js';
import { dashboardScene, type Scene } from './scene.js';

const sources = suite('dashboard/sources');

/** The schema of a plugin unknown to the dashboard. */
const SPOOL: FormSchema = {
  title: 'Spool folder',
  type: 'object',
  required: ['folder', 'token'],
  properties: {
    folder: {
      title: 'Folder',
      description: 'Where the files are.',
      type: 'string',
      examples: ['/var/spool/orders'],
    },
    token: { title: 'Token', type: 'string', 'x-secret': true },
    order: { title: 'Order', enum: ['oldest', 'newest'], default: 'oldest' },
    batch_size: { type: 'integer', description: 'Files that are read at once.' },
    hosts: { title: 'Hosts', type: 'array', items: { type: 'string' } },
    limits: {
      title: 'Limits',
      type: 'object',
      properties: { keep: { title: 'Keep files', type: 'boolean' } },
    },
    extra: { title: 'Extra', type: 'object' },
  },
};

let scene: Scene;
let broker: KafkaBroker;
const tested: Readonly<Record<string, unknown>>[] = [];
sources.before(async () => {
  const spool = sourceOf(SPOOL as Record<string, unknown>, (connection) => {
    tested.push(connection);
    if (connection['folder'] === '/gone')
      return Promise.reject(
        new PluginError('There is no folder /gone.', { fix: 'Set folder to one that exists.' }),
      );
    return Promise.resolve();
  });
  [scene, broker] = await Promise.all([dashboardScene({ sources: { spool } }), kafka()]);
});
sources.after(async () => {
  await scene.close();
  await broker.close();
});

sources(
  'a Kafka source with a wrong password says so; corrected, it is read, and its lag and position are shown',
  async () => {
    const topic = await broker.topic({ partitions: 2 });
    const { page, close } = await scene.open('/sources');
    await page.getByText('No sources yet').waitFor();
    await page.getByRole('link', { name: 'Create source' }).click();
    await page.getByLabel('Source type').selectOption('Kafka topic (kafka)');
    await page.getByLabel('Name', { exact: true }).fill('orders');
    await page.getByLabel('Brokers').fill(broker.listeners.saslPlaintext);
    await page.getByLabel('Topic name').fill(topic);
    assert.is(
      await page.getByLabel('Password').count(),
      0,
      'a field that belongs to an authentication type',
    );
    await page.getByLabel('Authentication type').selectOption('SASL/PLAIN');
    assert.is(await page.getByLabel('Hash').count(), 0);
    await page.getByLabel('User name').fill(broker.users.plain.username);
    await page.getByLabel('Password').fill('wrong');
    await page.getByRole('button', { name: 'Create source' }).click();
    await page
      .getByRole('alert')
      .getByText(/password/)
      .first()
      .waitFor();
    await inspect(page, 'source-refused');
    await page.getByLabel('Password').fill(broker.users.plain.password);
    await page.getByRole('button', { name: 'Test connection' }).click();
    await page.getByText('The connection works.').waitFor();
    await page.getByRole('button', { name: 'Create source' }).click();
    await page.getByRole('heading', { name: 'orders' }).waitFor();
    const before = scene.shop.requests.length;
    await broker.produce(topic, ['{"event_type":"order.paid","data":{"n":1}}']);
    await scene.shop.received(before + 1);
    await page.getByText('active', { exact: true }).waitFor();
    await page
      .getByRole('group', { name: 'Partitions' })
      .getByRole('row')
      .nth(2)
      .waitFor({ timeout: 25_000 });
    await inspect(page, 'source-status');

    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Source paused. Messages wait in the broker.').waitFor();
    await page.getByText('The source was paused over the management API.').waitFor();
    await page.goto(`${scene.api.url}/projects/${scene.projectId}/overview`);
    await page
      .getByRole('region', { name: 'Health' })
      .getByRole('link', { name: 'Open orders' })
      .click();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('Source resumed.').waitFor();

    await page.getByRole('link', { name: 'Settings', exact: true }).click();
    assert.is(await page.getByLabel('Password').inputValue(), '', 'a stored secret is not shown');
    await page.getByPlaceholder('Stored; type to replace').waitFor();
    await page.getByLabel('Name', { exact: true }).fill('orders of the shop');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Source saved.').waitFor();
    await page.getByRole('heading', { name: 'orders of the shop' }).waitFor();
    await close();
  },
);

sources(
  'a plugin that the dashboard has never seen has its form, and what the API refuses stands at its field',
  async () => {
    const { page, close } = await scene.open('/sources/new?type=spool', { theme: 'dark' });
    await page.getByRole('heading', { name: 'Spool folder (spool)' }).waitFor();
    await page.getByLabel('Name', { exact: true }).fill('files');
    await page.getByText('Where the files are.').waitFor();
    await page.getByPlaceholder('/var/spool/orders').fill('/gone');
    assert.is(await page.getByLabel('Token').getAttribute('type'), 'password');
    await page.getByLabel('Token').fill('opensesame');
    await page.getByLabel('Order').selectOption('newest');
    await page.getByLabel('Batch size').fill('1.5');
    await page.getByLabel('Hosts').fill('one\ntwo\n');
    await page.getByRole('group', { name: 'Limits' }).getByLabel('Keep files').check();
    await page.getByLabel('Extra').fill('{"n":1}');
    await page.getByRole('button', { name: 'Test connection' }).click();
    await page.getByText('Batch size must be an integer').waitFor();
    await until('the focus at the field', () =>
      page.evaluate<boolean>("document.activeElement.name === 'batch_size'"),
    );
    await inspect(page, 'source-new-dark');
    await page.getByLabel('Batch size').fill('10');
    await page.getByRole('button', { name: 'Create source' }).click();
    await page.getByText(/There is no folder \/gone/).waitFor();
    await page.getByText('Set folder to one that exists.').waitFor();
    await page.getByRole('textbox', { name: /^Folder/ }).fill('/in');
    await page.getByRole('button', { name: 'Create source' }).click();
    await page.getByRole('heading', { name: 'files' }).waitFor();
    const { token, ...plain } = tested.at(-1)!;
    assert.equal(
      [plain, token],
      [
        {
          folder: '/in',
          order: 'newest',
          batch_size: 10,
          hosts: ['one', 'two'],
          limits: { keep: true },
          extra: { n: 1 },
        },
        'opensesame',
      ],
    );
    await page.getByText('failing', { exact: true }).waitFor();
    await page.getByText('The source cannot be read; the agents log the reason.').waitFor();
    await page.getByRole('button', { name: 'Delete…' }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('files was deleted.').waitFor();
    await close();
  },
);

sources(
  'an HTTP source gets its verification, and its URL to copy, with the keyboard alone',
  async () => {
    const { page, close } = await scene.open('/overview');
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    for (const key of ['g', 's']) await page.keyboard.press(key);
    await page.getByRole('heading', { name: 'Sources' }).waitFor();
    await page.keyboard.press('n');
    await page.getByRole('heading', { name: 'New source' }).waitFor();
    await page.getByLabel('Source type').selectOption('Requests to a URL (http)');
    await page.getByLabel('Name', { exact: true }).focus();
    await page.keyboard.type('github');
    await page.keyboard.press('Tab');
    await page.keyboard.type('Git');
    await page.keyboard.press('Tab');
    await page.keyboard.type('it is a secret');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'github' }).waitFor();
    const { content } = await scene.client.sources.list().page();
    const stored = content.find(({ name }) => name === 'github')!;
    assert.equal(
      [stored.verifier, stored.event_type_location],
      [{ type: 'github', secret: MASK }, 'header.X-GitHub-Event'],
    );
    await page.getByText(new RegExp(`/ingest/${stored.mask_id}$`)).waitFor();
    await page.getByRole('button', { name: 'Copy URL' }).press('Enter');
    assert.match(
      await page.evaluate<string>('navigator.clipboard.readText()'),
      new RegExp(`^https?://.*/ingest/${stored.mask_id}$`),
    );
    await inspect(page);
    await page.getByRole('link', { name: 'Settings', exact: true }).click();
    await page.getByLabel('Verification', { exact: true }).selectOption('HMAC signature');
    await page
      .getByRole('group', { name: 'Verification' })
      .getByLabel('Header')
      .fill('X-Signature');
    await page.getByRole('group', { name: 'Verification' }).getByLabel('Secret').fill('shared');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Hash is missing', { exact: true }).waitFor();
    await picture(page, 'source-http');
    await close();
  },
);

sources('a source that a viewer looks at has no buttons', async () => {
  await scene.become('viewer');
  const { page, close } = await scene.open('/sources', { isPhone: true });
  await page
    .getByRole('row', { name: /github/ })
    .getByRole('link')
    .click();
  await page.getByRole('heading', { name: 'github' }).waitFor();
  await until(
    'no buttons',
    async () => (await page.getByRole('button', { name: 'Pause' }).count()) === 0,
  );
  assert.is(await page.getByRole('button', { name: 'Delete…' }).count(), 0);
  await picture(page, 'source-phone');
  await close();
});

const AUTH: FormSchema = {
  type: 'object',
  required: ['host'],
  properties: {
    host: { type: 'string' },
    type: { enum: ['plain', 'token'] },
    username: { type: 'string' },
    password: { type: 'string', 'x-secret': true },
    key: { type: 'string' },
    odd: { type: 'string' },
  },
  dependentRequired: { key: ['username'] },
  allOf: [
    {
      if: { properties: { type: { const: 'plain' } }, required: ['type'] },
      then: { required: ['password'] },
      else: { properties: { username: false, password: false } },
    },
    {
      if: { minProperties: 2 } as FormSchema,
      then: { properties: { odd: false } },
      else: { properties: { host: false } },
    },
  ],
};

sources(
  'fields that belong beside others only are shown beside them, and conditions that are not understood hide nothing',
  () => {
    const names = (value: Record<string, unknown>) =>
      fieldsOf(AUTH, value).map(({ name, isRequired }) => (isRequired ? `${name}!` : name));
    assert.equal(names({}), ['host!', 'type', 'key', 'odd']);
    assert.equal(names({ type: 'plain' }), [
      'host!',
      'type',
      'username',
      'password!',
      'key',
      'odd',
    ]);
    assert.equal(names({ type: 'plain', key: 'k' }), [
      'host!',
      'type',
      'username!',
      'password!',
      'key',
      'odd',
    ]);
  },
);

sources(
  'what was filled in is sent, a stored secret stays, and one whose field is gone is removed',
  () => {
    const stored = { host: 'h', type: 'plain', username: 'u', password: MASK };
    assert.equal(submitted(AUTH, stored, stored), stored);
    assert.equal(submitted(AUTH, { ...stored, password: 'new', key: '' }, stored), {
      ...stored,
      password: 'new',
    });
    assert.equal(submitted(AUTH, { ...stored, type: 'token' }, stored), {
      host: 'h',
      type: 'token',
      password: null,
    });
    assert.equal(submitted(AUTH, { ...stored, password: undefined }, stored), {
      ...stored,
      password: null,
    });
    const nested: FormSchema = {
      properties: { auth: AUTH, list: { type: 'array', items: { type: 'string' } } },
    };
    assert.equal(submitted(nested, { auth: { host: '' }, list: ['a', ''] }), { list: ['a'] });
    assert.equal(
      submitted(nested, { auth: {} }, { auth: stored }),
      {},
      'a group that is gone takes its secrets with it',
    );
  },
);

sources('each schema has an input, and a field without a title a name that can be read', () => {
  const kinds: [FormSchema, string][] = [
    [{ type: 'string' }, 'text'],
    [{ type: ['string', 'null'], 'x-secret': true }, 'secret'],
    [{ type: 'string', maxLength: 100_000 }, 'long-text'],
    [{ enum: [1, 2] }, 'choice'],
    [{ type: 'boolean' }, 'switch'],
    [{ type: 'integer' }, 'number'],
    [{ type: 'array', items: { type: 'string' } }, 'lines'],
    [{ type: 'array', items: { type: 'object' } }, 'json'],
    [{ type: 'object', properties: {} }, 'group'],
    [{ type: 'object' }, 'json'],
    [{}, 'json'],
  ];
  for (const [schema, kind] of kinds) assert.is(kindOf(schema), kind, JSON.stringify(schema));
  assert.equal(
    [labelOf('consumer_group_id', {}), labelOf('queueName', {}), labelOf('x', { title: 'Ex' })],
    ['Consumer group id', 'Queue name', 'Ex'],
  );
});

sources.run();
