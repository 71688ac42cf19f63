// deadline: 480 s
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { API_VERSION } from '@gateway/plugin/manifest';
import { type Endpoint, endpoint } from '../support/endpoint.js';
import { production, subscribed, type Production } from '../support/production.js';
import { discard, tempFolder } from '../support/start/keep.js';
import { until } from '../support/until.js';

const broken = suite('e2e/broken-plugins');

/** A module of a plugin and, for a source, what health says about it. */
type Broken = readonly [module: string, health: RegExp];

const good = `{ coordinates: 'q/' + globalThis.crypto.randomUUID(), timestamp: Date.now(), headers: {},
  body: Buffer.from('{"event_type":"order.paid","data":{}}') }`;
const stay = `await new Promise((resolve) => context.signal.addEventListener('abort', resolve))`;
const source = (run: string) =>
  `export default { check: async () => {}, run: async (connection, handle, context) => { context.report('reading'); ${run} } };`;
/** A source that hands over a good message with these members changed. */
const hands = (members: string) =>
  source(`await handle(Object.assign(${good}, ${members})); ${stay}`);
const bad = (problem: string) =>
  new RegExp(`hands? over a message whose ${problem}.*gateway plugins test`);

const sources: Readonly<Record<string, Broken>> = {
  'body-null': [hands('{ body: null }'), bad('body is null')],
  'body-undefined': [hands('{ body: undefined }'), bad('body is undefined')],
  'body-string': [hands(`{ body: '{"secret":"hunter2"}' }`), bad('body is a string')],
  'body-object': [hands('{ body: { data: [1] } }'), bad('body is an object')],
  'body-array-buffer': [hands('{ body: new ArrayBuffer(8) }'), bad('body is an ArrayBuffer')],
  'body-proxy': [hands('{ body: new Proxy(Buffer.alloc(3), {}) }'), bad('body is ')],
  'body-liar': [
    hands(
      `{ body: Object.defineProperty(Buffer.from('x'), 'byteLength', { get() { throw new Error('liar'); } }) }`,
    ),
    /^$/,
  ],
  'body-getter': [
    source(
      `await handle(Object.defineProperty(${good}, 'body', { get() { throw new Error('no body today'); } })); ${stay}`,
    ),
    /body.*cannot be read: no body today/,
  ],
  'message-null': [source(`await handle(null); ${stay}`), /hands over null/],
  'message-list': [source(`await handle([${good}]); ${stay}`), /hands over an array/],
  'message-string': [source(`await handle('text'); ${stay}`), /hands over a string/],
  'message-proxy': [
    source(`await handle(new Proxy({}, { get() { throw 'trap'; } })); ${stay}`),
    /cannot be read: The plugin threw a string/,
  ],
  'coordinates-missing': [hands('{ coordinates: undefined }'), bad('coordinates is undefined')],
  'coordinates-number': [hands('{ coordinates: 7 }'), bad('coordinates is a number')],
  'coordinates-empty': [hands(`{ coordinates: '' }`), bad('coordinates is empty')],
  'coordinates-nul': [
    hands(`{ coordinates: 'a\\u0000b' }`),
    bad('coordinates contains a control character'),
  ],
  'coordinates-half': [
    hands(`{ coordinates: 'a\\ud800' }`),
    bad('coordinates contains half of a surrogate pair'),
  ],
  'coordinates-huge': [
    hands(`{ coordinates: 'x'.repeat(2000000) }`),
    bad('coordinates has 2000000 characters'),
  ],
  'timestamp-date': [hands('{ timestamp: new Date() }'), bad('timestamp is a Date')],
  'timestamp-text': [hands('{ timestamp: "2026-01-01" }'), bad('timestamp is a string')],
  'timestamp-bigint': [hands('{ timestamp: 1n }'), bad('timestamp is a bigint')],
  'headers-null': [hands('{ headers: null }'), bad('headers is null')],
  'headers-missing': [hands('{ headers: undefined }'), bad('headers is undefined')],
  'headers-list': [hands(`{ headers: [['a', 'b']] }`), bad('headers is an array')],
  'headers-map': [hands(`{ headers: new Map([['a', 'b']]) }`), bad('headers is a Map')],
  'headers-bytes': [
    hands(`{ headers: { trace: Buffer.from('x') } }`),
    bad('header "trace" is a Buffer'),
  ],
  'headers-number': [hands(`{ headers: { n: 1 } }`), bad('header "n" is a number')],
  'headers-getter': [
    hands(
      `{ headers: Object.defineProperty({}, 'a', { enumerable: true, get() { throw new Error('trap'); } }) }`,
    ),
    /cannot be read: trap/,
  ],
  'key-string': [hands(`{ key: 'customer-7' }`), bad('key is a string')],
  'content-type-object': [hands('{ contentType: {} }'), bad('contentType is an object')],
  'attributes-list': [hands('{ attributes: [] }'), bad('attributes is an array')],
  'attributes-number': [
    hands('{ attributes: { partition: 0 } }'),
    bad('attribute "partition" is a number'),
  ],
  'run-returns': [source(''), /stopped reading without a reason/],
  'run-sync-throws': [
    `export default { check: async () => {}, run() { throw new Error('thrown at once'); } };`,
    /thrown at once/,
  ],
  'run-throws-null': [source('throw null;'), /threw null/],
  'run-throws-undefined': [source('throw undefined;'), /threw undefined/],
  'run-throws-number': [source('throw 42;'), /threw a number/],
  'run-throws-object': [source('throw { message: 7, fix: {} };'), /threw an object/],
  'run-throws-symbol': [source('throw Symbol();'), /threw a symbol/],
  'run-throws-getter': [
    source(
      `throw Object.defineProperty(new Error(), 'message', { get() { throw new Error('x'); } });`,
    ),
    /threw an error that cannot be read/,
  ],
  'run-getter': [
    `let n = 0; export default { check: async () => {}, get run() { if (n++ > 2) throw new Error('no run'); return async () => { throw new Error('no run'); }; } };`,
    /no run/,
  ],
  'rejects-unhandled': [
    source(`void Promise.reject(new Error('nobody waits')); ${stay}`),
    /nobody waits/,
  ],
  'throws-in-timer': [
    source(`setTimeout(() => { throw new Error('timer broke'); }, 5); ${stay}`),
    /timer broke/,
  ],
  'throws-after-ack': [
    source(`handle(${good}).then(() => { throw new Error('ack broke'); }); ${stay}`),
    /ack broke/,
  ],
  'throws-null-later': [source(`setImmediate(() => { throw null; }); ${stay}`), /threw null/],
  'emits-error': [
    source(
      `const { EventEmitter } = await import('node:events'); setTimeout(() => new EventEmitter().emit('error', new Error('no listener')), 5); ${stay}`,
    ),
    /no listener/,
  ],
  exits: [source(`setTimeout(() => process.exit(7), 5); ${stay}`), /calls process\.exit\(7\)/],
  'exits-at-import': [`process.exit(9); export default {};`, /calls process\.exit\(9\)/],
  'follows-nothing': [source(`context.onWorkers('yes'); ${stay}`), /onWorkers/],
  'reports-nonsense': [
    source(`context.report('excellent', { toString() { throw 1; } }); ${stay}`),
    /reports the state/,
  ],
  'logs-nonsense': [
    source(
      `context.log.warn({ get a() { throw new Error('x'); } }, Symbol('s')); context.log.info(null); throw new Error('logged');`,
    ),
    /logged/,
  ],
  'no-default': ['export const plugin = 1;', /no default export/],
  'no-run': ['export default { check: async () => {} };', /no function run/],
  syntax: ['export default {', /importing .* failed/],
};

/** Writes a package with plugins to a plugin folder. */
function installPackage(
  folder: string,
  name: string,
  { files, plugins }: { files: Readonly<Record<string, string>>; plugins: readonly object[] },
): void {
  const packageFolder = path.join(folder, 'node_modules', name);
  fs.mkdirSync(packageFolder, { recursive: true });
  const gateway = { api: `^${API_VERSION}`, plugins };
  const json = { name, version: '1.0.0', type: 'module', gateway };
  const all = { ...files, 'package.json': JSON.stringify(json) };
  for (const [file, text] of Object.entries(all))
    fs.writeFileSync(path.join(packageFolder, file), text);
  fs.writeFileSync(
    path.join(folder, 'package.json'),
    JSON.stringify({ dependencies: { [name]: '1.0.0' } }),
  );
}

function installSources(folder: string): void {
  const beats = `while (!context.signal.aborted) { await handle(${good}); await new Promise((done) => setTimeout(done, 100)); }`;
  const modules = [
    ['neighbour', source(beats)] as const,
    ...Object.entries(sources).map(([name, [text]]) => [name, text] as const),
  ];
  const connection = JSON.stringify({ type: 'object', properties: {} });
  installPackage(folder, 'broken', {
    files: {
      'connection.json': connection,
      ...Object.fromEntries(modules.map(([name, text]) => [`${name}.js`, text])),
    },
    plugins: modules.map(([name]) => ({
      kind: 'source',
      name,
      module: `./${name}.js`,
      connection: './connection.json',
    })),
  });
}

interface Component {
  readonly name: string;
  readonly state: string;
  readonly reason?: string;
}

async function health(port: number): Promise<Component[]> {
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`);
  const { data } = (await answer.json()) as { data: { components: Component[] } };
  return data.components;
}

async function everySourceIsNamed(port: number, names: readonly string[]): Promise<void> {
  const pending = new Set(names);
  let seen: Component[] = [];
  await until(
    'each broken plugin to be named',
    async () => {
      seen = await health(port);
      for (const name of pending) {
        const component = seen.find((it) => it.name === `source ${name}`);
        const [, expected] = sources[name]!;
        if (component && expected.test(component.reason ?? '')) pending.delete(name);
      }
      return pending.size === 0;
    },
    { withinMs: 60_000 },
  ).catch(() => undefined);
  const left = [...pending].map((name) => ({
    name,
    expected: String(sources[name]![1]),
    component: seen.find((it) => it.name === `source ${name}`),
  }));
  assert.equal(left, []);
}

broken(
  'sources of broken plugins fail by name, and the agent, other sources and posts go on',
  async () => {
    const receiver = await endpoint();
    const folder = tempFolder('broken-plugins');
    installSources(folder);
    const gateway = await production({ agents: 0, settings: { plugins: { dir: folder } } });
    try {
      await subscribed(gateway, receiver.url);
      const { process: agent, port } = await gateway.startAgent();
      for (const name of ['neighbour', ...Object.keys(sources)])
        await gateway.api('POST', '/sources?skip_check=true', {
          name,
          type: 'pub_sub',
          pub_sub: { type: name, [name]: {} },
        });
      await everySourceIsNamed(port, Object.keys(sources));
      await goesOn(gateway, receiver);
      const logged = agent.stderr + JSON.stringify(await health(port));
      assert.not.match(logged, /hunter2/, 'no content of a message');
      const before = Date.now();
      assert.is((await agent.terminate()).code, 0);
      assert.ok(Date.now() - before < 30_000);
      gateway.agents.length = 0;
      const again = await gateway.startAgent();
      await everySourceIsNamed(again.port, Object.keys(sources));
      await goesOn(gateway, receiver);
    } finally {
      await gateway.close();
      await receiver.close();
      discard(folder);
    }
  },
);

const fails = `() => { throw new Error('backend full'); }`;
const later = `setInterval(() => { throw new Error('timer broke'); }, 300); setInterval(() => Promise.reject(null), 300);
  setTimeout(() => process.exit(5), 500);`;
const metrics = `export default { start: async () => { ${later}
  return { add: ${fails}, set: ${fails}, observe: ${fails}, clear: ${fails}, expose: ${fails}, close: ${fails} };
} };`;
const tracer = `const api = globalThis[Symbol.for('opentelemetry.js.api.1')] ??= { version: '1.9.0' };
  export default { start: async () => { ${later}
    api.trace = { getTracer: () => ({ startSpan: ${fails} }) };
    return { close: ${fails} };
  } };`;

broken(
  'an agent goes on with a metrics backend and a tracer that throw in everything',
  async () => {
    const receiver = await endpoint();
    const folder = tempFolder('broken-plugins');
    installPackage(folder, 'broken', {
      files: { 'metrics.js': metrics, 'tracer.js': tracer },
      plugins: [
        { kind: 'metrics', name: 'metrix', module: './metrics.js' },
        { kind: 'tracer', name: 'tracey', module: './tracer.js' },
      ],
    });
    const settings = {
      plugins: { dir: folder, strict: true },
      metrics: { enabled: true, metrics_backend: 'metrix' },
      tracer: { type: 'tracey' },
    };
    const gateway = await production({ settings });
    try {
      await subscribed(gateway, receiver.url);
      for (let n = 0; n < 10; n++)
        await gateway.api('POST', '/events', { event_type: 'posted', data: { n } });
      await receiver.received(10);
      const [agent] = gateway.agents;
      for (const [what, plugin] of [
        ['A metrics backend failed', 'metrix'],
        ['A tracer failed', 'tracey'],
      ] as const)
        for (const reason of ['timer broke', 'rejected with the reason', 'process\\.exit\\(5\\)'])
          await agent!.process.line(
            new RegExp(
              `"plugin":"${plugin}".*${reason}.*${what}|${what}.*"plugin":"${plugin}".*${reason}`,
            ),
          );
      const scraped = await fetch(`http://127.0.0.1:${agent!.port}/metrics`);
      assert.is(scraped.status, 500);
      await gateway.api('POST', '/events', { event_type: 'posted', data: {} });
      await receiver.received(11);
    } finally {
      await gateway.close();
      await receiver.close();
      discard(folder);
    }
  },
);

/** The neighbour's messages and a posted event arrive. */
async function goesOn(gateway: Production, receiver: Endpoint): Promise<void> {
  const mark = `posted-${receiver.requests.length}`;
  await gateway.api('POST', '/events', { event_type: 'posted', data: { mark } });
  await receiver.received(receiver.requests.length + 5);
  await until('the posted event', () =>
    receiver.requests.some(({ body }) => String(body).includes(mark)),
  );
}

broken.run();
