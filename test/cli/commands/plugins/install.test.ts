import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../../support/gateway.js';
import { tempFolder } from '../../../support/start/keep.js';
import { named, packageFolder } from './package-folder.js';

const install = suite('cli/commands/plugins/install');

const source = { kind: 'source', name: 'nats', connection: './connection.json' };
const flagged = { ...source, featureFlag: 'nats', flags: { nats: { summary: 'Read NATS.', stability: 'beta' } } };

install('a folder is installed, told of with what is missing, and listed; none of its code runs', async () => {
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
  assert.equal(row, { name: 'nats', kind: 'source', version: '1.2.3', from: path.join(folder, 'gateway-plugins'), state: 'active' });
});

install('what it came from may be gone: a copy is kept, and a second install takes what has changed, if that is any good', async () => {
  const folder = tempFolder('operator');
  const first = packageFolder('gateway-nats', source);
  const installing = () => runGateway(['plugins', 'install', first], { folder });
  assert.match((await installing()).stdout, 'gateway-nats 1.2.3): ready for sources of the type nats');
  assert.match((await installing()).stdout, 'gateway-nats 1.2.3): ready', 'a second time says the same');
  const kept = fs.readdirSync(path.join(folder, 'gateway-plugins', 'packages'));
  assert.is(kept.length, 1);
  fs.rmSync(path.join(first, 'index.js'));
  const unbuilt = await installing();
  assert.match(unbuilt.stderr, 'it names the module ./index.js, which is not in the package');
  assert.is(unbuilt.code, 1);
  assert.equal(fs.readdirSync(path.join(folder, 'gateway-plugins', 'packages')), kept, 'what worked stays');
  assert.ok(fs.existsSync(path.join(folder, 'gateway-plugins', 'node_modules', 'gateway-nats', 'index.js')));

  fs.rmSync(first, { recursive: true });
  fs.rmSync(path.join(folder, 'gateway-plugins', 'node_modules'), { recursive: true });
  const missing = await runGateway(['plugins'], { folder });
  assert.match(missing.stdout, `the plugin package gateway-nats is named in ${folder}/gateway-plugins/package.json but is not installed`);
  const changed = packageFolder('gateway-nats', { ...source, name: 'nats2' });
  const { stdout, stderr } = await runGateway(['plugins', 'install', changed], { folder });
  assert.match(stdout, 'installed the source plugin nats2 (gateway-nats 1.2.3)', stderr);
  assert.equal(named(folder), ['gateway-nats']);

  // A plugin that nobody can find by its package any more is removed by its name in package.json.
  fs.rmSync(path.join(folder, 'gateway-plugins', 'node_modules'), { recursive: true });
  const removed = await runGateway(['plugins', 'uninstall', 'gateway-nats'], { folder });
  assert.is(removed.stdout, 'removed gateway-nats\n', removed.stderr);
  assert.equal(fs.readdirSync(path.join(folder, 'gateway-plugins', 'packages')), []);
});

install('settings of a plugin may be there before the plugin is, and after it has gone', async () => {
  const folder = tempFolder('operator');
  const settings = JSON.stringify({ 'tracer.mine.url': { type: 'string', required: true, summary: 'Where to.' } });
  const mine = packageFolder(
    'gateway-mine',
    { kind: 'tracer', name: 'mine', settings: './settings.json' },
    { files: { 'settings.json': settings } },
  );
  const config = { tracer: { type: 'mine', mine: { url: 'here' } } };
  for (const time of ['first', 'second']) {
    const { stdout, stderr } = await runGateway(['plugins', 'link', mine], { folder, config });
    assert.is(stdout, 'linked the tracer plugin mine (gateway-mine 1.2.3): active\n', `the ${time} time: ${stderr}`);
  }
  fs.rmSync(path.join(folder, 'gateway-plugins', 'node_modules', 'gateway-mine'));
  const { code, stderr } = await runGateway(['plugins', 'uninstall', 'gateway-mine'], { folder });
  assert.is(code, 0, stderr);
});

/** Packages that could never become active, and the sentence of each. */
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
        { files: { 'settings.json': '{"tracer.x.port":{"type":"integer","flag":"port","summary":"Port."}}' } },
      ),
    /^error: the tracer plugin x claims the flag --port, which belongs to the gateway \(server\.http\.port\)\nfix: {3}rename it/,
  ],
  'a name that is taken': [
    () => packageFolder('gateway-x', { ...source, name: 'kafka' }),
    /^error: the source plugin kafka claims the name kafka, which belongs to the package @gateway\/source-kafka\n/,
  ],
  'an API range of another gateway': [
    () => packageFolder('gateway-x', source, { api: '^9.0.0' }),
    /^error: the source plugin nats requires plugin API \^9\.0\.0, but this gateway has 1\.0\.0\nfix: {3}install a version of the plugin/,
  ],
};

const shared = tempFolder('operator');
for (const [what, [folderOf, sentence]] of Object.entries(hopeless)) {
  install(`${what} is refused, and leaves nothing behind`, async () => {
    const folder = shared;
    // A link is judged like a copy, and made sooner.
    const { code, stdout, stderr } = await runGateway(['plugins', 'link', folderOf()], { folder });
    assert.is(code, 1);
    assert.is(stdout, '');
    assert.match(stderr, sentence);
    assert.equal(named(folder), []);
  });
}

install('what npm cannot find is told with the reason', async () => {
  const folder = tempFolder('operator');
  const nowhere = await runGateway(['plugins', 'install', './nowhere'], { folder });
  assert.match(nowhere.stderr, /^error: \.\/nowhere is not a plugin of the gateway: there is no such folder or file\n/);
  assert.is(nowhere.code, 1);
  const empty = await runGateway(['plugins', 'install', tempFolder('empty')], { folder });
  assert.match(empty.stderr, 'the folder has no package.json');
  const away = await runGateway(['plugins', 'install', 'http://ada:hunter2@127.0.0.1:1/x.tgz'], {
    folder,
    env: { npm_config_fetch_retries: '0' },
  });
  assert.match(away.stderr, /^error: `npm install .*` failed in .*127\.0\.0\.1:1/);
  assert.not.match(away.stderr, 'hunter2');
});

install('link uses a folder as it is, uninstall takes it away again', async () => {
  const folder = tempFolder('operator');
  const linked = packageFolder('gateway-nats', source);
  const { stdout, stderr } = await runGateway(['plugins', 'link', linked], { folder });
  assert.match(stdout, /^linked the source plugin nats \(gateway-nats 1\.2\.3\): ready/, stderr);
  const packageJson = path.join(linked, 'package.json');
  fs.writeFileSync(packageJson, fs.readFileSync(packageJson, 'utf8').replace('1.2.3', '7.7.7'));
  assert.match((await runGateway(['plugins'], { folder })).stdout, /nats +source +7\.7\.7/);

  const typo = await runGateway(['plugins', 'uninstall', 'gateway-nat'], { folder });
  assert.match(typo.stderr, /^error: there is no plugin and no plugin package named gateway-nat; did you mean gateway-nats\?/);
  assert.is(typo.code, 1);
  const removed = await runGateway(['plugins', 'uninstall', 'nats'], { folder });
  assert.is(removed.stdout, 'removed gateway-nats\n', removed.stderr);
  assert.equal(named(folder), []);
  assert.ok(fs.existsSync(packageJson), 'the folder itself stays');
  const ours = await runGateway(['plugins', 'uninstall', 'sqs'], { folder });
  assert.match(ours.stderr, 'sqs belongs to the installation of the gateway and cannot be removed');
  assert.is(ours.code, 2);
});

install.run();
