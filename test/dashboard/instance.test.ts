import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { InstanceSetting, Project } from '@gateway/client';
import { matching, textOf } from '#dashboard/pages/instance/settings';
import { configOf, draftOf } from '#dashboard/pages/project/project-draft';
import { until } from '../support/until.js';
import { inspect, press } from './browser.js';
import { dashboardScene, type Scene } from './scene.js';

const instance = suite('dashboard/instance');

const SECRET = 'a-long-token-for-metrics-0123456789';
let scene: Scene;
instance.before(async () => {
  scene = await dashboardScene({
    file: { metrics: { bearer_token: SECRET }, retention: { days: 12 } },
  });
});
instance.after(() => scene.close());

instance(
  'where the value of a setting came from is found by keyboard, and no secret is shown',
  async () => {
    const { page, close } = await scene.open('/overview');
    await press(page, 'g', 'i');
    await page.getByText(/^Server \d/).waitFor();
    await page.getByRole('row', { name: /^postgres ok/i }).waitFor();
    await page.getByRole('group', { name: 'Agents' }).getByText('alive').waitFor();
    await page.getByRole('button', { name: 'Settings', exact: true }).press('Enter');
    await page
      .getByRole('row', { name: /retention\.days/ })
      .first()
      .waitFor();
    await page.locator('main').focus();
    await page.keyboard.press('/');
    await page.keyboard.type('retention days');
    await page.getByRole('row', { name: /^retention\.days .* 12 30 the configuration$/ }).waitFor();
    assert.match(page.url(), 'search=retention');
    await page.getByLabel('Search settings').fill('bearer_token');
    await page.getByRole('row', { name: /metrics\.bearer_token .*\*{4}/ }).waitFor();
    assert.not.match(await page.content(), SECRET);
    await page.getByLabel('Search settings').fill('');
    await page.getByLabel('Only explicitly set').check();
    await until(
      'fewer settings',
      async () => (await page.getByRole('row', { name: /^log/ }).count()) === 0,
    );
    await page.getByRole('button', { name: 'Plugins, flags and licence' }).click();
    await page.getByRole('row', { name: /kafka \(source\) active/ }).waitFor();
    await page.getByRole('region', { name: 'Licence' }).getByText('community').waitFor();
    await close();
  },
);

instance(
  'a project is renamed and configured, two edits do not overwrite each other, and it is deleted after its name was typed',
  async () => {
    const { page, close } = await scene.open('/settings');
    await page.getByLabel('Name', { exact: true }).fill('Orders, live');
    await page.getByLabel('Event retention in days').fill('0');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/Event retention in days must be at least 1/).waitFor();
    await page.getByLabel('Event retention in days').fill('7');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('option', { name: 'Orders, live' }).waitFor({ state: 'attached' });
    const { name, config } = await scene.client.projects.get(scene.projectId);
    assert.equal([name, config.retention], ['Orders, live', { days: 7 }]);

    await page.getByLabel('Number of retries').fill('3');
    await scene.client.projects.update(scene.projectId, { name: 'Orders' });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText(/changed this project/).waitFor();
    await page.getByRole('button', { name: 'Overwrite with mine' }).click();
    await page.getByText('Saved.').first().waitFor();
    const now = await until('both changes', async () => {
      const it = await scene.client.projects.get(scene.projectId);
      return it.config.strategy?.retry_count === 3 && it;
    });
    assert.is(now.name, 'Orders');

    const { uid } = await scene.client.projects.create({ name: 'Old' });
    await page.goto(`${scene.api.url}/projects/${uid}/settings`);
    await page.getByRole('button', { name: 'Delete project…' }).click();
    assert.ok(await page.getByRole('button', { name: 'Delete', exact: true }).isDisabled());
    await page.getByLabel('Type Old to confirm').fill('Old');
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.not.match(page.url(), uid);
    await close();
  },
);

instance('a shard is added, drained and removed, and a wrong one is explained', async () => {
  const { page, close } = await scene.open('/overview');
  await page.goto(`${scene.api.url}/instance?tab=shards`);
  await page.getByRole('row', { name: /^default ready/ }).waitFor();
  await page.getByRole('button', { name: 'Add shard…' }).click();
  await page.getByLabel('Name', { exact: true }).fill('s2');
  await page.getByRole('button', { name: 'Add shard', exact: true }).click();
  await page.getByText(/a shard needs a place/i).waitFor();
  await page.getByLabel('Schema', { exact: true }).fill('s2');
  await page.getByRole('button', { name: 'Add shard', exact: true }).click();
  await page.getByRole('row', { name: /^s2 ready .* schema s2/ }).waitFor();
  await page.getByRole('button', { name: 'Drain s2', exact: true }).click();
  await page.getByRole('row', { name: /^s2 ready draining/ }).waitFor();
  await page.getByRole('button', { name: 'Remove the shard s2' }).click();
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByText('The shard s2 was removed.').waitFor();
  await close();
});

instance('a project is moved to a shard that takes projects, or its error is shown', async () => {
  const { uid: projectId } = await scene.client.projects.create({ name: 'Moving' });
  const { uid: other } = await scene.client.projects.create({ name: 'Staying' });
  for (const name of ['s3', 's4']) await scene.client.shards.create({ name, schema: name });
  await scene.client.shards.update('s4', { is_draining: true });
  const { page, close } = await scene.open('/overview');
  await page.goto(`${scene.api.url}/instance?tab=shards`);
  await page.getByRole('button', { name: 'Move project…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Move project' });
  const submit = dialog.getByRole('button', { name: 'Move project', exact: true });
  await dialog.getByText('posts get 503, and messages wait with their brokers').waitFor();
  assert.ok(await submit.isDisabled());
  await dialog.getByLabel('Project', { exact: true }).selectOption('Moving');
  await dialog.getByText('It is on the shard default.').waitFor();
  const target = dialog.getByLabel('To the shard');
  assert.equal(await target.getByRole('option').allInnerTexts(), ['s3', 'Choose a shard']);
  await target.selectOption('s3');
  await inspect(page, 'move-project');
  // The lock that a move needs is held, so that the move is seen under way.
  const { pool } = scene.api.db;
  const holder = await pool.connect();
  await holder.query('begin; lock table project_fences in access share mode');
  await submit.click();
  await dialog.getByText('The project is moving.').waitFor();
  await holder.query('rollback');
  holder.release();
  await page.getByText('New events of Moving go to s3.').waitFor();
  await page.getByRole('row', { name: /^s3 ready .* schema s3 1 0/ }).waitFor();
  assert.is((await scene.client.projects.get(projectId)).shard, 's3');

  await page.getByRole('button', { name: 'Move project…' }).click();
  await dialog.getByLabel('Project', { exact: true }).selectOption('Another project, by ID');
  await dialog
    .getByLabel('Project ID')
    .fill(other.replace(/.$/, (last) => (last === '0' ? '1' : '0')));
  await target.selectOption('s3');
  await submit.click();
  await dialog.getByText(/^Project \S+ not found/).waitFor();
  await dialog.getByLabel('Project ID').fill(other);
  await submit.click();
  await page.getByText(new RegExp(`New events of (Staying|${other}) go to s3`)).waitFor();
  assert.is((await scene.client.projects.get(other)).shard, 's3');
  await close();
});

instance('those who are no instance admins are not led there', async () => {
  await scene.api.db.pool.query('update users set is_instance_admin = false');
  const { page, close } = await scene.open('/overview');
  await page.getByRole('link', { name: 'People' }).waitFor();
  assert.is(await page.getByRole('link', { name: 'Instance' }).count(), 0);
  await page.goto(`${scene.api.url}/instance`);
  await page.getByText('You cannot view the instance').waitFor();
  await close();
  await scene.api.db.pool.query('update users set is_instance_admin = true');
});

instance('settings are found by words of their name, description, value and origin', () => {
  const of = (key: string, value: unknown, origin: string) =>
    ({ key, value, origin, default: null, summary: `About ${key}` }) as InstanceSetting;
  const all = [
    of('retention.days', 12, 'GATEWAY_RETENTION_DAYS'),
    of('retention.audit_days', 365, 'default'),
    of('host', null, 'default'),
  ];
  const keys = (search: string, isSet = false) =>
    matching(all, { search, isSet }).map(({ key }) => key);
  assert.equal(keys('DAYS retention'), ['retention.days', 'retention.audit_days']);
  assert.equal(keys('gateway_retention'), ['retention.days']);
  assert.equal(keys('365'), ['retention.audit_days']);
  assert.equal(keys('', true), ['retention.days']);
  assert.equal(
    [textOf(null), textOf([]), textOf(['a', 'b']), textOf(false)],
    ['–', '–', 'a, b', 'false'],
  );
});

instance('the form of a project sends what it read, and a limit of none', () => {
  const config = {
    strategy: { type: 'linear', duration: 9, retry_count: 0 },
    signature: { header: 'X-A', hash: 'SHA512', encoding: 'base64' },
    ratelimit: { count: 5, duration: 2 },
    circuit_breaker: {
      failure_threshold: 50,
      minimum_request_count: 4,
      observability_window: 3,
      error_timeout: 2,
    },
    retention: { days: 1 },
    disable_after_days: 5,
    unknown_event_types: 'reject',
  } as const;
  assert.equal(configOf(draftOf({ name: 'x', config } as unknown as Project)), config);
  const empty = configOf(draftOf({ name: 'x', config: {} } as unknown as Project));
  assert.equal([empty.ratelimit, empty.circuit_breaker, empty.retention], [null, null, null]);
});

instance.run();
