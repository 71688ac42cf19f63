import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { accessibilityMistakes, picture } from './browser.js';
import { dashboardScene, type Scene } from './scene.js';

const shell = suite('dashboard/shell');
let scene: Scene;
shell.before(async () => {
  scene = await dashboardScene();
});
shell.after(() => scene.close());

shell('a delivery appears in the log while it is watched', async () => {
  const { page, problems, close } = await scene.open('/deliveries');
  await page.getByText('No deliveries yet').waitFor();
  await scene.client.events.create({ event_type: 'order.paid', data: { number: 1 } });
  const row = page.getByRole('row', { name: /order\.paid/ });
  await row.waitFor();
  await row.getByText('success').waitFor();
  await picture(page, 'deliveries');
  assert.equal(await accessibilityMistakes(page), []);
  assert.equal(problems, []);
  await close();
});

shell.run();
