// Measures the dashboard with many deliveries: how soon the log shows rows, and how smoothly it
// scrolls. --lighthouse adds the scores of Lighthouse. Run: npm run bench -- dashboard [--rows
// 1000000] [--scroll 20] [--lighthouse]
import { execFile } from 'node:child_process';
import os from 'node:os';
import { parseArgs, promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { chromiumPath, SIZES } from '../dashboard/browser.js';
import { dashboardScene, type Scene } from '../dashboard/scene.js';
import { until } from '../support/until.js';
import { ms, round } from './figures.js';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    scroll: { type: 'string', default: '20' },
    lighthouse: { type: 'boolean' },
  },
});
const [count, seconds] = [Number(values.rows), Number(values.scroll)];
/** Pixels per frame: 60 frames show 2,400 rows. */
const STEP_PX = 1_500;
const LIGHTHOUSE = 'lighthouse@12';

const scene = await dashboardScene();
try {
  console.log(
    `node ${process.version}, ${os.cpus().length} cores, Chromium ${scene.browser.version()}; ${round(count)} deliveries in the project`,
  );
  await fill(scene);
  const { page, close } = await scene.open('/deliveries');
  await firstRow(page);
  for (const filter of [
    '',
    '?status=failure',
    `?endpoint=${scene.endpointId}&status=success`,
    '?search=order.paid',
  ]) {
    const startedAtMs = performance.now();
    await page.goto(`${page.url().replace(/\?.*/, '')}${filter}`);
    await firstRow(page);
    console.log(
      `  ${(filter || 'all').padEnd(12)} first rows after ${ms(performance.now() - startedAtMs)}, navigation included`,
    );
  }
  await page.goto(page.url().replace(/\?.*/, ''));
  await firstRow(page);
  const { frames, rows, heapMb } = await scroll(page);
  const sorted = [...frames].sort((a, b) => a - b);
  const at = (share: number) => ms(sorted[Math.floor((sorted.length - 1) * share)]!);
  console.log(
    `  scrolled to row ${round(rows)} in ${seconds} s: ${round(frames.length / seconds)} frames/s, p50 ${at(0.5)}, p95 ${at(0.95)}, longest ${at(1)}; heap ${round(heapMb)} MB`,
  );
  await close();
  if (values.lighthouse) await lighthouse(scene);
} finally {
  await scene.close();
}

/** Inserts deliveries of one posted event, over the last thirty days. */
async function fill({ api, client, projectId, endpointId }: Scene): Promise<void> {
  await client.events.create({ event_type: 'order.paid', data: { order: 'A-1001' } });
  const [event] = await until('the event', async () => {
    const { rows } = await api.db.pool.query<{ event_id: string }>(
      'select event_id from event_deliveries where project_id = $1',
      [projectId],
    );
    return rows.length > 0 && rows;
  });
  await api.db.pool.query(
    `select ensure_day((now() at time zone 'UTC')::date - n) from generate_series(0, 31) n`,
  );
  await api.db.pool.query(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, status, event_type, attempts)
     select $1, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid, at, $2::uuid, $3::uuid,
            (case n % 20 when 0 then 'failure' else 'success' end)::event_delivery_status, case n % 3 when 0 then 'order.paid' else 'order.created' end, 1
     from (select n, now() - n * (interval '30 days' / $4::bigint) as at from generate_series(1, $4::bigint) n) made`,
    [projectId, event!.event_id, endpointId, count],
  );
  await api.db.pool.query('analyze event_deliveries');
}

async function firstRow(page: Page): Promise<void> {
  await page.locator('.log-row').first().waitFor({ timeout: 60_000 });
}

/** Scrolls as fast as pages of the list arrive. Returns the milliseconds between frames. */
function scroll(page: Page): Promise<{ frames: number[]; rows: number; heapMb: number }> {
  return page.evaluate(
    async ({ seconds: most, step }) => {
      const body = document.querySelector('.log-body')!;
      const frames: number[] = [];
      const startedAtMs = performance.now();
      for (let last = startedAtMs; last - startedAtMs < most * 1000;) {
        body.scrollTop += step;
        const now = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
        frames.push(now - last);
        last = now;
      }
      const rows = Math.max(
        ...[...document.querySelectorAll('.log-row')].map((row) =>
          Number(row.getAttribute('data-row')),
        ),
      );
      const { memory } = performance as unknown as { memory: { usedJSHeapSize: number } };
      return { frames: frames.slice(1), rows, heapMb: memory.usedJSHeapSize / 2 ** 20 };
    },
    { seconds, step: STEP_PX },
  );
}

/**
 * Fetched from the registry instead of a dependency: it has two hundred packages, for one figure.
 */
async function lighthouse({ api, cookie, projectId }: Scene): Promise<void> {
  const program = await chromiumPath();
  const root = `${api.url}${api.config.root_path}`;
  const pages = {
    'sign-in': `${root}/`,
    overview: `${root}/projects/${projectId}/overview`,
    deliveries: `${root}/projects/${projectId}/deliveries`,
  };
  for (const [name, url] of Object.entries(pages))
    for (const preset of ['desktop', 'mobile']) {
      const { stdout } = await promisify(execFile)(
        'npx',
        [
          ...[
            '--yes',
            LIGHTHOUSE,
            url,
            '--output=json',
            '--quiet',
            `--chrome-flags=--headless=new --no-sandbox --window-size=${SIZES.desktop.width},900`,
          ],
          ...(preset === 'desktop' ? ['--preset=desktop'] : []),
          ...(name === 'sign-in' ? [] : [`--extra-headers=${JSON.stringify({ cookie })}`]),
        ],
        { env: { ...process.env, CHROME_PATH: program }, maxBuffer: 64 << 20 },
      );
      const { categories } = JSON.parse(stdout) as {
        categories: Record<string, { title: string; score: number }>;
      };
      const scores = Object.values(categories).map(
        ({ title, score }) => `${title} ${Math.round(score * 100)}`,
      );
      console.log(`  lighthouse, ${name}, ${preset}: ${scores.join(', ')}`);
    }
}
