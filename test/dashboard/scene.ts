import { setTimeout as sleep } from 'node:timers/promises';
import { startAgent } from '@gateway/agent';
import { GatewayClient, type CreateEndpoint, type CreateSubscription } from '@gateway/client';
import type { ActiveSource } from '@gateway/core/plugins';
import type { Browser } from 'playwright-core';
import { silentLog } from '#core/logging/log';
import { insertSource } from '#store/config/sources';
import type { Kv } from '#store/kv/kv';
import { quarantineMessages } from '#store/quarantine/messages';
import { activated, configOf, startApi, type Api } from '../server/api.js';
import { quarantinedMessage } from '../store/batches.js';
import { endpoint, type Endpoint } from '../support/endpoint.js';
import { until } from '../support/until.js';
import { closeBrowser, openBrowser, visit, type Visit } from './browser.js';

/**
 * A server with its dashboard, an agent, a project with one endpoint subscribed to everything, and
 * a browser.
 */
export interface Scene {
  readonly api: Api;
  readonly cookie: string;
  readonly browser: Browser;
  readonly projectId: string;
  readonly client: GatewayClient;
  readonly shop: Endpoint;
  readonly endpointId: string;
  /** Opens a page of the project, signed in: `open('/events')`. */
  open(path: string, options?: Parameters<typeof visit>[2]): Promise<Visit>;
  become(role: 'viewer' | 'owner'): Promise<void>;
  close(): Promise<void>;
}

const SETTINGS = {
  kv: { type: 'in-memory' },
  delivery: { allowed_networks: ['127.0.0.0/8'] },
  source: { allowed_networks: ['127.0.0.0/8'] },
};

interface Options {
  readonly file?: Record<string, unknown>;
  /** Source plugins in addition to the repository's. */
  readonly sources?: Readonly<Record<string, ActiveSource>>;
  /** The KV store of the server and the agent; one in memory by default. */
  readonly kv?: Kv;
}

/** A server just set up by `gateway bootstrap`, an agent, and a browser. The caller closes it. */
export function emptyInstance(options: Options = {}) {
  return instance(options, async () => undefined);
}

/**
 * `prepare` runs before the agent starts, so that the agent knows its result: later changes reach
 * it within about a second.
 */
async function instance<Prepared>(
  { file = {}, sources = {}, ...kv }: Options,
  prepare: (api: Api) => Promise<Prepared>,
) {
  const settings = { ...SETTINGS, ...file };
  const [api, browser] = await Promise.all([
    startApi({ file: settings, sources, ...kv }),
    openBrowser(),
  ]);
  const prepared = await prepare(api);
  const config = configOf(api.db, {
    ...settings,
    server: { http: { port: 0, agent_port: 0, bind: '127.0.0.1' } },
  });
  const agent = await startAgent({
    config,
    plugins: await activated(sources, { source: settings.source }),
    log: silentLog,
    kv: api.kv,
  });
  const cookie = await sessionOf(api, api.owner.user.email, api.owner.password);
  return {
    api,
    browser,
    cookie,
    prepared,
    async become(role: 'viewer' | 'owner') {
      await api.db.pool.query('update organisation_members set role = $1 where user_id = $2', [
        role,
        api.owner.user.id,
      ]);
      // The server keeps memberships in memory for a second, and timers may be early.
      await sleep(1_100);
    },
    async close() {
      await closeBrowser(browser);
      await agent.close();
      await api.close();
    },
  };
}

/**
 * Starts what the tests of a file share. The agent knows what `prepare` creates from the start. The
 * caller closes it.
 */
export async function dashboardScene(
  options: Options = {},
  prepare?: (made: Pick<Scene, 'client' | 'endpointId'>) => Promise<unknown>,
): Promise<Scene> {
  const shop = await endpoint();
  const { api, browser, cookie, prepared, become, close } = await instance(
    options,
    async ({ url, config, owner }) => {
      const account = new GatewayClient({ url: url + config.root_path, key: owner.api_key.key });
      const { uid: projectId } = await account.projects.create({ name: 'Orders' });
      const client = account.project(projectId);
      const { endpointId } = await subscribed(
        client,
        { name: 'shop', url: shop.url },
        { event_types: ['*'] },
      );
      await prepare?.({ client, endpointId });
      return { projectId, client, endpointId };
    },
  );
  const { projectId, client, endpointId } = prepared;
  return {
    api,
    cookie,
    browser,
    projectId,
    client,
    shop,
    endpointId,
    async open(path, options) {
      const it = await visit(
        browser,
        `${api.url}${api.config.root_path}/projects/${projectId}${path}`,
        { cookie, ...options },
      );
      await it.page.locator('main#content').waitFor();
      return it;
    },
    become,
    async close() {
      await close();
      await shop.close();
    },
  };
}

/**
 * Signs in over the API and returns the session's cookie: signing in by the form takes a second for
 * the password.
 */
export async function sessionOf(
  { url, config }: Api,
  email: string,
  password: string,
): Promise<string> {
  const response = await fetch(`${url}${config.root_path}/api/v1/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password }),
  });
  const [cookie = ''] = response.headers.getSetCookie();
  if (!response.ok)
    throw new Error(`signing in answered ${response.status}: ${await response.text()}`);
  return cookie.split(';')[0] ?? '';
}

/** A retry policy under which a delivery fails after its first request. */
export const ONCE = { type: 'linear', duration: 1, retry_count: 0 } as const;

/** Creates an endpoint and a subscription with the same name. */
export async function subscribed(
  client: GatewayClient,
  fields: CreateEndpoint,
  filter_config: CreateSubscription['filter_config'],
) {
  const { uid: endpointId } = await client.endpoints.create(fields);
  const { uid: subscriptionId } = await client.subscriptions.create({
    name: fields.name,
    endpoint_id: endpointId,
    filter_config,
  });
  return { endpointId, subscriptionId };
}

/** Waits until `count` deliveries have failed permanently. */
export async function failures(
  { client }: Scene,
  count: number,
  endpointId?: string,
): Promise<void> {
  await until(`${count} failed deliveries`, async () => {
    const { content } = await client.eventDeliveries
      .list({ status: ['failure'], ...(endpointId && { endpointId }) })
      .page();
    return content.length === count;
  });
}

/** A function that throws on messages without a status, and the agents' sentence about it. */
export const THROWING = `function transform(order) {
  return { event_type: 'order.' + order.status.toLowerCase(), data: order };
}`;
export const THREW =
  'The transform function threw a TypeError on line 2: Cannot read properties of undefined.';

interface Refusing {
  readonly body_function?: string | null;
  readonly is_disabled?: boolean;
  readonly code?: string;
  readonly reason?: string;
}

/** Creates a source with an unreachable broker, and quarantined messages, oldest first. */
export async function quarantined(
  { api, projectId }: Scene,
  name: string,
  messages: readonly (string | Buffer)[],
  {
    body_function = THROWING,
    is_disabled = true,
    code = 'transform_threw',
    reason = THREW,
  }: Refusing = {},
): Promise<{ readonly sourceId: string; readonly ids: readonly string[] }> {
  const pub_sub = { type: 'kafka', kafka: { brokers: ['localhost:1'], topic_name: 'orders' } };
  const source = { name, type: 'pub_sub', pub_sub, body_function, is_disabled } as const;
  const { id: sourceId } = await insertSource(api.db.knex, projectId, source);
  const rows = messages.map((message, n) =>
    quarantinedMessage({
      projectId,
      sourceId,
      occurredAtMs: Date.now() - 60_000 + n,
      coordinates: `${name}/0/${n}`,
      code,
      reason,
      headers: '{"x-shop":"7"}',
      raw: Buffer.from(message),
    }),
  );
  await quarantineMessages(api.db.pool, rows);
  return { sourceId, ids: rows.map(({ id }) => id) };
}
