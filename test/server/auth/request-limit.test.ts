import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createLog, silentLog, type Log } from '#core/logging/log';
import { startServer } from '@gateway/server';
import { bootstrapUser } from '#store/config/users';
import { migratedDatabase } from '../../store/migrated.js';
import { freePort } from '../../support/ports.js';
import { redis, type RedisDatabase } from '../../support/redis.js';
import { until } from '../../support/until.js';
import { activated, configOf } from '../api.js';

const limit = suite('server/auth/request-limit');

const BASIC = { authorization: `Basic ${Buffer.from('ops:a password of ops').toString('base64')}` };

let db: Awaited<ReturnType<typeof migratedDatabase>>;
let own: RedisDatabase;
let bearer: { authorization: string };
limit.before(async () => {
  db = await migratedDatabase();
  own = await redis();
  const { api_key: apiKey } = await bootstrapUser(db.knex, { email: 'owner@example.com', firstName: 'o', lastName: 'w' });
  bearer = { authorization: `Bearer ${apiKey.key}` };
});
limit.after(async () => {
  await own.close();
  await db.close();
});
limit.before.each(async () => void (await own.client.flushdb()));

type Get = (path: string, headers?: Record<string, string>) => Promise<Response>;

/** Runs a test with servers that allow so many requests a second. */
async function scene(
  {
    rate,
    limiter = 'kv',
    servers = 1,
    kv = own.connection,
    log = silentLog,
  }: { rate: number; limiter?: string; servers?: number; kv?: object; log?: Log },
  test: (gets: Get[]) => Promise<void>,
): Promise<void> {
  const file = {
    api_rate_limit: rate,
    kv,
    server: { http: { port: 0, bind: '127.0.0.1' }, limiter, auth: { basic: ['ops:a password of ops'] } },
  };
  const started = await Promise.all(
    Array.from({ length: servers }, async () => startServer({ config: configOf(db, file), plugins: await activated(), log })),
  );
  try {
    await test(
      started.map(
        ({ port }) =>
          (path, headers = bearer) =>
            fetch(`http://127.0.0.1:${port}${path}`, { headers }),
      ),
    );
  } finally {
    await Promise.all(started.map((server) => server.close()));
  }
}

/** Asks each server so many times at once, and gives how many answers were good, and of how many seconds. */
async function burst(gets: Get[], each: number): Promise<{ good: number; seconds: number; refused: Response[] }> {
  const startedMs = performance.now();
  const answers = await Promise.all(gets.flatMap((get) => Array.from({ length: each }, () => get('/api/v1/organisations'))));
  const refused = answers.filter(({ status }) => status === 429);
  return { good: answers.length - refused.length, seconds: (performance.now() - startedMs) / 1000, refused };
}

limit('a credential that asks too often is refused with 429 and told when to come again', () =>
  scene({ rate: 1 }, async ([get]) => {
    const { good, seconds, refused } = await burst([get!], 10);
    assert.ok(good >= 1 && good <= 1 + Math.ceil(seconds), `${good} in ${seconds} s`);
    const body = (await refused[0]!.json()) as { code: string; message: string; fix: string };
    assert.is(body.code, 'too_many_requests');
    assert.match(body.message, 'more than 1 requests in one second');
    assert.match(body.fix, '--api-rate-limit');
    assert.match(refused[0]!.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    assert.is((await get!('/api/v1/organisations', BASIC)).status, 200, 'another credential is not concerned');
  }),
);

limit('probes and scrapers are not counted, and neither are those who are refused anyway', () =>
  scene({ rate: 1 }, async ([get]) => {
    const others = await Promise.all(
      Array.from({ length: 5 }, () => [get!('/healthz', {}), get!('/metrics', {}), get!('/api/v1/organisations', {})]).flat(),
    );
    assert.equal([...new Set(others.map(({ status }) => status))].sort(), [200, 401]);
    assert.is((await get!('/api/v1/organisations')).status, 200);
  }),
);

limit('servers count together in KV, under a name that does not tell the credential', () =>
  scene({ rate: 2, servers: 2 }, async (gets) => {
    const { good, seconds } = await burst(gets, 8);
    assert.ok(good <= 2 + Math.ceil(2 * seconds), `${good} in ${seconds} s`);
    await gets[0]!('/api/v1/organisations', BASIC);
    const names = await own.client.keys('gateway:rate:*');
    assert.is(names.length, 2);
    assert.not.match(names.join(), /ops|password|gw_/);
  }),
);

limit('in memory each server counts on its own, and KV knows nothing of it', () =>
  scene({ rate: 1, servers: 2, limiter: 'in-memory' }, async (gets) => {
    for (const get of gets) assert.is((await get('/api/v1/organisations')).status, 200);
    assert.ok((await burst(gets, 5)).refused.length > 0);
    assert.equal(await own.client.keys('gateway:rate:*'), []);
  }),
);

limit('a limit of 0 is none', () =>
  scene({ rate: 0 }, async (gets) => {
    assert.is((await burst(gets, 30)).good, 30);
    assert.equal(await own.client.keys('gateway:rate:*'), []);
  }),
);

limit('without KV each server counts on its own, and says so once', async () => {
  const lines: string[] = [];
  const log = createLog({ level: 'info', name: 'test', destination: { write: (line) => lines.push(line) } });
  await scene({ rate: 1, kv: { host: '127.0.0.1', port: await freePort() }, log }, async (gets) => {
    assert.is((await gets[0]!('/api/v1/organisations')).status, 200);
    assert.ok((await burst(gets, 5)).refused.length > 0);
    await until('the warning', () => lines.length > 0);
    assert.is(lines.filter((line) => line.includes('KV is away')).length, 1);
    assert.match(lines[0] ?? '', 'this server counts requests on its own');
  });
});

limit.run();
