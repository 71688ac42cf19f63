import { startAgent } from '@gateway/agent';
import { GatewayClient } from '@gateway/client';
import type { ActiveSource } from '@gateway/core/plugins';
import type { Browser } from 'playwright-core';
import { silentLog } from '#core/logging/log';
import { activated, configOf, startApi, type Api } from '../server/api.js';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { openBrowser, visit, type Visit } from './browser.js';

/** A server with its dashboard, an agent, a project with one endpoint that gets everything, and a browser. */
export interface Scene {
  readonly api: Api;
  /** Of the session of the owner. */
  readonly cookie: string;
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

interface Options {
  readonly file?: Record<string, unknown>;
  /** Source plugins beside those of this repository. */
  readonly sources?: Readonly<Record<string, ActiveSource>>;
}

/** A server that was just set up by `gateway bootstrap`, an agent, and a browser. Close it. */
export async function emptyInstance({ file = {}, sources = {} }: Options = {}) {
  const settings = { ...SETTINGS, ...file };
  const [api, browser] = await Promise.all([startApi({ file: settings, sources }), openBrowser()]);
  const config = configOf(api.db, { ...settings, server: { http: { port: 0, agent_port: 0, bind: '127.0.0.1' } } });
  const agent = await startAgent({ config, plugins: await activated(sources, { source: settings.source }), log: silentLog, kv: api.kv });
  const cookie = await sessionOf(api, api.owner.user.email, api.owner.password);
  return {
    api,
    browser,
    cookie,
    async close() {
      await browser.close();
      await agent.close();
      await api.close();
    },
  };
}

/** Starts what the tests of a file share. Close it. */
export async function dashboardScene(options: Options = {}): Promise<Scene> {
  const [{ api, browser, cookie, close }, shop] = await Promise.all([emptyInstance(options), endpoint()]);
  const account = new GatewayClient({ url: api.url + api.config.root_path, key: api.owner.api_key.key });
  const { uid: projectId } = await account.projects.create({ name: 'Orders' });
  const client = account.project(projectId);
  const { uid: endpointId } = await client.endpoints.create({ name: 'shop', url: shop.url });
  await client.subscriptions.create({ name: 'everything', endpoint_id: endpointId, filter_config: { event_types: ['*'] } });
  return {
    api,
    cookie,
    browser,
    projectId,
    client,
    shop,
    endpointId,
    async open(path, options) {
      const it = await visit(browser, `${api.url}${api.config.root_path}/projects/${projectId}${path}`, { cookie, ...options });
      await it.page.locator('main#content').waitFor();
      return it;
    },
    async close() {
      await close();
      await shop.close();
    },
  };
}

/** Signs in over the API and gives the cookie of the session. A page signs in by its form: that takes a second for the password. */
export async function sessionOf({ url, config }: Api, email: string, password: string): Promise<string> {
  const response = await fetch(`${url}${config.root_path}/api/v1/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password }),
  });
  const [cookie = ''] = response.headers.getSetCookie();
  if (!response.ok) throw new Error(`signing in answered ${response.status}: ${await response.text()}`);
  return cookie.split(';')[0] ?? '';
}
