// long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Page } from 'playwright-core';
import { browserOf } from '#dashboard/pages/account/sessions';
import { actionWords, RESOURCES } from '#dashboard/pages/audit/actions';
import { changesOf } from '#dashboard/pages/audit/entry';
import { expiryOf, stateOf } from '#dashboard/pages/keys/key-ring';
import { operationsOf } from '#server/api/operation';
import { routes } from '#server/routes/index';
import { until } from '../support/until.js';
import { inspect, loaded, picture, visit } from './browser.js';
import { dashboardScene, type Scene } from './scene.js';

const people = suite('dashboard/people');

let scene: Scene;
people.before(async () => {
  scene = await dashboardScene();
});
people.after(() => scene.close());

const go = async (page: Page, link: string, heading = link) => {
  await page.getByRole('link', { name: link, exact: true }).click();
  await page.getByRole('heading', { level: 1, name: heading }).waitFor();
  await loaded(page);
};

people(
  'a colleague is invited by a link, accepts it, and is offered what the role may',
  async () => {
    const { page, close } = await scene.open('/overview');
    await go(page, 'People');
    await page.keyboard.press('n');
    await page.getByLabel('Email').fill('not an address');
    await page.getByLabel('Email').fill('ada@example.com');
    await page.getByRole('dialog').getByLabel('Role').selectOption('viewer');
    await page.getByRole('button', { name: 'Create link' }).click();
    const link = await page.getByText('/#invitation=').innerText();
    await inspect(page, 'invite-light');
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('row', { name: /ada@example\.com viewer open/ }).waitFor();
    await inspect(page, 'people-light');

    const other = await visit(scene.browser, link, { theme: 'dark' });
    await other.page.getByText(/You are invited to/).waitFor();
    await inspect(other.page, 'invitation-dark');
    await other.page.getByLabel('First name').fill('Ada');
    await other.page.getByLabel('Password').fill('short');
    await other.page.keyboard.press('Enter');
    await other.page
      .getByText(/must have at least 12 characters/)
      .first()
      .waitFor();
    await other.page.getByLabel('Password').fill('a long enough word');
    await other.page.keyboard.press('Enter');
    await other.page.getByRole('heading', { name: 'Overview' }).waitFor();
    assert.not.match(other.page.url(), 'invitation');
    await go(other.page, 'API keys');
    assert.is(await other.page.getByRole('button', { name: 'New API key' }).count(), 0);
    assert.is(await other.page.getByRole('link', { name: 'Audit log' }).count(), 0);
    assert.is(await other.page.getByRole('link', { name: 'New project' }).count(), 0);
    await go(other.page, 'People');
    assert.is(
      await other.page.getByRole('button', { name: /Invite|Remove|Change role/ }).count(),
      0,
    );

    await page
      .getByRole('button', { name: 'Change role of Ada' })
      .waitFor({ timeout: 5_000 })
      .catch(() => page.reload());
    await page.getByRole('button', { name: 'Change role of Ada' }).click();
    await page.getByRole('dialog').getByLabel('Role').selectOption('admin');
    await page.getByRole('button', { name: 'Change role', exact: true }).click();
    await page.getByRole('row', { name: /ada@example\.com admin/ }).waitFor();
    await other.page.reload();
    await other.page.getByRole('button', { name: 'Invite…' }).waitFor();
    assert.is(
      await other.page.getByRole('button', { name: /Remove o w/ }).count(),
      0,
      'an admin removes no owner',
    );

    await page.getByRole('button', { name: 'Remove Ada' }).click();
    await page.getByRole('button', { name: 'Remove', exact: true }).click();
    await until(
      'the removal',
      async () => (await page.getByRole('button', { name: 'Remove Ada' }).count()) === 0,
    );
    await other.close();
    await close();
  },
);

people(
  'a person who has an account accepts with its password, and is told what an organisation without projects needs',
  async () => {
    const { uid } = await scene.client.organisations.create({ name: 'Second' });
    const { token } = await scene.client.invitations.create(uid, {
      email: 'ada@example.com',
      role: 'member',
    });
    const { page, close } = await visit(scene.browser, `${scene.api.url}/#invitation=${token}`);
    await page.getByText('The password of your account.').waitFor();
    await page.getByLabel('Password').fill('a long enough word');
    await page.keyboard.press('Enter');
    await page.getByText('You cannot create a project').waitFor();
    await close();
  },
);

people('a link that was used or revoked says so', async () => {
  const { page, close } = await visit(
    scene.browser,
    `${scene.api.url}/#invitation=gw_0123456789abcdef_${'x'.repeat(43)}`,
  );
  await page.getByText(/The invitation is not valid/).waitFor();
  await page.getByRole('button', { name: 'Sign in instead' }).click();
  await page.getByRole('heading', { name: 'Sign in to Gateway' }).waitFor();
  await close();
});

people('a key is created, used, rotated and revoked, and the audit log tells it', async () => {
  const { page, close } = await scene.open('/overview', { theme: 'dark' });
  await go(page, 'API keys');
  await page.keyboard.press('n');
  await page.getByLabel('Name').fill('ci');
  await page.getByLabel('Permissions').selectOption('viewer');
  await page.getByLabel('Limit to selected resources').check();
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByText('Scopes must not be empty').waitFor();
  await page.getByLabel('Endpoints', { exact: true }).selectOption('read');
  await inspect(page, 'api-key-scopes-dark');
  await page.getByRole('button', { name: 'Create key' }).click();
  const shown = page.getByRole('dialog').getByText(/^gw_[0-9a-f]{16}_[\w-]{43}$/);
  const key = await shown.innerText();
  const status = async (it: string, resource = 'endpoints') => {
    const answer = await scene.api.call(
      'GET',
      `/projects/${scene.projectId}/${resource}`,
      undefined,
      { key: it },
    );
    return answer.status;
  };
  assert.is(await status(key), 200);
  await page.getByRole('button', { name: 'Done' }).click();
  await inspect(page, 'api-keys-dark');

  await page.getByRole('button', { name: 'Rotate ci' }).click();
  await page.getByRole('button', { name: 'Create key' }).click();
  const next = await shown.innerText();
  assert.equal(
    [await status(key), await status(next), await status(next, 'events')],
    [200, 200, 403],
  );
  await picture(page, 'api-key-rotated-dark');
  await page.getByRole('button', { name: 'Revoke old key' }).click();
  await until('the refusal', async () => (await status(key)) === 401);
  assert.is(await status(next), 200);

  await until(
    'the list without the old key',
    async () => (await page.getByRole('button', { name: 'Revoke ci' }).count()) === 1,
  );
  await page.getByRole('button', { name: 'Edit ci' }).click();
  await page.getByLabel('Events', { exact: true }).selectOption('write');
  await page.getByRole('button', { name: 'Save key' }).click();
  await page.getByText('endpoints:read, events:write').waitFor();
  assert.is(await status(next, 'events'), 200);
  await page.getByRole('button', { name: 'Revoke ci' }).click();
  await page.getByRole('button', { name: 'Revoke', exact: true }).click();
  await until('the refusal of the second', async () => (await status(next)) === 401);
  await page.getByRole('button', { name: /Show revoked and expired/ }).click();
  assert.match(page.url(), 'ended=1');
  await until(
    'the ended ones',
    async () => (await page.getByRole('row', { name: /ci .*revoked/ }).count()) === 2,
  );

  await go(page, 'Audit log');
  await page.getByLabel('Resource', { exact: true }).selectOption('apiKeys.*');
  await until('the filter', async () => (await page.locator('summary').count()) >= 4);
  assert.ok(await page.getByText('API key revoked').first().isVisible());
  await close();
});

people(
  'the audit log tells who changed an endpoint, with each value before and after',
  async () => {
    await scene.client.endpoints.update(scene.endpointId, {
      name: 'shop 2',
      strategy: { type: 'linear', duration: 9, retry_count: 4 },
    });
    const { page, close } = await scene.open('/overview');
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await page.getByText('Endpoint changed').first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('row', { name: /name.*shop.*shop 2/ }).waitFor();
    await picture(page, 'audit-light');
    await page.getByRole('row', { name: /strategy.*4/ }).waitFor();
    await inspect(page, 'audit-light');
    await page.getByRole('button', { name: 'History' }).click();
    assert.match(page.url(), `search=${scene.endpointId}`);
    await until('its changes alone', async () => (await page.locator('summary').count()) === 2);
    await page.getByLabel('Actor', { exact: true }).selectOption({ label: 'o w' });
    await page.goBack();
    assert.is(await page.getByLabel('Actor', { exact: true }).inputValue(), '');
    await close();

    const dark = await scene.open(`/endpoints/${scene.endpointId}`, { theme: 'dark' });
    await dark.page.getByRole('link', { name: 'History' }).click();
    await until('its changes', async () => (await dark.page.locator('summary').count()) === 2);
    await dark.page.locator('summary').first().click();
    await inspect(dark.page, 'audit-dark');
    await dark.close();
  },
);

people('the own account: name, password, sessions, personal keys', async () => {
  const { email } = scene.api.owner.user;
  const { page, close } = await scene.open('/overview');
  await go(page, 'Your account');
  await inspect(page, 'account-light');
  await page.getByLabel('First name').fill('Olivia');
  await page.getByRole('button', { name: 'Save name' }).click();
  await page.getByText('Name changed.').waitFor();
  await page.getByLabel('Current password').fill('wrong');
  await page.getByLabel('New password').fill('another long word');
  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByText('Current password is wrong').waitFor();
  const elsewhere = await scene.api.call(
    'POST',
    '/api/v1/auth/login',
    { email, password: scene.api.owner.password },
    { key: null },
  );
  const headers = { cookie: elsewhere.headers.getSetCookie()[0]!.split(';')[0]! };
  const isSignedIn = async () =>
    (await scene.api.call('GET', '/projects', undefined, { key: null, headers })).status === 200;
  assert.ok(await isSignedIn());
  await page.reload();
  await page
    .getByRole('button', { name: /End the session/ })
    .first()
    .click();
  await page.getByRole('button', { name: 'End session' }).click();
  await until('its end', async () => !(await isSignedIn()));
  await page.getByText('current', { exact: true }).waitFor();
  await close();
  const phone = await scene.open('/overview', { isPhone: true, theme: 'dark' });
  await phone.page.getByRole('button', { name: 'Open menu' }).click();
  await go(phone.page, 'Your account');
  await inspect(phone.page, 'account-phone');
  await phone.close();
});

people('every audited resource of the API has a word', () => {
  const audited = operationsOf(routes).filter(
    ({ route }) => route.method !== 'get' && route.reach !== 'open' && route.isAudited !== false,
  );
  assert.equal(
    [...new Set(audited.map(({ group }) => group))].filter((group) => !RESOURCES[group]),
    [],
  );
});

people('actions, changes, expiry and browsers are told in words', () => {
  assert.is(actionWords('endpoints.update'), 'Endpoint changed');
  assert.is(actionWords('endpoints.expireSecret'), 'Endpoint: expire secret');
  const changes = {
    config: { before: { retention: { days: 7 }, a: 1 }, after: { retention: { days: 9 }, a: 1 } },
    name: { after: 'x\ny' },
  };
  assert.equal(changesOf(changes), [
    { field: 'config.retention.days', before: '7', after: '9' },
    { field: 'name', before: undefined, after: 'x\ny' },
  ]);
  assert.is(expiryOf({ choice: '', time: '' }, 0), null);
  assert.is(expiryOf({ choice: '30', time: '' }, 0), '1970-01-31T00:00:00.000Z');
  assert.is(
    expiryOf({ choice: 'custom', time: 'nonsense' }, 0),
    'nonsense',
    'the API refuses it, instead of making a key that never expires',
  );
  const key = { expires_at: '1970-01-01T00:00:01Z', revoked_at: null } as Parameters<
    typeof stateOf
  >[0];
  assert.equal(
    [stateOf(key, 0), stateOf(key, 2_000), stateOf({ ...key, revoked_at: key.expires_at }, 0)],
    ['active', 'expired', 'revoked'],
  );
  assert.is(
    browserOf(
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36',
    ),
    'Chrome on Linux',
  );
  assert.is(browserOf('curl/8'), 'curl/8');
});

people.run();
