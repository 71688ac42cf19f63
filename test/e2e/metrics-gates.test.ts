// deadline: 240 s, long
import crypto from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migratedDatabase } from '../store/migrated.js';
import { connectionOf } from '../support/database.js';
import { gateway, runGateway, type GatewayProcess } from '../support/gateway.js';
import { freePort } from '../support/ports.js';

const gates = suite('e2e/metrics-gates');

const TOKEN = 'a token of the scraper';
const db = await migratedDatabase();
gates.after(() => db.close());

const settings = {
  encryption_key: crypto.randomBytes(32).toString('base64'),
  database: connectionOf(db.url),
  kv: { type: 'in-memory' },
  server: { http: { bind: '127.0.0.1' } },
};
const OPEN = ['--metrics-backend=pullmetrics', '--enable-feature-flag=pullmetrics'];
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function running(
  command: 'agent' | 'server',
  {
    flags = [],
    env = {},
    file = {},
  }: { flags?: readonly string[]; env?: Record<string, string>; file?: object },
  test: (it: {
    port: number;
    log: GatewayProcess;
    get(path: string, headers?: Record<string, string>): Promise<[number, string]>;
  }) => Promise<void>,
): Promise<void> {
  const port = await freePort();
  const log = gateway([command, '--port', String(port), ...flags], {
    config: { ...settings, ...file },
    env,
  });
  try {
    await log.line('Ready.');
    const get = async (
      path: string,
      headers: Record<string, string> = {},
    ): Promise<[number, string]> => {
      const answer = await fetch(
        path.startsWith('http') ? path : `http://127.0.0.1:${port}${path}`,
        { headers },
      );
      return [answer.status, await answer.text()];
    };
    await test({ port, log, get });
  } finally {
    await log.terminate();
  }
}

/** Returns the reason why metrics are off, after comparing its three places. */
async function saidEverywhere(
  log: GatewayProcess,
  body: string,
  plugins: readonly string[],
): Promise<string> {
  const [, said = ''] = /^# no metrics: pullmetrics is inactive: ([^\n]+)\n$/.exec(body) ?? [];
  const logged = log.stderr.split('\n').filter((line) => line.includes('"plugin":"pullmetrics"'));
  assert.is(logged.length, 1, 'once');
  const { message, fix, level } = JSON.parse(logged[0]!) as Record<string, string>;
  assert.is(said, `${message?.replace(/^A plugin is inactive because (.*)\.$/, '$1')}; ${fix}`);
  const { stdout } = await runGateway(['plugins', '--json', ...plugins], { folder: log.folder });
  const row = (JSON.parse(stdout) as { name: string; reason: string; fix: string }[]).find(
    ({ name }) => name === 'pullmetrics',
  );
  assert.is(said, `${row?.reason}; ${row?.fix}`);
  return `${level}: ${said}`;
}

for (const command of ['agent', 'server'] as const) {
  gates(
    `two flags alone make the ${command} export, on its port and on an address of its own, to who has the token`,
    async () => {
      const apart = `127.0.0.1:${await freePort()}`;
      await running(
        command,
        { flags: [...OPEN, '--pulladdr', apart, '--metrics-bearer-token', TOKEN] },
        async ({ get, log }) => {
          for (const place of ['/metrics', `http://${apart}/metrics`]) {
            for (const headers of [{}, bearer('a token of the scrapers')]) {
              const [status, text] = await get(place, headers);
              assert.equal([status, text.includes(TOKEN)], [401, false]);
              assert.match(text, 'metrics.bearer_token');
            }
            const [status, text] = await get(place, bearer(TOKEN));
            assert.is(status, 200);
            assert.match(text, /^# TYPE gateway_end_to_end_latency histogram$/m);
          }
          assert.is((await get('/healthz'))[0], 200, 'needs no token');
          assert.is((await get(`http://${apart}/healthz`, bearer(TOKEN)))[0], 404);
          if (command === 'server')
            assert.is(
              (await get('/api/v1/projects', bearer(TOKEN)))[0],
              401,
              'it opens nothing else',
            );
          assert.not.match(log.stderr, TOKEN);
        },
      );
    },
  );

  gates(`the environment opens the gates of the ${command}, and its file too`, async () => {
    const env = {
      GATEWAY_METRICS_BACKEND: 'pullmetrics',
      GATEWAY_METRICS_ENABLED: 'true',
      GATEWAY_METRICS_BEARER_TOKEN: TOKEN,
    };
    const apart = `127.0.0.1:${await freePort()}`;
    const file = {
      enable_feature_flag: ['pullmetrics'],
      [command]: { ...(command === 'server' ? settings.server : {}), pulladdr: apart },
    };
    await running(command, { env, file }, async ({ get }) => {
      assert.match(
        (await get(`http://${apart}/metrics`, bearer(TOKEN)))[1],
        /^gateway_events_recovered_total 0$/m,
      );
    });
  });
}

gates(
  'a metrics.enabled that is false in the file keeps an agent from exporting, and it says so everywhere',
  async () => {
    await running(
      'agent',
      { flags: OPEN, file: { metrics: { enabled: false } } },
      async ({ get, log }) => {
        const [status, body] = await get('/metrics');
        assert.is(status, 200);
        assert.is(
          await saidEverywhere(log, body, OPEN),
          'info: metrics.enabled is false (from ./gateway.json); set metrics.enabled to true (--metrics-enabled, GATEWAY_METRICS_ENABLED=true)',
        );
      },
    );
  },
);

gates(
  'an agent that is told nothing of metrics names the three closed gates and how to open each',
  async () => {
    await running('agent', {}, async ({ get, log }) => {
      const said = await saidEverywhere(log, (await get('/metrics'))[1], []);
      assert.match(
        said,
        /^info: 3 gates are closed: no metrics backend is selected, metrics\.enabled is false, the feature flag pullmetrics is off; /,
      );
      for (const how of [
        '--metrics-backend=pullmetrics',
        '--metrics-enabled',
        '--enable-feature-flag=pullmetrics',
      ])
        assert.match(said, how);
    });
  },
);

gates('an agent that was asked to export and cannot says it as a warning', async () => {
  await running('agent', { flags: OPEN.slice(0, 1) }, async ({ get, log }) => {
    assert.match(
      await saidEverywhere(log, (await get('/metrics'))[1], OPEN.slice(0, 1)),
      /^warn: the feature flag pullmetrics is off; switch pullmetrics on/,
    );
  });
});

gates(
  'an address for metrics that is taken ends the start of the agent, and names its setting',
  async () => {
    await running('agent', {}, async ({ port }) => {
      const { code, stderr } = await runGateway(
        ['agent', '--port', String(await freePort()), '--pulladdr', `127.0.0.1:${port}`],
        {
          config: settings,
        },
      );
      assert.is(code, 1);
      assert.match(stderr, new RegExp(`port ${port}.*agent\\.pulladdr`, 's'), stderr);
    });
  },
);

gates.run();
