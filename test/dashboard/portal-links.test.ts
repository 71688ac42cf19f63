// long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { inspect, visit } from './browser.js';
import { dashboardScene, type Scene } from './scene.js';

const portalLinks = suite('dashboard/portal-links');

let scene: Scene;
portalLinks.before(async () => {
  scene = await dashboardScene();
  await scene.client.endpoints.create({
    name: 'acme hooks',
    url: scene.shop.url,
    owner_id: 'acme',
  });
});
portalLinks.after(() => scene.close());

portalLinks(
  'an operator gives an owner a portal link, a new URL for it, and revokes it',
  async () => {
    const { page, close } = await scene.open('/overview');
    const shown = page.getByRole('dialog').getByText('/portal/');
    await page.getByRole('link', { name: 'Portal links' }).click();
    await page.getByText('No active portal links').waitFor();
    await page.keyboard.press('n');
    await page.getByLabel('Name').fill('Acme');
    await page.getByRole('dialog').getByLabel('Owner ID').fill('acme');
    await page.getByLabel('Expires').selectOption('custom');
    await page.getByLabel('Time').fill('2001-01-01T00:00');
    await page.getByRole('button', { name: 'Create link' }).click();
    await page.getByText(/Expires must be/).waitFor();
    await page.getByLabel('Expires').selectOption('In 7 days');
    await page.getByRole('button', { name: 'Create link' }).click();
    const url = await shown.innerText();
    await page.getByText('This link opens the portal of acme').waitFor();
    await page.getByRole('button', { name: 'Copy URL' }).click();
    assert.is(await page.evaluate('navigator.clipboard.readText()'), url);
    await inspect(page, 'portal-link-url-light');
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('row', { name: /Acme acme read and resend active/ }).waitFor();

    const owner = await visit(scene.browser, url);
    await owner.page.getByRole('row', { name: /acme hooks/ }).waitFor();
    assert.is(await owner.page.getByRole('row', { name: /shop/ }).count(), 0);

    await page.getByRole('button', { name: 'New URL for Acme' }).click();
    await page.getByRole('button', { name: 'Create URL' }).click();
    const next = await shown.innerText();
    await page.getByRole('button', { name: 'Done' }).click();
    await owner.page.reload();
    await owner.page.getByText('This link is no longer valid').waitFor();
    await owner.page.goto(next);
    await owner.page.reload();
    await owner.page.getByRole('row', { name: /acme hooks/ }).waitFor();

    await page.emulateMedia({ colorScheme: 'dark' });
    await page.getByRole('button', { name: 'Revoke Acme' }).click();
    await page.getByRole('button', { name: 'Revoke', exact: true }).click();
    await page.getByText('No active portal links').waitFor();
    await owner.page.reload();
    await owner.page.getByText('This link is no longer valid').waitFor();
    assert.is(await owner.page.getByText('acme hooks').count(), 0);

    await page.getByRole('button', { name: /Show revoked and expired/ }).click();
    await page.getByRole('row', { name: /Acme acme .*revoked/ }).waitFor();
    await scene.client.portalLinks.create({
      name: 'Globex',
      owner_id: 'globex',
      can_manage_endpoint: true,
    });
    await page.reload();
    await page.getByRole('row', { name: /Globex globex manage endpoints active/ }).waitFor();
    await inspect(page, 'portal-links-dark');
    await owner.close();
    await close();
  },
);

portalLinks(
  'the page of an endpoint leads to a link for its owner; links are found by their owner, and edited',
  async () => {
    await scene.client.portalLinks.create({ name: 'Initech', owner_id: 'initech' });
    const { page, close } = await scene.open('/endpoints', { theme: 'dark' });
    await page
      .getByRole('row', { name: /acme hooks/ })
      .getByRole('link')
      .click();
    await page.getByRole('link', { name: 'Create portal link' }).click();
    const dialog = page.getByRole('dialog');
    assert.equal(
      [
        await dialog.getByLabel('Owner ID').inputValue(),
        await dialog.getByLabel('Name').inputValue(),
      ],
      ['acme', 'acme'],
    );
    await inspect(page, 'portal-link-new-dark');
    await dialog.getByRole('button', { name: 'Create link' }).click();
    const owner = await visit(scene.browser, await dialog.getByText('/portal/').innerText());
    await owner.page.getByRole('row', { name: /acme hooks/ }).waitFor();
    assert.is(await owner.page.getByRole('link', { name: 'New endpoint' }).count(), 0);
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('row', { name: /acme acme read and resend active/ }).waitFor();
    assert.is(await page.getByRole('row', { name: /Initech/ }).count(), 0);

    await page.getByRole('button', { name: 'Edit acme' }).click();
    await dialog.getByLabel('Name').fill('Acme Ltd');
    await dialog.getByLabel('Manage endpoints').check();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('row', { name: /Acme Ltd acme manage endpoints active/ }).waitFor();
    await owner.page.reload();
    await owner.page.getByRole('link', { name: 'New endpoint' }).waitFor();

    await page.getByRole('searchbox', { name: 'Owner ID' }).fill('hooli');
    await page.keyboard.press('Enter');
    await page.getByText('No active portal links of hooli').waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByRole('row', { name: /Initech/ }).waitFor();
    await page.getByRole('row', { name: /Acme Ltd/ }).waitFor();
    await owner.close();
    await close();
  },
);

portalLinks.run();
