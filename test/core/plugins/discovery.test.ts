import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { API_VERSION } from '@gateway/plugin/manifest';
import { discover } from '#core/plugins/discovery';
import { installation, manifestOf, type PluginPackage } from '../plugin-packages.js';

const discovery = suite('core/plugins/discovery');

const row = (fields: object = {}) => ({ type: 'string', summary: 'A setting.', ...fields });
const tracer = (name: string, settings?: object, more: object = {}): PluginPackage => ({
  gateway: manifestOf({
    kind: 'tracer',
    name,
    ...(settings ? { settings: './settings.json' } : {}),
    ...more,
  }),
  files: settings ? { 'settings.json': JSON.stringify(settings) } : {},
});
const source = (name: string): PluginPackage => ({
  gateway: manifestOf({ kind: 'source', name, connection: './connection.json' }),
  files: { 'connection.json': '{ "type": "object" }' },
});

function found(
  packages: Readonly<Record<string, PluginPackage>>,
  options?: { unnamed?: readonly string[] },
) {
  const it = installation(packages, options);
  try {
    const result = discover({ root: it.root });
    assert.equal(it.imported(), [], 'discovery imports nothing');
    return result;
  } finally {
    it.close();
  }
}

discovery('manifests of the named packages are read, with settings, flags and connection', () => {
  const { plugins, refused, rows, flags } = found({
    'a-tracer': tracer(
      'mine',
      { 'tracer.mine.url': row({ env: 'MINE_URL', flag: 'mine-url' }) },
      { flags: { mine: { summary: 'Mine.', stability: 'beta' } } },
    ),
    '@scope/a-source': source('redis-streams'),
    'left-alone': {},
  });
  assert.equal(refused, []);
  assert.equal(
    plugins.map(({ kind, name, package: from, version, api }) => ({
      kind,
      name,
      from,
      version,
      api,
    })),
    [
      { kind: 'tracer', name: 'mine', from: 'a-tracer', version: '1.2.3', api: `^${API_VERSION}` },
      {
        kind: 'source',
        name: 'redis-streams',
        from: '@scope/a-source',
        version: '1.2.3',
        api: `^${API_VERSION}`,
      },
    ],
  );
  assert.equal(rows['tracer.mine.url'], {
    ...row({ env: 'MINE_URL', flag: 'mine-url' }),
    owner: 'the tracer plugin mine',
  });
  assert.equal(flags, { mine: { summary: 'Mine.', stability: 'beta', declaredBy: 'a-tracer' } });
  assert.equal(rows['enable_feature_flag']?.options, ['mine']);
  assert.equal(plugins[1]?.connectionSchema, { type: 'object' });
});

discovery('a package that nobody names is not looked at', () => {
  assert.equal(found({ stranger: source('stranger') }, { unnamed: ['stranger'] }).plugins, []);
});

discovery('the plugin folder brings more, and says so', () => {
  const built = installation({ builtin: source('kafka') });
  const third = installation({ third: source('nats') });
  const { plugins } = discover({ root: built.root, pluginsDir: third.root });
  assert.equal(
    plugins.map(({ name, from }) => [name, from]),
    [
      ['kafka', 'the installation'],
      ['nats', third.root],
    ],
  );
  built.close();
  third.close();
});

discovery('a dependency is found in a node_modules further up, as Node does', () => {
  const it = installation({
    gateway: {
      files: { 'package.json': '{ "name": "gateway", "dependencies": { "a-source": "*" } }' },
    },
    'a-source': source('kafka'),
  });
  const { plugins } = discover({ root: `${it.root}/node_modules/gateway` });
  assert.equal(
    plugins.map(({ name }) => name),
    ['kafka'],
  );
  it.close();
});

discovery('a plugin that the folder of the installation names is found beside the command', () => {
  const it = installation({
    '@gateway/cli': {
      files: { 'package.json': '{ "name": "@gateway/cli", "dependencies": { "a-source": "*" } }' },
    },
    'a-source': source('kafka'),
    'a-tracer': tracer('otel'),
  });
  const { plugins } = discover({ root: `${it.root}/node_modules/@gateway/cli` });
  assert.equal(
    plugins.map(({ name, from }) => `${name} from ${from}`),
    ['kafka from the installation', 'otel from the installation'],
  );
  it.close();
});

discovery('a plugin folder that is not there is no mistake', () => {
  const it = installation({});
  assert.equal(discover({ root: it.root, pluginsDir: `${it.root}/nowhere` }).refused, []);
  it.close();
});

const broken: Readonly<Record<string, [PluginPackage, string]>> = {
  'no manifest': [{ keywords: ['gateway-plugin'] }, 'gateway must be an object'],
  'no API range': [{ gateway: { plugins: [] } }, 'gateway.api must be a non-empty string'],
  'no plugins': [
    { gateway: { api: `^${API_VERSION}`, plugins: [] } },
    'gateway.plugins must be a list with at least one plugin',
  ],
  'an unknown kind': [
    { gateway: manifestOf({ kind: 'sink', name: 'x' }) },
    'gateway.plugins[0].kind must be one of source, codec, tracer, metrics',
  ],
  'no name': [
    { gateway: manifestOf({ kind: 'tracer' }) },
    'gateway.plugins[0].name must be a non-empty string',
  ],
  'a name with dots': [
    { gateway: manifestOf({ kind: 'tracer', name: 'a.b' }) },
    'gateway.plugins[0].name must be lower-case letters, digits and dashes',
  ],
  'no module': [
    { gateway: manifestOf({ kind: 'tracer', name: 'x', module: '' }) },
    'gateway.plugins[0].module must be a non-empty string',
  ],
  'no connection': [
    { gateway: manifestOf({ kind: 'source', name: 'x' }) },
    'gateway.plugins[0].connection must name the JSON Schema of the connection',
  ],
  'an unknown field, which would leave a gate open': [
    tracer('x', undefined, { featureflag: 'x' }),
    'gateway.plugins[0] has the field featureflag, which manifests do not have; did you mean featureFlag?',
  ],
  'an unknown field of the package': [
    { gateway: { api: `^${API_VERSION}`, plugins: [{}], entitlement: 'x' } },
    'gateway has the field entitlement, which manifests do not have',
  ],
  'a flag with an unknown field': [
    tracer('x', undefined, { flags: { x: { summary: 'X.', stability: 'beta', on: true } } }),
    'gateway.plugins[0].flags.x has the field on, which flags do not have',
  ],
  'a setting elsewhere': [
    tracer('x', { 'database.host': row() }),
    './settings.json: database.host must be below tracer.x',
  ],
  'a further key elsewhere': [
    tracer('x', { 'tracer.x.y': row({ also: ['metrics.y'] }) }),
    './settings.json: tracer.x.y.also must be a list of keys below tracer',
  ],
  'a setting of an unknown type': [
    tracer('x', { 'tracer.x.y': row({ type: 'date' }) }),
    './settings.json: tracer.x.y must have one of the types integer, number, boolean, string, list',
  ],
  'a setting of an unknown format': [
    tracer('x', { 'tracer.x.y': row({ format: 'date' }) }),
    './settings.json: tracer.x.y must have one of the formats cidr, url, host, login, address, target, dsn, prefix, ancestor, archive, day, id, email',
  ],
  'a setting with an unknown field': [
    tracer('x', { 'tracer.x.y': row({ defualt: 1 }) }),
    './settings.json: tracer.x.y has the field defualt, which settings do not have',
  ],
  'a setting without summary': [
    tracer('x', { 'tracer.x.y': { type: 'string' } }),
    './settings.json: tracer.x.y.summary must be a non-empty string',
  ],
  'settings that are not JSON': [
    { ...tracer('x', {}), files: { 'settings.json': '{' } },
    './settings.json cannot be read',
  ],
  'a module above the package': [
    { gateway: manifestOf({ kind: 'tracer', name: 'x', module: './lib/../../other/index.js' }) },
    'gateway.plugins[0].module names ./lib/../../other/index.js, which is outside the package; a plugin may name only files of its own package',
  ],
  'a connection with an absolute path': [
    { gateway: manifestOf({ kind: 'source', name: 'x', connection: '/etc/passwd' }) },
    'gateway.plugins[0].connection names /etc/passwd, which is outside the package',
  ],
  'settings above the package': [
    tracer('x', undefined, { settings: '../settings.json' }),
    'gateway.plugins[0].settings names ../settings.json, which is outside the package',
  ],
  'a flag of no known stability': [
    tracer('x', undefined, { flags: { x: { summary: 'X.', stability: 'new' } } }),
    'gateway.plugins[0].flags.x.stability must be experimental, beta or stable',
  ],
};

for (const [what, [it, sentence]] of Object.entries(broken)) {
  discovery(`a manifest with ${what} is a refusal and not a crash`, () => {
    const { plugins, refused } = found({ broken: it, fine: source('kafka') });
    assert.equal(
      plugins.map(({ name }) => name),
      ['kafka'],
      'the others are there',
    );
    assert.is(refused.length, 1);
    assert.is(refused[0]?.error.code, 'plugin_manifest_broken');
    assert.match(
      refused[0]?.error.message ?? '',
      `the manifest of the plugin package broken is broken: ${sentence}`,
    );
  });
}

discovery(
  'a file that a symbolic link leads out of the package is refused, and a package that is a link itself is not',
  () => {
    const it = installation({ linked: tracer('x', {}), moved: tracer('y') });
    try {
      const [linked, moved] = ['linked', 'moved'].map((name) =>
        join(it.root, 'node_modules', name),
      ) as [string, string];
      writeFileSync(join(it.root, 'settings.json'), '{}');
      rmSync(join(linked, 'settings.json'));
      symlinkSync(join(it.root, 'settings.json'), join(linked, 'settings.json'));
      renameSync(moved, join(it.root, 'elsewhere'));
      symlinkSync(join(it.root, 'elsewhere'), moved);
      const { plugins, refused } = discover({ root: it.root });
      assert.equal(
        plugins.map(({ name }) => name),
        ['y'],
      );
      assert.match(
        refused[0]?.error.message ?? '',
        'gateway.plugins[0].settings names ./settings.json, which is outside the package',
      );
    } finally {
      it.close();
    }
  },
);

discovery('fields of a manifest for another API are left to its range, which says so', () => {
  const later = {
    api: '^9.0.0',
    plugins: [{ kind: 'tracer', name: 'x', module: './index.js', later: true }],
    later: true,
  };
  const { plugins, refused } = found({ later: { gateway: later } });
  assert.equal(refused, []);
  assert.is(plugins[0]?.api, '^9.0.0');
});

const clashes: Readonly<Record<string, [Readonly<Record<string, PluginPackage>>, string]>> = {
  'the name of another plugin': [
    { one: source('kafka'), two: source('kafka') },
    'the source plugin kafka claims the name kafka, which belongs to the package one',
  ],
  'a variable of the gateway': [
    { two: tracer('x', { 'tracer.x.y': row({ env: 'AGENT_PORT' }) }) },
    'the tracer plugin x claims the variable AGENT_PORT, which belongs to the gateway (server.http.agent_port)',
  ],
  'a flag of the gateway': [
    { two: tracer('x', { 'tracer.x.y': row({ flag: 'db-host' }) }) },
    'the tracer plugin x claims the flag --db-host, which belongs to the gateway (database.host)',
  ],
  'a key of the gateway': [
    { two: tracer('type', { 'tracer.type.url': row() }) },
    'the tracer plugin type claims the setting tracer.type.url, which belongs to the gateway (tracer.type)',
  ],
  'a variable twice': [
    { two: tracer('x', { 'tracer.x.a': row({ env: 'URL' }), 'tracer.x.b': row({ env: 'URL' }) }) },
    'the tracer plugin x claims the variable URL, which belongs to the tracer plugin x (tracer.x.a)',
  ],
  'a variable of another plugin': [
    {
      one: tracer('a', { 'tracer.a.url': row({ env: 'URL' }) }),
      two: tracer('b', { 'tracer.b.url': row({ env: 'URL' }) }),
    },
    'the tracer plugin b claims the variable URL, which belongs to the tracer plugin a (tracer.a.url)',
  ],
  'a further key of another plugin': [
    {
      one: tracer('a', { 'tracer.a.url': row({ also: ['tracer.url'] }) }),
      two: tracer('b', { 'tracer.b.url': row({ also: ['tracer.url'] }) }),
    },
    'the tracer plugin b claims the setting tracer.url, which belongs to the tracer plugin a (tracer.a.url)',
  ],
  'a feature flag of another plugin': [
    {
      one: tracer('a', undefined, { flags: { fast: { summary: 'Fast.', stability: 'beta' } } }),
      two: tracer('b', undefined, { flags: { fast: { summary: 'Fast.', stability: 'beta' } } }),
    },
    'the tracer plugin b claims the feature flag fast, which belongs to one',
  ],
};

for (const [what, [packages, sentence]] of Object.entries(clashes)) {
  discovery(`a plugin that claims ${what} is refused, naming both`, () => {
    const { plugins, refused, rows } = found(packages);
    assert.is(refused[0]?.error.code, 'plugin_setting_claimed');
    assert.is(refused[0]?.error.message, sentence);
    assert.is(plugins.length, Object.keys(packages).length - 1);
    assert.not.ok(
      Object.values(rows).some(
        ({ owner }) =>
          owner === `the ${refused[0]?.kind} plugin ${refused[0]?.name}` &&
          plugins.every(({ name }) => name !== refused[0]?.name),
      ),
    );
  });
}

discovery.run();
