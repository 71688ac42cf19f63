// long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { oidcProvider, type TestProvider } from '../support/oidc-provider.js';
import { freePort } from '../support/ports.js';
import { insertPasswordReset } from '#store/people/password-resets';
import { closeBrowser, inspect, openBrowser, visit } from './browser.js';
import { startApi, makeProject, type Api } from '../server/api.js';

const signIn = suite('dashboard/sign-in');
let provider: TestProvider;
let api: Api;
let browser: Awaited<ReturnType<typeof openBrowser>>;
let project: string;

signIn.before(async () => {
  const port = await freePort();
  const host = `127.0.0.1:${port}`;
  provider = await oidcProvider({
    redirectUri: `http://${host}/sign-in/callback`,
    inIdToken: true,
  });
  const oidc = {
    issuer: provider.issuer,
    client_id: provider.clientId,
    client_secret: provider.clientSecret,
    label: 'Keycloak',
    allowed_networks: ['127.0.0.0/8'],
  };
  [api, browser] = await Promise.all([
    startApi({ file: { host, oidc, server: { http: { port, bind: '127.0.0.1' } } } }),
    openBrowser(),
  ]);
  ({ path: project } = await makeProject(api));
});
signIn.after(async () => {
  await closeBrowser(browser);
  await api.close();
  await provider.close();
});

signIn('a person signs in with the provider and comes back to the page of the link', async () => {
  provider.account = { sub: 'owner', email: api.owner.user.email, email_verified: true };
  const { page, close } = await visit(browser, `${api.url}${project}/deliveries?status=failure`);
  const button = page.getByRole('button', { name: 'Sign in with Keycloak' });
  await button.waitFor();
  await page.getByLabel('Password').waitFor();
  await inspect(page, 'sign-in-provider');
  await button.click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  assert.is(page.url(), `${api.url}${project}/deliveries?status=failure`);
  await page.reload();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  await close();
});

signIn('an invited person accepts by signing in with the provider', async () => {
  const invitations = `/organisations/${api.owner.organisation.id}/invitations`;
  const { body } = await api.call('POST', invitations, {
    email: 'ada@example.com',
    role: 'member',
  });
  provider.account = {
    sub: 'ada',
    email: 'ada@example.com',
    email_verified: true,
    given_name: 'Ada',
  };
  const { page, close } = await visit(browser, `${api.url}/#invitation=${body.data.token}`);
  await page.getByText('Sign in as ada@example.com to accept the invitation.').waitFor();
  await page.getByRole('button', { name: 'Sign in with Keycloak' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  await page.waitForURL(`${api.url}${project}/**`);
  assert.ok((await api.call('GET', invitations)).body.data.content[0].accepted_at);
  await close();
});

signIn('who may not sign in reads why, and gets back to the sign-in page', async () => {
  provider.account = { sub: 'stranger', email: 'stranger@example.com', email_verified: true };
  const { page, close } = await visit(browser, `${api.url}${project}/overview`);
  await page.getByRole('button', { name: 'Sign in with Keycloak' }).click();
  await page
    .getByText(
      'This gateway does not allow stranger@example.com to sign in: no one has invited this address',
    )
    .waitFor();
  await inspect(page, 'sign-in-refused');
  await page.getByRole('link', { name: 'Back to the sign-in page' }).click();
  await page.getByRole('button', { name: 'Sign in with Keycloak' }).waitFor();
  await close();
});

signIn('nobody is sent to another host afterwards', async () => {
  provider.account = { sub: 'owner', email: api.owner.user.email, email_verified: true };
  for (const target of [
    'https://evil.example.com/x',
    '//evil.example.com/x',
    '/\\evil.example.com/x',
    'javascript:alert(1)',
  ]) {
    const { page, close } = await visit(browser, `${api.url}/`);
    await page.getByRole('button', { name: 'Sign in with Keycloak' }).waitFor();
    // Replaces the page's stored target.
    await page.route('**/api/v1/auth/oidc/complete', async (route) => {
      await page.evaluate(`sessionStorage.setItem('gateway-left', ${JSON.stringify(target)})`);
      await route.continue();
    });
    await page.getByRole('button', { name: 'Sign in with Keycloak' }).click();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    assert.is(new URL(page.url()).origin, new URL(api.url).origin, target);
    await close();
  }
});

signIn('a link for a forgotten password sets another one, once', async () => {
  const { id, email } = api.owner.user;
  const { token } = await insertPasswordReset(api.db.knex, id);
  const link = `${api.url}/#password-reset=${token}`;
  const { page, close } = await visit(browser, link);
  await page.getByRole('heading', { name: 'Choose a new password' }).waitFor();
  await inspect(page, 'reset-password-light');
  const choose = async (password: string) => {
    await page.getByLabel('New password').fill(password);
    await page.getByRole('button', { name: 'Change password' }).click();
  };
  await choose('short');
  await page
    .getByText(/must have at least 12 characters/i)
    .first()
    .waitFor();
  await choose('another long word');
  await page.getByText('Password changed. Sign in with your new password.').waitFor();
  assert.not.match(page.url(), 'password-reset');
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill('another long word');
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  await close();

  const again = await visit(browser, link);
  await again.page.getByLabel('New password').fill('a third long word');
  await again.page.getByRole('button', { name: 'Change password' }).click();
  await again.page
    .getByText(/link is not valid/)
    .first()
    .waitFor();
  await again.close();
});

signIn.run();
