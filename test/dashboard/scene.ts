import { startAgent } from '@gateway/agent';
import { GatewayClient } from '@gateway/client';
import type { Browser, Page } from 'playwright-core';
import { silentLog } from '#core/logging/log';
import { activated, configOf, makeProject, startApi, type Api } from '../server/api.js';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { openBrowser, visit, type Visit } from './browser.js';

/** A server with its dashboard, an agent, a project with one endpoint that gets everything, and a browser. */
export interface Scene {
  readonly api: Api;
  readonly browser: Browser;
  readonly projectId: string;
  /** For the project, with the key of its owner. */
  readonly client: GatewayClient;
  /** What the endpoint `shop` posts to. */
  readonly shop: Endpoint;
  readonly endpointId: string;
  /** Opens a page of the project, signed in: `open('/events')`. */
  open(path: string, options?: Parameters<typeof visit>[2]): Promise<Visit>;
  close(): Promise<void>;
}

const SETTINGS = {
  kv: { type: 'in-memory' },
  delivery: { allowed_networks: ['127.0.0.0/8'] },
  source: { allowed_networks: ['127.0.0.0/8'] },
};

/** Starts what the tests of a file share. Close it. */
export async function dashboardScene({ file = {} }: { file?: Record<string, unknown> } = {}): Promise<Scene> {
  const settings = { ...SETTINGS, ...file };
  const [api, browser, shop] = await Promise.all([startApi({ file: settings }), openBrowser(), endpoint()]);
  const config = configOf(api.db, { ...settings, server: { http: { port: 0, agent_port: 0, bind: '127.0.0.1' } } });
  const agent = await startAgent({ config, plugins: await activated(), log: silentLog, kv: api.kv });
  const { id: projectId } = await makeProject(api, { name: 'Orders' });
  const client = new GatewayClient({ url: api.url, key: api.owner.api_key.key, projectId });
  const { uid: endpointId } = await client.endpoints.create({ name: 'shop', url: shop.url });
  await client.subscriptions.create({ name: 'everything', endpoint_id: endpointId, filter_config: { event_types: ['*'] } });
  return {
    api,
    browser,
    projectId,
    client,
    shop,
    endpointId,
    async open(path, options) {
      const it = await visit(browser, `${api.url}${api.config.root_path}/projects/${projectId}${path}`, options);
      await signIn(it.page, api);
      return it;
    },
    async close() {
      await browser.close();
      await agent.close();
      await api.close();
      await shop.close();
    },
  };
}

/** Fills in the form of the sign-in page. */
export async function signIn(page: Page, { owner }: Api): Promise<void> {
  await page.getByLabel('Email').fill(owner.user.email);
  await page.getByLabel('Password').fill(owner.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('main#content').waitFor();
}
