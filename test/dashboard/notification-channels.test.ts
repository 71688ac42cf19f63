// long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { freePort } from '../support/ports.js';
import { inspect, panel } from './browser.js';
import { dashboardScene, type Scene } from './scene.js';

const channels = suite('dashboard/notification-channels');

let scene: Scene;
let slack: Endpoint;
channels.before(async () => {
  [scene, slack] = await Promise.all([dashboardScene(), endpoint()]);
});
channels.after(async () => {
  await scene.close();
  await slack.close();
});

channels('a channel is added and tested, and a wrong URL shows why', async () => {
  const { page, close } = await scene.open('/settings');
  const shown = panel(page, 'Notification channels');
  const add = async (name: string, url: string) => {
    await shown.getByRole('button', { name: 'Add channel…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill(name);
    await dialog.getByLabel('Incoming webhook URL').fill(url);
    await dialog.getByRole('button', { name: 'Add channel' }).click();
  };
  await add('Wrong', 'example.com/hook');
  await page
    .getByRole('dialog')
    .getByText(/must be a URL/i)
    .first()
    .waitFor();
  await page.keyboard.press('Escape');

  await add('On call', `${slack.url}/hook`);
  await shown.getByRole('button', { name: 'Send test to On call' }).click();
  const [request] = await slack.received(1, { withinMs: 30_000 });
  assert.equal([request!.method, request!.url], ['POST', '/hook']);
  assert.match(request!.body.toString(), 'Test of the channel On call of project Orders');
  await shown.getByRole('row', { name: /On call Slack .*(now|ago)/ }).waitFor();

  const port = await freePort();
  await add('Gone', `http://127.0.0.1:${port}/hook`);
  await shown.getByRole('button', { name: 'Send test to Gone' }).click();
  await shown.getByText(/nothing listens there/).waitFor({ timeout: 30_000 });
  await inspect(page, 'notification-channels-light');
  await close();
});

channels.run();
