import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Activity } from '@gateway/client';
import {
  backlogOf,
  filled,
  latencyOf,
  lineOf,
  successOf,
  summaryOf,
} from '#dashboard/pages/overview/activity';
import { openKv } from '#store/kv/redis-kv';
import { proxy, type Proxy } from '../support/proxy.js';
import { redis, type RedisDatabase } from '../support/redis.js';
import { services } from '../support/services.js';
import { dashboardScene, type Scene } from './scene.js';

const overview = suite('dashboard/overview');

let scene: Scene;
let postgres: Proxy;
let redisProxy: Proxy;
let ownRedis: RedisDatabase;
overview.before(async () => {
  ownRedis = await redis();
  const { port } = new URL((await services.postgres()).url);
  postgres = await proxy({ port: Number(port) });
  redisProxy = await proxy({ port: ownRedis.connection.port });
  const place = { ...ownRedis.connection, host: '127.0.0.1', port: redisProxy.port };
  scene = await dashboardScene({
    file: { database: { host: '127.0.0.1', port: postgres.port } },
    kv: openKv({ type: 'redis', scheme: 'redis', ...place }, () => undefined),
  });
});
overview.after(async () => {
  await scene.close();
  await Promise.all([postgres.close(), redisProxy.close(), ownRedis.close()]);
});

overview(
  'it says that all is well, and when an endpoint fails which one, why, and where to look',
  async () => {
    await scene.client.events.create({ event_type: 'order.paid', data: {} });
    await scene.shop.received(1);
    const { page, close } = await scene.open('/overview');
    await page.getByText('Healthy: messages are accepted, routed and delivered.').waitFor();
    scene.shop.answer({ status: 410 });
    await scene.client.events.create({ event_type: 'order.paid', data: {} });
    const health = page.getByRole('region', { name: 'Health' });
    await health.getByText('1 endpoint is inactive.').waitFor();
    await health.getByText(/shop/).first().waitFor();
    await health.getByRole('link').first().click();
    await page.getByRole('heading', { level: 1 }).waitFor();
    assert.not.match(page.url(), 'overview');
    await close();
  },
);

overview('an endpoint behind an open breaker is told with what waits and until when', async () => {
  await scene.client.endpoints.activate(scene.endpointId);
  scene.shop.answer({ status: 500 });
  for (let n = 0; n < 30; n++)
    await scene.client.events.create({ event_type: 'order.paid', data: { n } });
  const { page, close } = await scene.open('/overview');
  const health = page.getByRole('region', { name: 'Health' });
  await health
    .getByText(
      /Deliveries to shop have failed since \d\d:\d\d UTC: \d+ waiting, breaker open until \d\d:\d\d UTC\./,
    )
    .waitFor();
  const failing = page.getByRole('group', { name: 'Failing endpoints' });
  await failing.getByText('breaker open', { exact: true }).waitFor();
  await health.getByRole('link', { name: 'Open shop' }).click();
  await page.getByRole('button', { name: 'Close breaker and send now' }).waitFor();
  await close();
});

overview(
  'the backlog of the last hour is a chart, of what agents counted each minute',
  async () => {
    await scene.api.db.pool.query(
      `insert into backlog_samples select id, date_bin('1 minute', now(), 'epoch') - interval '5 minutes', 0, n
     from (values ('00000000-0000-0000-0000-000000000000'::uuid, 0), ($1, 4321)) p(id, n) on conflict (project_id, at) do update set waiting_deliveries = excluded.waiting_deliveries`,
      [scene.projectId],
    );
    const { page, close } = await scene.open('/overview');
    await page
      .getByRole('img', { name: /^Backlog\. Waiting deliveries: now .*, peak 4\.3k\./i })
      .waitFor();
    await close();
  },
);

overview('with Postgres away the page says what is unknown, and is not connected', async () => {
  const { page } = await scene.open('/overview');
  const health = page.getByRole('region', { name: 'Health' });
  const connection = page.locator('.connection');
  await page.getByText('Connected', { exact: true }).waitFor();
  postgres.cut();
  await health
    .getByText(/^Postgres has not answered since .*: nothing is accepted or delivered/)
    .waitFor();
  await page.getByText(/^Postgres cannot be reached since \d\d:\d\d/).waitFor();
  const since = await connection.innerText();
  // Two more reports arrive, which the server makes without Postgres.
  for (let n = 0; n < 2; n++)
    await page.waitForResponse((it) => it.url().endsWith('/health') && it.ok());
  assert.is(await connection.innerText(), since);
  await page.route('**/health', (route) =>
    route.fulfill({ status: 503, json: { status: false, message: 'm', code: 'database_away' } }),
  );
  await health
    .getByText(/^Unknown since .*\d\d:\d\d.*: the health of the project cannot be read\.$/)
    .waitFor();
  await page.unroute('**/health');
  postgres.restore();
  await page.getByText('Connected', { exact: true }).waitFor();
  await health.getByText(/^Postgres has not answered/).waitFor({ state: 'detached' });
  await page.context().close();
});

overview('with Redis away the page says what is unknown, and is connected', async () => {
  const { page, close } = await scene.open('/overview');
  const health = page.getByRole('region', { name: 'Health' });
  redisProxy.cut();
  await health
    .getByText(/^Redis has not answered since .*: the states of circuit breakers are unknown\./)
    .waitFor();
  await page.getByText('Connected', { exact: true }).waitFor();
  redisProxy.restore();
  await health.getByText(/^Redis has not answered/).waitFor({ state: 'detached' });
  await close();
});

overview(
  'minutes in which nothing ended are zero, and the one that is not over is left out',
  () => {
    const counted = (at: string, success: number): Activity['content'][number] => ({
      at,
      events: { processed: success, failed: 0 },
      deliveries: { success, failure: 0, discarded: 0 },
      attempts: { success, failure: 0 },
    });
    const activity = {
      step_seconds: 60,
      content: [counted('2026-11-25T10:01:00.000Z', 120), counted('2026-11-25T10:03:00.000Z', 60)],
      latency_ms: [{ at: '2026-11-25T10:02:00.000Z', p50: 4, p95: 9, p99: 12 }],
      backlog: [{ at: '2026-11-25T10:03:00.000Z', pending_events: 0, waiting_deliveries: 7 }],
    };
    const times = {
      fromMs: Date.parse('2026-11-25T10:00:30Z'),
      toMs: Date.parse('2026-11-25T10:04:30Z'),
    };
    const steps = filled(activity, times);
    assert.equal(
      steps.atMs.map((ms) => new Date(ms).toISOString().slice(11, 16)),
      ['10:01', '10:02', '10:03'],
    );
    const line = lineOf(steps, 'Delivered', 'ok', (step) => step.deliveries.success);
    assert.equal(line.values, [2, 0, 1]);
    assert.is(summaryOf([line]), 'Delivered: now 1.0/s, peak 2.0/s');
    assert.equal(latencyOf(steps, 'p95', 'warn').values, [null, 9, null]);
    assert.equal(successOf(steps).values, [1, null, 1]);
    assert.equal(backlogOf(steps, 'Waiting', 'accent', 'waiting_deliveries').values, [
      null,
      null,
      7,
    ]);
  },
);

overview.run();
