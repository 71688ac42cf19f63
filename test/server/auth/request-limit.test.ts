import { connect } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createLog, silentLog, type Log } from '#core/logging/log';
import { startServer } from '@gateway/server';
import { bootstrapUser } from '#store/people/users';
import { migratedDatabase } from '../../store/migrated.js';
import { freePort } from '../../support/ports.js';
import { keptMetrics, type KeptMetrics } from '../../support/kept-metrics.js';
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
  const { api_key: apiKey } = await bootstrapUser(db.knex, {
    email: 'owner@example.com',
    firstName: 'o',
    lastName: 'w',
  });
  bearer = { authorization: `Bearer ${apiKey.key}` };
});
limit.after(async () => {
  await own.close();
  await db.close();
});
limit.before.each(async () => void (await own.client.flushdb()));

type Get = (path: string, headers?: Record<string, string>) => Promise<Response>;

/** Runs a test with servers with this limit per second. */
async function scene(
  {
    rate = 0,
    limiter = 'kv',
    servers = 1,
    kv = own.connection,
    log = silentLog,
    failures,
    proxies = [],
    metered,
  }: {
    rate?: number;
    limiter?: string;
    servers?: number;
    kv?: object;
    log?: Log;
    failures?: number;
    proxies?: string[];
    metered?: KeptMetrics;
  },
  test: (gets: Get[]) => Promise<void>,
): Promise<void> {
  const file = {
    api_rate_limit: rate,
    kv,
    server: {
      http: { port: 0, bind: '127.0.0.1' },
      limiter,
      trusted_proxies: proxies,
      auth: {
        basic: ['ops:a password of ops'],
        ...(failures === undefined ? {} : { max_failures: failures }),
      },
    },
  };
  const started = await Promise.all(
    Array.from({ length: servers }, async () =>
      startServer({
        config: configOf(db, file),
        plugins: { ...(await activated()), ...metered },
        log,
      }),
    ),
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

/**
 * Sends `each` concurrent requests to each server. Returns the number of accepted ones, the
 * duration and the refused responses.
 */
async function burst(
  gets: Get[],
  each: number,
): Promise<{ good: number; seconds: number; refused: Response[] }> {
  const startedMs = performance.now();
  const answers = await Promise.all(
    gets.flatMap((get) => Array.from({ length: each }, () => get('/api/v1/organisations'))),
  );
  const refused = answers.filter(({ status }) => status === 429);
  return {
    good: answers.length - refused.length,
    seconds: (performance.now() - startedMs) / 1000,
    refused,
  };
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
    assert.is(
      (await get!('/api/v1/organisations', BASIC)).status,
      200,
      'another credential is not concerned',
    );
    assert.ok(
      seconds >= 0.49,
      `who does not wait as told is answered later, not after ${seconds} s`,
    );
  }),
);

limit('answers tell the limit of the key, what is left of it, and when it is whole again', () =>
  scene({ rate: 5 }, async ([get]) => {
    const told = ({ headers }: Response) =>
      ['limit', 'remaining', 'reset'].map((name) => Number(headers.get(`ratelimit-${name}`)));
    assert.equal(told(await get!('/api/v1/organisations')), [5, 4, 1]);
    const { refused } = await burst([get!], 12);
    assert.equal(told(refused[0]!), [5, 0, 1]);
    assert.is((await get!('/healthz')).headers.get('ratelimit-limit'), null);
  }),
);

limit('without a limit nothing is told', () =>
  scene({ limiter: 'in-memory' }, async ([get]) => {
    assert.is((await get!('/api/v1/organisations')).headers.get('ratelimit-limit'), null);
  }),
);

limit('probes and scrapers are not counted, and neither are those who are refused anyway', () =>
  scene({ rate: 1 }, async ([get]) => {
    const others = await Promise.all(
      Array.from({ length: 5 }, () => [
        get!('/healthz', {}),
        get!('/metrics', {}),
        get!('/api/v1/organisations', {}),
      ]).flat(),
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
  const log = createLog({
    level: 'info',
    name: 'test',
    destination: { write: (line) => lines.push(line) },
  });
  await scene({ rate: 1, kv: { host: '127.0.0.1', port: await freePort() }, log }, async (gets) => {
    assert.is((await gets[0]!('/api/v1/organisations')).status, 200);
    assert.ok((await burst(gets, 5)).refused.length > 0);
    await until('the warning', () => lines.length > 0);
    assert.is(lines.filter((line) => line.includes('KV is unavailable')).length, 1);
    assert.match(lines[0] ?? '', 'this server counts requests and failed logins on its own');
  });
});

const basic = (password: string, more: Record<string, string> = {}) => ({
  authorization: `Basic ${Buffer.from(`ops:${password}`).toString('base64')}`,
  ...more,
});
const ORGANISATIONS = '/api/v1/organisations';
/** The statuses of sequential logins. */
async function statusesOf(get: Get, logins: readonly Record<string, string>[]): Promise<number[]> {
  const statuses: number[] = [];
  for (const headers of logins) statuses.push((await get(ORGANISATIONS, headers)).status);
  return statuses;
}
const wrong = (count: number, more?: Record<string, string>) =>
  Array.from({ length: count }, (_, n) => basic(`wrong ${n}`, more));
const times = (status: number, count: number) => Array<number>(count).fill(status);

limit(
  'who guesses a password is locked out after ten, and not let in with the right one; a stored key in use works on',
  async () => {
    const lines: string[] = [];
    const log = createLog({
      level: 'info',
      name: 'test',
      destination: { write: (line) => lines.push(line) },
    });
    const metered = keptMetrics();
    await scene({ log, metered }, async ([get]) => {
      assert.equal(await statusesOf(get!, [bearer, BASIC, ...wrong(12), BASIC, bearer]), [
        200,
        200,
        ...times(401, 10),
        429,
        429,
        429,
        200,
      ]);
      const refused = await get!(ORGANISATIONS, BASIC);
      const body = (await refused.json()) as { code: string; message: string; fix: string };
      assert.equal(
        [body.code, body.message],
        ['too_many_logins', 'too many logins from 127.0.0.1 have failed'],
      );
      assert.match(body.fix, 'server.trusted_proxies');
      const seconds = Number(refused.headers.get('retry-after'));
      assert.ok(seconds > 30 && seconds <= 60, `${seconds} s`);
    });
    const line = lines.filter((it) => it.includes('locked out after'));
    assert.is(line.length, 1);
    assert.match(line[0] ?? '', '"address":"127.0.0.1"');
    assert.not.match(lines.join(), /wrong \d|password of ops|b3Bz/);
    const counted = (outcome: string) =>
      metered.value('gateway_api_login_failures_total', { credential: 'basic', outcome });
    assert.equal([counted('wrong'), counted('locked_out')], [10, 4]);
  },
);

limit('guesses that come together are no way around it', () =>
  scene({}, async ([get]) => {
    const answers = await Promise.all(wrong(100).map((headers) => get!(ORGANISATIONS, headers)));
    assert.is(answers.filter(({ status }) => status === 401).length, 10);
  }),
);

limit('guesses that one connection sends at once are no way around it either', () =>
  scene({}, async ([get]) => {
    const { port } = new URL((await get!('/healthz')).url);
    const request = ({ authorization }: { authorization: string }, more = '') =>
      `GET ${ORGANISATIONS} HTTP/1.1\r\nhost: a\r\nauthorization: ${authorization}\r\n${more}\r\n`;
    const socket = connect(Number(port), '127.0.0.1').setEncoding('latin1');
    socket.write(
      [...wrong(780), BASIC]
        .map((it, at) => request(it, at === 780 ? 'connection: close\r\n' : ''))
        .join(''),
    );
    const statuses = [...(await socket.toArray()).join('').matchAll(/HTTP\/1\.1 (\d+)/g)].map(
      ([, status]) => Number(status),
    );
    assert.equal(statuses, [...times(401, 10), ...times(429, 771)]);
  }),
);

limit(
  'servers count failed logins together in KV; each on its own in memory, and without a limit none',
  async () => {
    const attack = (gets: Get[]) =>
      Promise.all([statusesOf(gets[0]!, wrong(3))]).then(() =>
        statusesOf(gets[1]!, [...wrong(1), BASIC]),
      );
    await scene({ servers: 2, failures: 4 }, async (gets) =>
      assert.equal(await attack(gets), [401, 429]),
    );
    const names = await own.client.keys('gateway:rate:login:*');
    assert.is(names.length, 2);
    assert.not.match(names.join(), /127\.0|ops/);
    await scene({ servers: 2, failures: 4, limiter: 'in-memory' }, async (gets) =>
      assert.equal(await attack(gets), [401, 200]),
    );
    await own.client.flushdb();
    await scene({ failures: 0 }, async ([get]) =>
      assert.equal(await statusesOf(get!, [...wrong(20), BASIC]), [...times(401, 20), 200]),
    );
  },
);

limit(
  'behind a trusted proxy the client is the last address that is none; what a client writes itself counts for nothing',
  async () => {
    const from = (addresses: string) => ({ 'x-forwarded-for': addresses });
    const proxies = ['127.0.0.0/8', '10.0.0.0/8'];
    await scene({ failures: 2, proxies }, async ([get]) => {
      const made = (n: number) => basic('wrong', from(`203.0.113.${n}, 198.51.100.7, 10.0.0.9`));
      assert.equal(await statusesOf(get!, [made(1), made(2), made(3)]), [401, 401, 429]);
      assert.equal(
        await statusesOf(get!, [basic('a password of ops', from('198.51.100.8, 10.0.0.9'))]),
        [200],
        'another client',
      );
      const six = ['2001:db8:0:1::1', '[2001:db8:0:1:2::7]:4711', '2001:db8:0:1:ffff::'].map((it) =>
        basic('wrong', from(it)),
      );
      assert.equal(await statusesOf(get!, six), [401, 401, 429], 'a client has a whole /64');
      assert.equal(await statusesOf(get!, [basic('wrong', from('2001:db8:0:2::1'))]), [401]);
    });
    await own.client.flushdb();
    const lines: string[] = [];
    const log = createLog({
      level: 'info',
      name: 'test',
      destination: { write: (line) => lines.push(line) },
    });
    await scene({ failures: 2, log }, async ([get]) => {
      const made = (n: number) => basic('wrong', from(`203.0.113.${n}`));
      assert.equal(await statusesOf(get!, [made(1), made(2), made(3)]), [401, 401, 429]);
    });
    assert.match(lines.join(), 'It is a proxy that server.trusted_proxies does not name');
  },
);

limit(
  'an account that many addresses guess at is slow for new addresses, and locked for none',
  () =>
    scene({ failures: 2, proxies: ['127.0.0.0/8'] }, async ([get]) => {
      const from = (n: number) => ({ 'x-forwarded-for': `198.51.100.${n}` });
      const timed = async (headers: Record<string, string>) => {
        const startedMs = performance.now();
        const { status } = await get!(ORGANISATIONS, headers);
        return { status, isSlow: performance.now() - startedMs > 900 };
      };
      assert.is((await get!(ORGANISATIONS, basic('a password of ops', from(1)))).status, 200);
      await Promise.all(
        Array.from({ length: 25 }, (_, n) => get!(ORGANISATIONS, basic('wrong', from(100 + n)))),
      );
      assert.equal(
        await timed(basic('a password of ops', from(1))),
        { status: 200, isSlow: false },
        'an address that has logged in',
      );
      assert.equal(await timed(basic('a password of ops', from(2))), { status: 200, isSlow: true });
    }),
);

limit.run();
