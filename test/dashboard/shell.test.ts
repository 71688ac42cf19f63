// long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../support/until.js';
import { inspect, visit } from './browser.js';
import { dashboardScene, type Scene } from './scene.js';

const shell = suite('dashboard/shell');
let scene: Scene;
shell.before(async () => {
  scene = await dashboardScene({
    file: { root_path: '/gateway', server: { auth: { basic: ['admin:a-long-password-1'] } } },
  });
});
shell.after(() => scene.close());

shell('a person signs in, comes to the page of the link, and signs out', async () => {
  const { owner, url } = scene.api;
  const { page, close } = await visit(
    scene.browser,
    `${url}/gateway/projects/${scene.projectId}/deliveries`,
  );
  await page.getByLabel('Email').fill(owner.user.email);
  await page.getByLabel('Password').fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  await inspect(page, 'sign-in');
  await page.getByLabel('Password').fill(owner.password);
  await page.keyboard.press('Enter');
  await page.getByText('No deliveries yet').waitFor();
  assert.match(page.url(), '/gateway/projects/');
  await page.reload();
  await page.getByText('No deliveries yet').waitFor();
  assert.is(await page.evaluate('document.cookie'), '');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Gateway' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Sign in to Gateway' }).waitFor();
  await close();
});

shell('a delivery appears in the log while it is watched', async () => {
  const { page, close } = await scene.open('/deliveries');
  await page.getByText('No deliveries yet').waitFor();
  await scene.client.events.create({ event_type: 'order.paid', data: { number: 1 } });
  const row = page.getByRole('row', { name: /order\.paid/ });
  await row.getByText('success').waitFor();
  await close();
});

shell('a session that was ended elsewhere leads to the sign-in page', async () => {
  const { page, close } = await scene.open('/deliveries');
  await page.context().clearCookies();
  await page.getByRole('heading', { name: 'Sign in to Gateway' }).waitFor();
  await close();
});

shell('colours are chosen, and kept for the next visit', async () => {
  const { page, close } = await scene.open('/overview');
  const background = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
  const light = await background();
  await page.getByRole('button', { name: 'Theme: system' }).click();
  await page.getByRole('button', { name: 'Theme: light' }).click();
  await until('dark colours', async () => (await background()) !== light);
  await page.reload();
  await page.getByRole('button', { name: 'Theme: dark' }).waitFor();
  assert.is.not(await background(), light);
  await close();
});

shell('on a phone the menu opens and closes', async () => {
  const { page, close } = await scene.open('/overview', { isPhone: true });
  await page.getByRole('button', { name: 'Open menu' }).click();
  await inspect(page, 'menu-phone');
  await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
  await page.getByRole('heading', { name: 'Deliveries' }).waitFor();
  assert.is(await page.getByRole('navigation', { name: 'Watch' }).isVisible(), false);
  await close();
});

shell('a viewer sees no button that the server would refuse', async () => {
  await scene.become('viewer');
  const { page, close } = await scene.open('/deliveries?status=failure');
  await page.getByText('No deliveries match these filters').waitFor();
  await until(
    'the role',
    async () => (await page.getByRole('button', { name: 'Resend…' }).count()) === 0,
  );
  await close();
});

shell.run();
