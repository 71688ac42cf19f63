// long
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../../support/gateway.js';
import { loopback } from '../../../support/ports.js';
import { tempFolder } from '../../../support/start/keep.js';
import { named, packageFolder } from './package-folder.js';

const install = suite('cli/commands/plugins/install');

const source = { kind: 'source', name: 'nats', connection: './connection.json' };
const files = { 'index.js': 'export default { check: async () => {}, run: async () => {} };' };
const flagged = {
  ...source,
  featureFlag: 'nats',
  flags: { nats: { summary: 'Read NATS.', stability: 'beta' } },
};

install(
  'a folder is installed, told of with what is missing, and listed; none of its code runs',
  async () => {
    const folder = packageFolder('gateway-nats', flagged);
    const { code, stdout, stderr } = await runGateway(['plugins', 'install', '.'], { folder });
    assert.is(code, 0, stderr);
    assert.is(
      stdout,
      'installed the source plugin nats (gateway-nats 1.2.3): inactive because the feature flag nats is off; switch nats on with ' +
        '--enable-feature-flag=nats or GATEWAY_ENABLE_FEATURE_FLAG=nats\n',
    );
    const list = await runGateway(['plugins', '--json', '--enable-feature-flag=nats'], { folder });
    const row = (JSON.parse(list.stdout) as { name: string }[]).find(({ name }) => name === 'nats');
    const from = path.join(folder, 'gateway-plugins');
    assert.equal(row, {
      ...{
        name: 'nats',
        kind: 'source',
        version: '1.2.3',
        from,
        state: 'inactive',
        code: 'plugin_import',
      },
      reason: 'importing gateway-nats/index.js failed: imported',
      fix: 'reinstall the plugin; if the error persists, report it to its author',
    });
  },
);

install(
  'a source that throws when it is imported is told of as inactive, when it is installed and in the table',
  async () => {
    const folder = packageFolder('gateway-nats', source);
    const { code, stdout } = await runGateway(['plugins', 'install', '.'], { folder });
    const why =
      'importing gateway-nats/index.js failed: imported; reinstall the plugin; if the error persists, report it to its author';
    assert.is(
      stdout,
      `installed the source plugin nats (gateway-nats 1.2.3): inactive because ${why}\n`,
    );
    assert.is(code, 0, 'it may need what is installed later');
    const list = await runGateway(['plugins'], { folder });
    assert.match(
      list.stdout.split('\n').find((line) => line.startsWith('nats'))!,
      /inactive +gateway-plugins +importing gateway-nats/,
    );
  },
);

install(
  'a second install reports the same, and a package that is broken meanwhile leaves the folder as it was',
  async () => {
    const folder = tempFolder('operator');
    const first = packageFolder('gateway-nats', source, { files });
    const installing = () => runGateway(['plugins', 'install', first], { folder });
    assert.match(
      (await installing()).stdout,
      'gateway-nats 1.2.3): ready for sources of the type nats',
    );
    assert.match((await installing()).stdout, 'gateway-nats 1.2.3): ready');
    const manifest = () =>
      fs.readFileSync(path.join(folder, 'gateway-plugins', 'package.json'), 'utf8');
    const before = manifest();
    const broken = await runGateway(
      ['plugins', 'install', packageFolder('gateway-nats', { ...source, kind: 'sorce' })],
      { folder },
    );
    assert.is(broken.code, 1);
    assert.is(manifest(), before, 'what worked stays');
    assert.ok(
      fs.existsSync(
        path.join(folder, 'gateway-plugins', 'node_modules', 'gateway-nats', 'index.js'),
      ),
    );

    fs.rmSync(first, { recursive: true });
    fs.rmSync(path.join(folder, 'gateway-plugins', 'node_modules'), { recursive: true });
    const missing = await runGateway(['plugins'], { folder });
    assert.match(
      missing.stdout,
      `the plugin package gateway-nats is named in ${folder}/gateway-plugins/package.json but is not installed`,
    );
    const changed = packageFolder('gateway-nats', { ...source, name: 'nats2' }, { files });
    const { stdout, stderr } = await runGateway(['plugins', 'install', changed], { folder });
    assert.match(stdout, 'installed the source plugin nats2 (gateway-nats 1.2.3)', stderr);
    assert.equal(named(folder), ['gateway-nats']);
  },
);

install('a package that was packed before it was built is refused', async () => {
  const unbuilt = packageFolder('gateway-nats', source);
  fs.rmSync(path.join(unbuilt, 'index.js'));
  const folder = tempFolder('operator');
  const { status, stderr } = spawnSync('npm', ['pack', unbuilt], { cwd: folder, encoding: 'utf8' });
  assert.is(status, 0, stderr);
  const refused = await runGateway(['plugins', 'install', './gateway-nats-1.2.3.tgz'], { folder });
  assert.match(refused.stderr, 'it names the module ./index.js, which is not in the package');
  assert.is(refused.code, 1);
  assert.equal(named(folder), []);
});

install('settings of a plugin may be there before the plugin is', async () => {
  const folder = tempFolder('operator');
  const settings = JSON.stringify({
    'tracer.mine.url': { type: 'string', required: true, summary: 'Where to.' },
  });
  const mine = packageFolder(
    'gateway-mine',
    { kind: 'tracer', name: 'mine', settings: './settings.json' },
    {
      files: { 'settings.json': settings, 'index.js': 'export default { start: async () => {} };' },
    },
  );
  const config = { tracer: { type: 'mine', mine: { url: 'here' } } };
  for (const time of ['first', 'second']) {
    const { stdout, stderr } = await runGateway(['plugins', 'install', mine], { folder, config });
    assert.is(
      stdout,
      'installed the tracer plugin mine (gateway-mine 1.2.3): active\n',
      `the ${time} time: ${stderr}`,
    );
  }
});

/** Packages that could never become active, with the expected sentence. */
const hopeless: Readonly<Record<string, readonly [folder: () => string, sentence: RegExp]>> = {
  'a package that is no plugin': [
    () => packageFolder('left-pad-ng', undefined),
    /^error: left-pad-ng is not a plugin of the gateway: its package\.json has no `gateway` object\nfix: {3}name a package with/,
  ],
  'a broken manifest': [
    () => packageFolder('gateway-x', { kind: 'sorce', name: 'x' }),
    /^error: the manifest of the plugin package gateway-x is broken: gateway\.plugins\[0\]\.kind must be one of source, tracer, metrics\nfix: {3}correct/,
  ],
  'a setting that belongs to another': [
    () =>
      packageFolder(
        'gateway-x',
        { kind: 'tracer', name: 'x', settings: './settings.json' },
        {
          files: {
            'settings.json': '{"tracer.x.port":{"type":"integer","flag":"port","summary":"Port."}}',
          },
        },
      ),
    /^error: the tracer plugin x claims the flag --port, which belongs to the gateway \(server\.http\.port\)\nfix: {3}rename it/,
  ],
  'a name that is taken': [
    () => packageFolder('gateway-x', { ...source, name: 'kafka' }),
    /^error: the source plugin kafka claims the name kafka, which belongs to the package @gateway\/source-kafka\n/,
  ],
  'an API range of another gateway': [
    () => packageFolder('gateway-x', source, { api: '^9.0.0' }),
    /^error: the source plugin nats \(gateway-x 1\.2\.3\) is built for plugin API \^9\.0\.0, but this gateway has 2\.0\.0\nfix: {3}install a version of gateway-x for plugin API 2\.0\.0/,
  ],
};

const shared = tempFolder('operator');
for (const [what, [folderOf, sentence]] of Object.entries(hopeless)) {
  install(`${what} is refused, and leaves nothing behind`, async () => {
    const folder = shared;
    const { code, stdout, stderr } = await runGateway(['plugins', 'install', folderOf()], {
      folder,
    });
    assert.is(code, 1);
    assert.is(stdout, '');
    assert.match(stderr, sentence);
    assert.equal(named(folder), []);
  });
}

install('what npm cannot find is told with the reason', async () => {
  const folder = tempFolder('operator');
  const nowhere = await runGateway(['plugins', 'install', './nowhere'], { folder });
  assert.match(
    nowhere.stderr,
    /^error: \.\/nowhere is not a plugin of the gateway: there is no .*\/nowhere\n/,
  );
  assert.is(nowhere.code, 1);
  const empty = await runGateway(['plugins', 'install', tempFolder('empty')], { folder });
  assert.match(empty.stderr, /there is no .*\/package\.json/);
  const away = await runGateway(['plugins', 'install', 'http://ada:hunter2@127.0.0.1:1/x.tgz'], {
    folder,
    env: { npm_config_fetch_retries: '0' },
  });
  assert.match(away.stderr, /^error: `npm install .*` failed in .*127\.0\.0\.1:1/);
  assert.not.match(away.stderr, 'hunter2');
});

install('a folder is used as it is', async () => {
  const folder = tempFolder('operator');
  const linked = packageFolder('gateway-nats', source, { files });
  const { stdout, stderr } = await runGateway(['plugins', 'install', linked], { folder });
  assert.match(stdout, /^installed the source plugin nats \(gateway-nats 1\.2\.3\): ready/, stderr);
  const packageJson = path.join(linked, 'package.json');
  fs.writeFileSync(packageJson, fs.readFileSync(packageJson, 'utf8').replace('1.2.3', '7.7.7'));
  assert.match((await runGateway(['plugins'], { folder })).stdout, /nats +source +7\.7\.7/);
});

install(
  'a plugin folder that was made by another installation works, with the API of this one',
  async () => {
    const made = tempFolder('operator');
    const linked = packageFolder('gateway-nats', source, {
      files: {
        'index.js': `import { acknowledges, PluginError } from '@gateway/plugin';
        import { API_VERSION } from '@gateway/plugin/manifest';
        if (!acknowledges('accepted') || !API_VERSION) throw new PluginError('other', { fix: '' });
        export default { check: async () => {}, run: async () => {} };`,
      },
    });
    const packed = spawnSync('npm', ['pack', linked], { cwd: made, encoding: 'utf8' });
    assert.is(packed.status, 0, packed.stderr);
    const args = ['plugins', 'install', './gateway-nats-1.2.3.tgz'];
    const { stdout, stderr } = await runGateway(args, { folder: made });
    assert.match(stdout, 'ready for sources of the type nats', stderr);

    const moved = tempFolder('moved');
    fs.cpSync(path.join(made, 'gateway-plugins'), path.join(moved, 'gateway-plugins'), {
      recursive: true,
      verbatimSymlinks: true,
    });
    const api = path.join(moved, 'gateway-plugins', 'node_modules', '@gateway', 'plugin');
    fs.rmSync(api, { recursive: true, force: true });
    fs.symlinkSync('/nowhere/node_modules/@gateway/plugin', api);
    const json = path.join(moved, 'gateway-plugins', 'package.json');
    fs.writeFileSync(
      json,
      fs.readFileSync(json, 'utf8').replace(/"file:[^"]*plugin"/, '"file:/nowhere/plugin"'),
    );
    const list = await runGateway(['plugins', '--json'], { folder: moved });
    const rows = JSON.parse(list.stdout) as { name: string; state: string; reason?: string }[];
    assert.equal(
      rows
        .filter(({ name }) => /nats|@gateway\/plugin/.test(name))
        .map(({ state, reason }) => [state, reason]),
      [['active', undefined]],
    );
  },
);

install(
  'a package is updated within its range and removed, by the name of its plugin too',
  async () => {
    const registry = await packages({
      'gateway-nats': ['1.2.3', '1.3.0', '2.0.0'].map((version) =>
        packageFolder('gateway-nats', source, { files, version }),
      ),
    });
    const folder = tempFolder('operator');
    const env = { npm_config_registry: registry.url, npm_config_cache: tempFolder('npm-cache') };
    try {
      const run = (...args: string[]) => runGateway(['plugins', ...args], { folder, env });
      const first = await run('install', 'gateway-nats@~1.2.0');
      assert.match(first.stdout, 'nats (gateway-nats 1.2.3): ready', first.stderr);
      assert.is((await run('update', 'nats')).stdout, 'nothing to update\n');
      await run('install', 'gateway-nats@^1.2.0');
      const file = path.join(folder, 'gateway-plugins', 'package-lock.json');
      assert.match(fs.readFileSync(file, 'utf8'), '1.3.0');
      await run('install', 'gateway-nats@1.2.3');
      const json = path.join(folder, 'gateway-plugins', 'package.json');
      fs.writeFileSync(json, fs.readFileSync(json, 'utf8').replace('"1.2.3"', '"^1.2.3"'));
      const updated = await run('update');
      assert.is(
        updated.stdout,
        'updated the source plugin nats (gateway-nats 1.3.0): ready for sources of the type nats\nrestart servers and agents\n',
        updated.stderr,
      );
      const unknown = await run('uninstall', 'gateway-natz');
      assert.match(
        unknown.stderr,
        /no plugin package named gateway-natz.*did you mean.*gateway-nats/,
      );
      assert.is(unknown.code, 1);
      const removed = await run('uninstall', 'nats');
      assert.is(
        removed.stdout,
        'removed gateway-nats; restart servers and agents\n',
        removed.stderr,
      );
      assert.equal(named(folder), []);
      assert.not.match((await run()).stdout, 'nats');
    } finally {
      registry.close();
    }
  },
);

/** Serves folders as the versions of packages, as a registry of npm does. */
async function packages(folders: Readonly<Record<string, readonly string[]>>) {
  const out = tempFolder('registry');
  const server = http.createServer((request, response) => {
    const name = decodeURIComponent(request.url!.slice(1));
    const tarball = /^tarballs\/(.+)$/.exec(name)?.[1];
    if (tarball) return response.end(fs.readFileSync(path.join(out, tarball)));
    if (!folders[name]) return response.writeHead(404).end('{}');
    const versions = folders[name].map((folder) => {
      const json = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8')) as {
        version: string;
      };
      const dist = { tarball: `${url}/tarballs/${name}-${json.version}.tgz` };
      return [json.version, { ...json, dist }] as const;
    });
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({
        name,
        'dist-tags': { latest: versions.at(-1)![0] },
        versions: Object.fromEntries(versions),
      }),
    );
  });
  const url = `http://127.0.0.1:${await loopback(server)}`;
  for (const folder of Object.values(folders).flat())
    spawnSync('npm', ['pack', folder], { cwd: out, encoding: 'utf8' });
  return {
    url,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

install.run();
