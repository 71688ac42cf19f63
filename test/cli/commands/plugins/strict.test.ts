// long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { installation, manifestOf } from '../../../core/plugin-packages.js';
import { freePort } from '../../../support/ports.js';
import { gateway, runGateway } from '../../../support/gateway.js';
import { migratedDatabase } from '../../../store/migrated.js';
import { connectionOf } from '../../../support/database.js';

const strict = suite('cli/commands/plugins/strict');

const database = await migratedDatabase();
strict.after(() => database.close());

const base = {
  encryption_key: Buffer.alloc(32, 1).toString('base64'),
  database: connectionOf(database.url),
  kv: { type: 'in-memory' },
};

/** Reasons why a configured plugin cannot become active. */
const asked: Readonly<
  Record<string, { readonly flags: readonly string[]; readonly because: RegExp }>
> = {
  'a tracer that nobody installed': {
    flags: ['--tracer-type=otle'],
    because: /otle: no tracer plugin named otle is installed; did you mean otel\?/,
  },
  'a tracer without a setting that it needs': {
    flags: ['--tracer-type=otel'],
    because: /otel: its settings are wrong: tracer\.otel\.collector_url is not set/,
  },
  'a tracer that the licence leaves out': {
    flags: ['--tracer-type=apm', '--apm-agent-url=http://127.0.0.1:1'],
    because: /apm: the community licence does not include apm; set license_key/,
  },
  'a backend whose feature flag is off': {
    flags: ['--metrics-backend=pullmetrics'],
    because:
      /pullmetrics: the feature flag pullmetrics is off; switch pullmetrics on with --enable-feature-flag=pullmetrics/,
  },
};

for (const [what, { flags, because }] of Object.entries(asked)) {
  strict(`${what} ends the start with --strict-plugins, and is a warning without`, async () => {
    const port = await freePort();
    const args = ['server', '--port', String(port), ...flags];
    const refused = await runGateway([...args, '--strict-plugins'], { config: base });
    assert.is(refused.code, 1);
    assert.match(
      refused.stderr,
      /error: plugins\.strict is set, but these plugins that the configuration selects are not active:\n/,
    );
    assert.match(refused.stderr, because);
    assert.match(refused.stderr, /fix: {3}follow `gateway plugins`/);

    const running = gateway(args, { config: base });
    await running.healthy(port);
    const warned = running.stderr
      .split('\n')
      .filter((line) => line.includes('"level":"warn"') && line.includes('A plugin is inactive'));
    assert.is(warned.length, 1, running.stderr);
    const health = (await (await fetch(`http://127.0.0.1:${port}/healthz`)).json()) as {
      data: { plugins: { code?: string; reason?: string }[] };
    };
    assert.ok(
      health.data.plugins.some(
        ({ code, reason }) =>
          code !== undefined && reason !== undefined && warned[0]!.includes(reason.slice(0, 20)),
      ),
    );
    await running.terminate();
  });
}

strict(
  'what nobody asked for, a source whose flag is off, does not end the start; a package that can never work does',
  async () => {
    const idle = {
      kind: 'source',
      name: 'nats',
      connection: './c.json',
      featureFlag: 'nats',
      flags: { nats: { summary: 'N.', stability: 'beta' } },
    };
    const packages = installation({
      'gateway-nats': { gateway: manifestOf(idle), files: { 'c.json': '{}' } },
    });
    const broken = installation({
      'gateway-old': {
        gateway: manifestOf({ kind: 'source', name: 'old', connection: './c.json' }, '^0.1.0'),
        files: { 'c.json': '{}' },
      },
    });
    try {
      const port = await freePort();
      const running = gateway(['agent', '--port', String(port), '--strict-plugins'], {
        config: { ...base, plugins: { dir: packages.root } },
      });
      await running.healthy(port);
      assert.is((await running.terminate()).code, 0);
      const refused = await runGateway(['agent', '--port', '0', '--strict-plugins'], {
        config: { ...base, plugins: { dir: broken.root } },
      });
      assert.is(refused.code, 1);
      assert.match(
        refused.stderr,
        /old: the source plugin old \(.*\) is built for plugin API \^0\.1\.0, but this gateway has 2\.0\.0/,
      );
    } finally {
      packages.close();
      broken.close();
    }
  },
);

strict('a source that cannot be imported ends the start, and fails doctor', async () => {
  const packages = installation({
    'gateway-cut': {
      gateway: manifestOf({ kind: 'source', name: 'cut', connection: './c.json' }),
      files: { 'c.json': '{}', 'index.js': `import 'a-package-that-is-gone';` },
    },
  });
  const config = { ...base, plugins: { dir: packages.root, strict: true } };
  try {
    const refused = await runGateway(['agent', '--port', '0'], { config });
    assert.is(refused.code, 1);
    assert.match(
      refused.stderr,
      /cut: importing gateway-cut\/index\.js failed: .*a-package-that-is-gone/,
    );
    const doctor = await runGateway(['utils', 'doctor'], { config });
    assert.is(doctor.code, 1);
    assert.match(doctor.stdout, /cut.*importing gateway-cut\/index\.js failed/);
  } finally {
    packages.close();
  }
});

/** Tracers that never settle: their code and the expected sentence. */
const stuck = {
  import: [
    'await new Promise(() => {});',
    'importing gateway-stuck/index.js failed: it did not finish within 10 s',
  ],
  start: [
    'export default { start: () => new Promise(() => {}) };',
    'it failed to start: it did not start within 10 s',
  ],
} as const;
for (const [what, [code, reason]] of Object.entries(stuck)) {
  strict(`a tracer whose ${what} never settles neither ends nor holds the server`, async () => {
    const gatewayOf = manifestOf({ kind: 'tracer', name: 'stuck' });
    const { root: dir, close } = installation({
      'gateway-stuck': { gateway: gatewayOf, files: { 'index.js': code } },
    });
    const port = await freePort();
    const config = { ...base, plugins: { dir }, tracer: { type: 'stuck' } };
    const running = gateway(['server', '--port', String(port)], { config });
    await running.healthy(port);
    assert.match(running.stderr, `A plugin is inactive because ${reason}`);
    assert.equal(await running.terminate(), { code: 0, signal: null });
    close();
  });
}

strict.run();
