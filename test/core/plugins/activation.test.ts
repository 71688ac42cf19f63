import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { generateKeyPairSync, sign } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { activate, type ActivatedPlugins } from '#core/plugins/activation';
import { resolveConfig } from '#core/config/config';
import { discover } from '#core/plugins/discovery';
import { readLicence, type Licence } from '#core/plugins/licence';
import { type Log, silentLog } from '#core/logging/log';
import { endSpan, openSpanTracer } from '#core/tracing/spans';
import { formatTraceparent } from '#core/tracing/trace-context';
import type { PluginState } from '#core/plugins/plugin-table';
import type { TracerContext } from '@gateway/plugin';
import { until, within } from '../../support/until.js';
import {
  installation,
  manifestOf,
  type Installation,
  type PluginPackage,
} from '../plugin-packages.js';

const activation = suite('core/plugins/activation');
const community = readLicence({ token: undefined, publicKey: undefined });

const TRACER = `export default { start: async (settings, context) => {
  globalThis.gatewayTestTracer = { settings, context, closed: false };
  return { close: async () => { globalThis.gatewayTestTracer.closed = true; } };
} };`;
const METRICS = `export default { start: async (series) => {
  const lines = [];
  return { add: (name, labels, amount) => lines.push(name + ' ' + amount), set() {}, observe() {}, clear() {},
    expose: async () => ({ contentType: 'text/plain', body: Object.keys(series).length + ' series\\n' + lines.join('\\n') }) };
} };`;
const SOURCE = `export default { check: async () => {}, run: async () => {} };`;

const settings = {
  'tracer.mine.url': { type: 'string', required: true, env: 'MINE_URL', summary: 'Where to.' },
  'tracer.mine.rate': {
    type: 'number',
    default: 1,
    max: 1,
    env: 'MINE_RATE',
    summary: 'How much.',
  },
};
const tracer = (more: object = {}, api?: string): PluginPackage => ({
  gateway: manifestOf({ kind: 'tracer', name: 'mine', settings: './settings.json', ...more }, api),
  files: { 'plugin.js': TRACER, 'settings.json': JSON.stringify(settings) },
});
const metrics = (more: object = {}): PluginPackage => ({
  gateway: manifestOf({
    kind: 'metrics',
    name: 'pullmetrics',
    featureFlag: 'pullmetrics',
    entitlement: 'pullmetrics',
    flags: { pullmetrics: { summary: 'Metrics.', stability: 'stable' } },
    ...more,
  }),
  files: { 'plugin.js': METRICS },
});
const source = (more: object = {}, code = SOURCE): PluginPackage => ({
  gateway: manifestOf({ kind: 'source', name: 'kafka', connection: './connection.json', ...more }),
  files: { 'plugin.js': code, 'connection.json': '{ "type": "object" }' },
});

interface Started extends ActivatedPlugins {
  readonly imported: readonly string[];
}

const open: Installation[] = [];
activation.after.each(() => {
  for (const it of open.splice(0)) it.close();
});

async function started(
  packages: Readonly<Record<string, PluginPackage>>,
  {
    file = {},
    env = {},
    flags = {},
    licence = community,
    deadlineMs,
    log = silentLog,
  }: {
    log?: Log;
    file?: object;
    env?: Record<string, string>;
    flags?: Record<string, string>;
    licence?: Licence;
    deadlineMs?: number;
  } = {},
): Promise<Started> {
  const it = installation(packages);
  open.push(it);
  const discovery = discover({ root: it.root });
  const resolved = resolveConfig({ file: { ...file }, env, flags, rows: discovery.rows });
  const plugins = await activate({
    discovery,
    resolved,
    licence,
    serviceName: 'gateway-agent',
    log,
    ...(deadlineMs && { deadlineMs }),
  });
  return { ...plugins, imported: it.imported() };
}

function only({ table }: ActivatedPlugins): PluginState {
  assert.is(table.length, 1, JSON.stringify(table));
  return table[0]!;
}

const wanted = { file: { tracer: { type: 'mine', mine: { url: 'http://collector' } } } };

activation(
  'a tracer that passes every check is imported and started with its own settings',
  async () => {
    const plugins = await started({ 'a-tracer': tracer() }, wanted);
    assert.equal(only(plugins), {
      name: 'mine',
      kind: 'tracer',
      version: '1.2.3',
      from: 'the installation',
      state: 'active',
    });
    assert.equal(plugins.imported, ['a-tracer']);
    const seen = (
      globalThis as unknown as {
        gatewayTestTracer: { settings: unknown; context: TracerContext; closed: boolean };
      }
    ).gatewayTestTracer;
    assert.equal(seen.settings, { url: 'http://collector', rate: 1 });
    assert.is(seen.context.serviceName, 'gateway-agent');
    assert.is(seen.context.log, silentLog, 'where it says that spans are lost');
    assert.is(plugins.tracer?.name, 'mine');
    await plugins.close();
    assert.is(seen.closed, true);
  },
);

activation('a plugin of another API range is refused first of all', async () => {
  const it = only(
    await started(
      { 'a-tracer': tracer({ featureFlag: 'off' }, '^1.0.0') },
      { file: { tracer: { type: 'mine' } } },
    ),
  );
  assert.is(
    it.reason,
    'the tracer plugin mine (a-tracer 1.2.3) is built for plugin API ^1.0.0, but this gateway has 2.0.0',
  );
  assert.match(
    it.fix!,
    /^install a version of a-tracer for plugin API 2\.0\.0; if there is none, ask its author/,
  );
  assert.is(only(await started({ 'a-tracer': tracer({}, 'not a range') })).state, 'inactive');
});

/** The contract package without its code. */
const contract = {
  'node_modules/@gateway/plugin/package.json': readFileSync(
    new URL('../../../packages/plugin/package.json', import.meta.url),
    'utf8',
  ),
  'node_modules/@gateway/plugin/dist/index.js': 'export {};',
};

activation(
  'an import of what the plugin API no longer has names it, the version, and the way out',
  async () => {
    const imports = {
      "import { messageBytes } from '@gateway/plugin'; export default messageBytes;":
        'messageBytes of @gateway/plugin',
      "import it from '@gateway/plugin/conformance'; export default it;":
        '@gateway/plugin/conformance',
    };
    for (const [code, what] of Object.entries(imports)) {
      const { gateway } = tracer({}, '*');
      const files = { 'plugin.js': code, 'settings.json': JSON.stringify(settings), ...contract };
      const it = only(await started({ 'a-tracer': { gateway, files } }, wanted));
      assert.equal(
        it.reason,
        `importing a-tracer/index.js failed: it imports ${what}, which plugin API 2.0.0 does not have`,
      );
      assert.match(
        it.fix!,
        /^install a version of a-tracer for plugin API 2\.0\.0; its author narrows `gateway\.api`, which is \*/,
      );
    }
  },
);

activation('a plugin that is not selected is not looked at further', async () => {
  const plugins = await started({ 'a-tracer': tracer({ featureFlag: 'off' }) });
  assert.is(only(plugins).reason, 'not selected');
  assert.is(only(plugins).fix, 'set tracer.type to mine (--tracer-type, GATEWAY_TRACER_PROVIDER)');
  assert.equal(plugins.imported, []);
});

activation(
  'a plugin whose feature flag is off is refused before its licence is asked for',
  async () => {
    const plugins = await started(
      { 'a-tracer': tracer({ featureFlag: 'mine', entitlement: 'mine' }) },
      wanted,
    );
    assert.is(only(plugins).reason, 'the feature flag mine is off');
    assert.match(only(plugins).fix ?? '', '--enable-feature-flag=mine');
    assert.equal(plugins.imported, []);
  },
);

activation(
  'a plugin that the licence does not include is refused before its settings are looked at',
  async () => {
    const plugins = await started(
      { 'a-tracer': tracer({ entitlement: 'mine' }) },
      { file: { tracer: { type: 'mine' } } },
    );
    assert.is(only(plugins).reason, 'the community licence does not include mine');
    assert.equal(plugins.imported, []);
  },
);

activation(
  'a plugin with wrong or missing settings is refused with all of them, before it is imported',
  async () => {
    const plugins = await started(
      { 'a-tracer': tracer() },
      { file: { tracer: { type: 'mine' } }, env: { MINE_RATE: '7' } },
    );
    assert.is(
      only(plugins).reason,
      'its settings are wrong: tracer.mine.rate must be at most 1, not "7" (from MINE_RATE); tracer.mine.url is not set',
    );
    assert.equal(plugins.imported, []);
  },
);

activation('a plugin that throws while it is imported is refused, and the others run', async () => {
  const broken = {
    ...tracer(),
    files: {
      ...tracer().files,
      'plugin.js': `throw new Error('no such library');\nexport default {};`,
    },
  };
  const plugins = await started({ 'a-tracer': broken, 'a-source': source() }, wanted);
  assert.equal(
    plugins.table.map(({ name, state, reason }) => [name, state, reason]),
    [
      ['mine', 'inactive', 'importing a-tracer/index.js failed: no such library'],
      ['kafka', 'active', undefined],
    ],
  );
});

activation('a plugin whose module is not a plugin says which function is missing', async () => {
  const empty = { ...tracer(), files: { ...tracer().files, 'plugin.js': `export default {};` } };
  assert.is(
    only(await started({ 'a-tracer': empty }, wanted)).reason,
    'importing a-tracer/index.js failed: its default export has no function start',
  );
  const missing = tracer({ module: './nowhere.js' });
  assert.match(
    only(await started({ 'a-tracer': missing }, wanted)).reason ?? '',
    /^importing a-tracer\/nowhere.js failed: Cannot find module/,
  );
});

activation(
  'a plugin that fails to start is refused with its own fix, and its place is free again',
  async () => {
    const code = `export default { start: async () => { throw Object.assign(new Error('no answer'), { fix: 'start the collector' }); } };`;
    const failing = { ...tracer(), files: { ...tracer().files, 'plugin.js': code } };
    const it = only(await started({ 'a-tracer': failing }, wanted));
    assert.is(it.reason, 'it failed to start: no answer');
    assert.is(it.fix, 'start the collector');
    const again = await started({ 'a-tracer': tracer() }, wanted);
    assert.is(only(again).state, 'active');
    await again.close();
  },
);

/** Plugins that never become ready, and the reason. */
const stuck: Readonly<Record<string, readonly [code: string, reason: string]>> = {
  'whose import': [
    `await new Promise(() => {});\nexport default { start: async () => ({ close: async () => {} }) };`,
    'importing a-tracer/index.js failed: it did not finish within 0.2 s; a top-level await may never settle',
  ],
  'whose start': [
    `export default { start: () => new Promise(() => {}) };`,
    'it failed to start: it did not start within 0.2 s',
  ],
};
for (const [what, [code, reason]] of Object.entries(stuck)) {
  activation(
    `a plugin ${what} never settles is inactive after a deadline, and the others run`,
    async () => {
      const never = { ...tracer(), files: { ...tracer().files, 'plugin.js': code } };
      const packages = { 'a-tracer': never, 'a-source': source(), 'some-metrics': metrics() };
      const file = {
        ...wanted.file,
        enable_feature_flag: ['pullmetrics'],
        metrics: { enabled: true, metrics_backend: 'pullmetrics' },
      };
      const { table, close } = await within(
        started(packages, { file, deadlineMs: 200 }),
        5_000,
        'the activation',
      );
      assert.equal(
        table.map((it) => [it.name, it.state, it.reason]),
        [
          ['mine', 'inactive', reason],
          ['kafka', 'active', undefined],
          ['pullmetrics', 'active', undefined],
        ],
      );
      await close();
    },
  );
}

activation('a tracer that starts too late is closed again', async () => {
  const code = `export default { start: async () => {
    await new Promise((resolve) => (globalThis.gatewayTestLate = { start: resolve }));
    return { close: async () => { globalThis.gatewayTestLate.closed = true; } };
  } };`;
  const late = { ...tracer(), files: { ...tracer().files, 'plugin.js': code } };
  assert.is(
    // Its import is within the deadline too, and takes longest.
    only(await started({ 'a-tracer': late }, { ...wanted, deadlineMs: 500 })).state,
    'inactive',
  );
  const seen = (globalThis as unknown as { gatewayTestLate: { start(): void; closed?: boolean } })
    .gatewayTestLate;
  seen.start();
  await until('the late tracer to be closed', () => seen.closed);
});

activation('a source whose import took too long is active once it has ended', async () => {
  const code = `await new Promise((resolve) => (globalThis.gatewayTestSlow = resolve));\n${SOURCE}`;
  const plugins = await started({ 'a-source': source({}, code) }, { deadlineMs: 50 });
  const { load } = plugins.sources.get('kafka')!;
  await load().then(
    () => assert.unreachable('its import has not ended'),
    (error: Error) =>
      assert.match(
        error.message,
        /^importing a-source\/index.js failed: it did not finish within 0.05 s/,
      ),
  );
  assert.is(only(plugins).state, 'inactive');
  const seen = globalThis as unknown as { gatewayTestSlow?: () => void };
  // The import may not have started yet.
  await until('the import to wait', () => seen.gatewayTestSlow !== undefined);
  seen.gatewayTestSlow!();
  await load();
  assert.is(only(plugins).state, 'active');
});

activation('a second tracer in the process is refused until the first is closed', async () => {
  const first = await started({ 'a-tracer': tracer() }, wanted);
  const second = await started({ 'a-tracer': tracer() }, wanted);
  assert.is(
    only(second).reason,
    'the tracer mine is already active in this process, which can have only one; mine was not started',
  );
  assert.equal(second.imported, []);
  await first.close();
  const third = await started({ 'a-tracer': tracer() }, wanted);
  assert.is(only(third).state, 'active');
  await third.close();
});

activation('a plugin that is configured and not installed is a row with a suggestion', async () => {
  const { table } = await started({ 'a-tracer': tracer() }, { file: { tracer: { type: 'mien' } } });
  assert.is(table[1]?.reason, 'no tracer plugin named mien is installed; did you mean mine?');
  assert.is(
    table[1]?.fix,
    'install it, or correct tracer.type (--tracer-type, GATEWAY_TRACER_PROVIDER)',
  );
});

activation('packages that discovery refused are rows too', async () => {
  const { table } = await started({ broken: { gateway: {} } });
  assert.equal(
    table.map(({ name, kind, state }) => [name, kind, state]),
    [['broken', 'unknown', 'inactive']],
  );
});

activation(
  'a source of the gateway is active at once and imported when it is first used',
  async () => {
    const it = installation({ '@gateway/a-source': source() });
    open.push(it);
    const discovery = discover({ root: it.root });
    const resolved = resolveConfig({ file: {}, env: {}, rows: discovery.rows });
    const { sources, table } = await activate({
      discovery,
      resolved,
      licence: community,
      serviceName: 'gateway-agent',
      log: silentLog,
    });
    assert.is(table[0]?.state, 'active');
    assert.equal(sources.get('kafka')?.connectionSchema, { type: 'object' });
    assert.equal(it.imported(), []);
    const [one, two] = await Promise.all([
      sources.get('kafka')!.load(),
      sources.get('kafka')!.load(),
    ]);
    assert.is(one, two);
    assert.type(one.run, 'function');
    assert.equal(it.imported(), ['@gateway/a-source']);
  },
);

activation('a plugin reaches no loopback address, and what it calls of core does', async () => {
  const code = `import net from 'node:net';
    const opened = (port) => new Promise((done) => {
      const socket = net.connect(port, '127.0.0.1', () => done('open')).on('error', (error) => done(error.name));
      socket.on('connect', () => socket.destroy());
    });
    const later = (work) => new Promise((done) => setTimeout(() => done(work()), 1));
    const message = { coordinates: 'q/1', timestamp: 0, body: new Uint8Array(1), headers: {} };
    export default {
      check: async ({ port }) => { throw new Error(await later(() => opened(port))); },
      run: async ({ port }, handle, context) => {
        const asCore = [await handle(message), await new Promise((done) => context.lag(done))];
        const resized = await new Promise((done) => context.onWorkers(() => done(opened(port))));
        const aborted = await new Promise((done) => context.signal.addEventListener('abort', () => done(opened(port))));
        throw new Error([await opened(port), ...asCore, resized, aborted].join());
      },
    };`;
  const server = createServer().listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const opened = () =>
      new Promise((done) => {
        const socket = connect(port, '127.0.0.1', () => done('open')).on('error', ({ name }) =>
          done(name),
        );
        socket.on('connect', () => socket.destroy());
      });
    const stopping = new AbortController();
    const context = {
      log: silentLog,
      lag: (done: (it: unknown) => void) => void opened().then(done),
      onWorkers: (follow: (workers: number) => void) =>
        void setImmediate(() => (follow(2), setImmediate(() => stopping.abort()))),
      signal: stopping.signal,
    };
    const message = async (loaded: object, name: string) => {
      const work = (loaded as Record<string, (...given: unknown[]) => Promise<void>>)[name]!;
      return work({ port }, ...(name === 'run' ? [opened] : []), context).catch(
        (error: Error) => error.message,
      );
    };
    const it = await started({ 'a-source': source({}, code) });
    const refused = 'RefusedAddressError';
    const strict = await it.sources.get('kafka')!.load();
    assert.is(await message(strict, 'check'), refused);
    assert.is(await message(strict, 'run'), [refused, 'open', 'open', refused, refused].join());
    const other = await started(
      { 'a-source': source({}, code) },
      { file: { source: { allowed_networks: ['127.0.0.1/32'] } } },
    );
    assert.is(await message(await other.sources.get('kafka')!.load(), 'check'), 'open');
  } finally {
    server.close();
  }
});

activation(
  'the connection of a source gets the defaults of its schema, in objects that are given too',
  async () => {
    const code = `const seen = globalThis.gatewayTestConnections = [];
    export default { check: async (it) => seen.push(it), run: async (it) => seen.push(it), watch: async (it) => seen.push(it) };`;
    const auth = { type: 'object', properties: { tls: { type: 'boolean', default: false } } };
    const schema = {
      type: 'object',
      properties: { group: { type: 'string', default: 'mine' }, auth, topic: { type: 'string' } },
    };
    const { gateway, files } = source({}, code);
    const it = await started({
      'a-source': { gateway, files: { ...files, 'connection.json': JSON.stringify(schema) } },
    });
    const loaded: object = await it.sources.get('kafka')!.load();
    const { check, run, watch } = loaded as Record<string, (...given: object[]) => Promise<void>>;
    const context = { log: silentLog, signal: new AbortController().signal };
    await check!({ auth: {} }, context);
    await run!({ group: 'theirs' }, () => Promise.resolve('accepted'), context);
    await watch!({}, context);
    assert.equal(
      (globalThis as unknown as { gatewayTestConnections: unknown[] }).gatewayTestConnections,
      [{ group: 'mine', auth: { tls: false } }, { group: 'theirs' }, { group: 'mine' }],
    );
  },
);

activation(
  'a source that cannot be imported is inactive from the start, with the reason',
  async () => {
    const plugins = await started({
      'a-source': source({}, `throw new Error('no such library');\nexport default {};`),
    });
    assert.is(only(plugins).state, 'inactive');
    await plugins.sources
      .get('kafka')!
      .load()
      .then(
        () => assert.unreachable('it cannot be imported'),
        (error: Error) =>
          assert.is(error.message, 'importing a-source/index.js failed: no such library'),
      );
  },
);

/** Metrics plugins that cannot start, each with the reason in the table. */
const brokenMetrics: Readonly<Record<string, readonly [code: string, reason: RegExp]>> = {
  'returns nothing': ['start: async () => {}', /returns undefined without the function add/],
  'returns no observe': [
    'start: async () => ({ add() {}, set() {}, clear() {}, expose() {} })',
    /without the function observe/,
  ],
  'throws nothing': [
    'start: async () => { throw undefined; }',
    /threw undefined instead of an error/,
  ],
  'throws at once': [`start: () => { throw new Error('no socket'); }`, /no socket/],
  'throws an object': ['start: async () => { throw { message: {} }; }', /threw an object/],
  'throws what cannot be read': [
    `start: async () => { throw new Proxy(new Error(), { get() { throw 1; }, getPrototypeOf() { throw 1; } }); }`,
    /cannot be read/,
  ],
  exits: ['start: async () => { process.exit(4); }', /calls process\.exit\(4\)/],
  'never starts': ['start: () => new Promise(() => {})', /did not start within 1 s/],
  'is a thenable that never settles': ['then() {}', /did not finish within 1 s/],
  'has a getter that throws': [`get start() { throw new Error('trap'); }`, /no function start/],
};

for (const [name, [code, reason]] of Object.entries(brokenMetrics))
  activation(`a metrics plugin that ${name} is inactive, with the reason`, async () => {
    const packages = {
      broken: {
        gateway: manifestOf({ kind: 'metrics', name: 'mine' }),
        files: { 'plugin.js': `export default { ${code} };` },
      },
    };
    const file = { metrics: { metrics_backend: 'mine', enabled: true } };
    const plugins = await started(packages, { file, deadlineMs: 1_000 });
    assert.is(only(plugins).state, 'inactive');
    assert.match(only(plugins).reason ?? '', reason);
    plugins.meter.add('gateway_ingest_total', { project: 'p', source: 's' });
    assert.match((await plugins.meter.expose()).body, reason);
    await plugins.close();
  });

/** Expositions that are no text with a content type. */
for (const exposed of [
  'undefined',
  '{ body: 1, contentType: "text/plain" }',
  '{ body: "", contentType: "a\\nb" }',
  '{ body: "" }',
])
  activation(`a metrics backend that throws, and exposes ${exposed}, fails by name`, async () => {
    const fails = `() => { throw new Error('full'); }`;
    const code = `export default { start: async () => ({ add: ${fails}, set: async ${fails}, observe: ${fails}, clear: ${fails},
      expose: async () => (${exposed}), close: () => { throw null; } }) };`;
    const packages = {
      broken: {
        gateway: manifestOf({ kind: 'metrics', name: 'mine' }),
        files: { 'plugin.js': code },
      },
    };
    const logged: object[] = [];
    const note = (fields: object) => void logged.push(fields);
    const log = { ...silentLog, error: note, warn: note };
    const file = { metrics: { metrics_backend: 'mine', enabled: true } };
    const plugins = await started(packages, { file, log });
    assert.is(only(plugins).state, 'active');
    const labels = { project: 'p', source: 's' };
    plugins.meter.add('gateway_ingest_total', labels);
    plugins.meter.observe('gateway_ingest_latency', { project: 'p' }, 1);
    plugins.meter.clear('gateway_sources_paused' as never);
    await plugins.meter.expose().then(
      () => assert.unreachable('it exposes nothing'),
      (error: Error) => assert.match(error.message, /exposition|undefined/),
    );
    await plugins.close();
    assert.match(JSON.stringify(logged), /"plugin":"mine","package":"broken"/);
  });

/** Tracers that fail while they run. */
const brokenTracers: Readonly<Record<string, string>> = {
  'has no spans': `startSpan: () => undefined`,
  throws: `startSpan: () => { throw null; }`,
  'has spans without a context': `startSpan: () => ({ spanContext: () => undefined, isRecording: () => true })`,
  'has spans that throw': `startSpan: () => new Proxy({}, { get(_, name) {
    if (name === 'spanContext') return () => ({ traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 });
    if (name === 'isRecording') return () => true;
    throw new Error('span'); } })`,
};

for (const [name, span] of Object.entries(brokenTracers))
  activation(`a tracer that ${name} loses spans, and fails by name`, async () => {
    const code = `const api = globalThis[Symbol.for('opentelemetry.js.api.1')] ??= { version: '1.9.0' };
      export default { start: async () => {
        api.trace = { getTracer: () => ({ ${span} }) };
        return { close: () => { delete api.trace; throw undefined; } };
      } };`;
    const { gateway } = tracer({ settings: undefined });
    const logged: object[] = [];
    const log = { ...silentLog, error: (fields: object) => void logged.push(fields) };
    const plugins = await started(
      { 'a-tracer': { gateway, files: { 'plugin.js': code } } },
      { file: { tracer: { type: 'mine' } }, log },
    );
    try {
      assert.is(only(plugins).state, 'active');
      const spans = openSpanTracer();
      const parent = spans.start('ingest.message', { startedAtMs: Date.now() });
      const child = spans.start('ingest.transform', { startedAtMs: Date.now(), parent });
      for (const it of [child, parent]) {
        assert.match(formatTraceparent(it.context), /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/);
        endSpan(it, { attributes: {}, endedAtMs: Date.now() });
      }
    } finally {
      await plugins.close();
    }
    assert.match(JSON.stringify(logged), /"plugin":"mine","package":"a-tracer"/);
  });

/** Files that are no JSON Schema of a connection, each with the end of the reason. */
const brokenSchemas: Readonly<Record<string, readonly [schema: unknown, reason: RegExp]>> = {
  'has no known type': [{ type: 'objekt' }, /is not a JSON Schema/],
  'has fields that are null': [{ properties: { a: null } }, /is not a JSON Schema/],
  'has fields in a list': [{ properties: [] }, /is not a JSON Schema/],
  'refers to nothing': [{ properties: { a: { $ref: '#/$defs/a' } } }, /is not a JSON Schema/],
  'has a pattern that is none': [{ properties: { a: { pattern: '(' } } }, /is not a JSON Schema/],
  'requires a text': [{ required: 'a' }, /is not a JSON Schema/],
  'is of a list': [{ type: 'array' }, /must be the JSON Schema of an object/],
  'is asynchronous': [{ $async: true, type: 'object' }, /must be the JSON Schema of an object/],
  'hides a secret': [
    { properties: { a: { items: { type: 'string', 'x-secret': true } } } },
    /would be stored in plain text/,
  ],
};

for (const [name, [schema, reason]] of Object.entries(brokenSchemas))
  activation(`a source whose connection ${name} is refused before a source is made`, async () => {
    const { gateway, files } = source();
    const plugins = await started({
      'a-source': { gateway, files: { ...files, 'connection.json': JSON.stringify(schema) } },
    });
    assert.is(only(plugins).code, 'plugin_manifest_broken');
    assert.match(only(plugins).reason ?? '', reason);
    assert.is(plugins.sources.size, 0);
    assert.equal(plugins.imported, []);
  });

/** A run of a plugin of `code`, whose messages never settle, with what it rejects with. */
async function failureOf(code: string, signal = new AbortController().signal): Promise<string> {
  const plugins = await started({ 'a-source': source({}, code) });
  const plugin = await plugins.sources.get('kafka')!.load();
  const context = {
    ...{ settings: {}, sourceId: 's', signal, window: 1, workers: 1, clientId: 'c' },
    ...{ log: silentLog, report: () => undefined },
  };
  const run = plugin.run({}, () => new Promise(() => {}), context);
  return run.then(
    () => 'it ended',
    (error: Error & { fix?: string }) => `${error.message} ${error.fix}`,
  );
}

activation(
  'a source that hands over messages without waiting ends before they fill memory',
  async () => {
    const code = `const body = new Uint8Array(1024 * 1024);
    export default { check: async () => {}, run: async (connection, handle) => {
      for (let n = 0; n < 1_000; n++) void handle({ coordinates: 'q/' + n, timestamp: 0, body, headers: {} });
      await new Promise(() => {});
    } };`;
    assert.match(
      await failureOf(code),
      /The source plugin kafka hands over more than 512 MiB of messages without waiting .*gateway plugins test a-source/,
    );
  },
);

activation('a source that does not end when it is told to is not waited for', async () => {
  const stop = new AbortController();
  stop.abort();
  const code = 'export default { check: async () => {}, run: () => new Promise(() => {}) };';
  assert.match(
    await failureOf(code, stop.signal),
    /did not stop reading within 10 s after it was told to/,
  );
});

activation('a plugin of others is imported at the start', async () => {
  const plugins = await started({ 'a-source': source() });
  assert.equal(plugins.imported, ['a-source']);
  assert.is(only(plugins).state, 'active');
});

activation(
  'metrics need the flag, the backend, enabled and the entitlement, and /metrics says which is missing',
  async () => {
    const packages = { 'some-metrics': metrics() };
    const licensed = (...entitlements: string[]): Licence => ({
      kind: 'licensed',
      organisation: 'Acme',
      entitlements: new Set(entitlements),
    });
    const all = {
      enable_feature_flag: ['pullmetrics'],
      metrics: { enabled: true, metrics_backend: 'pullmetrics' },
    };
    const body = async (options: Parameters<typeof started>[1]) =>
      (await (await started(packages, options)).meter.expose()).body;

    assert.is(
      await body({ licence: licensed() }),
      '# no metrics: pullmetrics is inactive: 4 gates are closed: no metrics backend is selected, metrics.enabled is false, the feature flag pullmetrics is off, ' +
        'the licence of Acme does not include pullmetrics; set metrics.metrics_backend to pullmetrics (--metrics-backend=pullmetrics, ' +
        'GATEWAY_METRICS_BACKEND=pullmetrics), and set metrics.enabled to true (--metrics-enabled, GATEWAY_METRICS_ENABLED=true), and switch pullmetrics on with ' +
        '--enable-feature-flag=pullmetrics or GATEWAY_ENABLE_FEATURE_FLAG=pullmetrics, and set license_key / GATEWAY_LICENSE_KEY to a licence that includes pullmetrics\n',
    );
    assert.match(
      await body({ file: { ...all, enable_feature_flag: [] } }),
      'pullmetrics is inactive: the feature flag pullmetrics is off',
    );
    assert.match(
      await body({ file: { ...all, metrics: { metrics_backend: 'pullmetrics' } } }),
      'pullmetrics is inactive: metrics.enabled is false; set metrics.enabled to true',
    );
    assert.match(
      await body({ file: all, licence: licensed('otel') }),
      '# no metrics: pullmetrics is inactive: the licence of Acme does not include pullmetrics',
    );
    assert.match(
      await body({ file: { ...all, metrics: { enabled: true, metrics_backend: 'pulmetrics' } } }),
      'no metrics plugin named pulmetrics is installed; did you mean pullmetrics?',
    );
    assert.match(await body({ file: all }), /^\d+ series/);
    assert.match(
      await body({
        flags: { 'metrics-backend': 'pullmetrics' },
        env: { GATEWAY_ENABLE_FEATURE_FLAG: 'pullmetrics' },
      }),
      /^\d+ series/,
    );
  },
);

activation(
  'a metrics backend may have the gauges of the moment set, and is closed with the process, once they were',
  async () => {
    const code = `export default { start: async (series, settings, host) => {
    const seen = globalThis.gatewayTestPush = [];
    return { add() {}, set: (name, labels, value) => seen.push(value), observe() {}, clear() {},
      expose: async () => { await host.collect(); return { contentType: 'text/plain', body: seen.join(' ') }; },
      close: async () => { seen.push('closed'); throw new Error('the collector is away'); } };
  } };`;
    const plugins = await started(
      { 'some-metrics': { ...metrics(), files: { 'plugin.js': code } } },
      {
        file: {
          enable_feature_flag: ['pullmetrics'],
          metrics: { enabled: true, metrics_backend: 'pullmetrics' },
        },
      },
    );
    let moment = 0;
    plugins.meter.collect(() => plugins.meter.set('gateway_sandbox_processes', {}, ++moment));
    assert.is(
      (await plugins.meter.expose()).body,
      '1 2',
      'before the exposition, and when the backend asks',
    );
    await plugins.close();
    assert.equal((globalThis as unknown as { gatewayTestPush: unknown[] }).gatewayTestPush, [
      1,
      2,
      3,
      'closed',
    ]);
  },
);

activation(
  'the label sets that reach a metrics backend are as many as the setting allows, and the others are one',
  async () => {
    const code = `export default { start: async () => {
    const seen = [];
    return { add: (name, { source }) => seen.push(source), set() {}, observe() {}, clear() {},
      expose: async () => ({ contentType: 'text/plain', body: seen.join(' ') }) };
  } };`;
    const { meter } = await started(
      { 'some-metrics': { ...metrics(), files: { 'plugin.js': code } } },
      {
        file: {
          enable_feature_flag: ['pullmetrics'],
          metrics: { enabled: true, metrics_backend: 'pullmetrics' },
        },
        flags: { 'metrics-max-label-sets': '2' },
      },
    );
    for (const name of ['a', 'b', 'c', 'd', 'a'])
      meter.add('gateway_ingest_total', { project: 'p', source: name });
    assert.is((await meter.expose()).body, 'a b other other a');
  },
);

activation(
  'without metrics the exposition is a comment that a scraper accepts, and counting does nothing',
  async () => {
    const { meter, metrics: active } = await started({});
    assert.is(active, undefined);
    meter.add('gateway_ingest_total', { project: 'p', source: 's' });
    const { contentType, body } = await meter.expose();
    assert.match(contentType, 'text/plain; version=0.0.4');
    assert.match(body, /^# [^\n]+\n$/);
  },
);

activation('a licence that was signed entitles', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const text = Buffer.from(
    JSON.stringify({
      organisation: 'Acme',
      entitlements: ['mine'],
      expires_at: '2999-01-01T00:00:00Z',
    }),
  ).toString('base64url');
  const token = `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`;
  const licence = readLicence({
    token,
    publicKey: String(publicKey.export({ type: 'spki', format: 'pem' })),
  });
  const plugins = await started(
    { 'a-tracer': tracer({ entitlement: 'mine' }) },
    { ...wanted, licence },
  );
  assert.is(only(plugins).state, 'active');
  await plugins.close();
});

activation.run();
