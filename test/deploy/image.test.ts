// deadline: 900 s, long
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { type Created, production, type Production, subscribed } from '../support/production.js';
import { commandOf, processes } from '../support/processes.js';
import { tempFolder } from '../support/start/keep.js';
import { until } from '../support/until.js';
import { containers, type Podman } from './containers.js';
import { nodeBase, npmrc } from './node-base.js';

const image = suite('deploy/image');

const root = fileURLToPath(new URL('../..', import.meta.url));
const { version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  version: string;
};
const IMAGE = `localhost/gateway:${version}-amd64`;
const MB = 1e6;

const machine = await containers();
const { podman } = machine;
for (const one of ['amd64', 'arm64'] as const)
  await podman('import', `--arch=${one}`, nodeBase(one), `localhost/node:${one}`);
await podman(
  'manifest',
  'create',
  'localhost/node',
  'containers-storage:localhost/node:amd64',
  'containers-storage:localhost/node:arm64',
);
const out = path.join(tempFolder('release'), 'out');
const release = ['--dry-run', '--out', out, '--base', 'localhost/node', '--npmrc', npmrc()];
execFileSync(process.execPath, ['scripts/release.mjs', ...release], {
  cwd: root,
  stdio: ['ignore', 2, 2],
});

image('a release has everything in one folder', () => {
  const files = fs.readdirSync(out).filter((name) => !/^gateway-[a-z].*\.tgz$/.test(name));
  assert.equal(files, [
    'docs',
    `gateway-${version}-licences.md`,
    `gateway-${version}.cdx.json`,
    `gateway-${version}.tgz`,
    `gateway-image-${version}-amd64.tar`,
    `gateway-image-${version}-arm64.tar`,
    `gateway_${version}_all.deb`,
    'package-lock.json',
    'package.json',
  ]);
});

image('it is small, and has neither root nor a shell', async () => {
  const [facts] = JSON.parse(await podman('image', 'inspect', IMAGE)) as [
    { Size: number; Config: { User: string; Labels: Record<string, string> } },
  ];
  process.stderr.write(`image: ${(facts.Size / MB).toFixed(0)} MB\n`);
  assert.ok(facts.Size < 250 * MB, `${facts.Size} bytes`);
  assert.is(facts.Config.User, '65532:65532');
  assert.is(facts.Config.Labels['org.opencontainers.image.version'], version);
  assert.match(await podman('run', '--rm', IMAGE, 'version'), /^gateway \d/);
  for (const shell of ['sh', 'bash', 'npm', 'apt-get'])
    assert.match(
      await podman('run', '--rm', `--entrypoint=${shell}`, IMAGE).catch(String),
      /not found/,
    );
});

image('its packages have the versions of the lock file of the repository', async () => {
  const lock = JSON.parse(fs.readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { version: string }>;
  };
  const list = `const fs = require('fs'); const lock = JSON.parse(fs.readFileSync('/usr/lib/gateway/node_modules/.package-lock.json'));
    console.log(JSON.stringify(Object.entries(lock.packages).map(([place, { version }]) => [place, version])))`;
  const text = await podman('run', '--rm', '--entrypoint=node', IMAGE, '--eval', list);
  const installed = JSON.parse(text) as [string, string][];
  const foreign = installed.filter(([place]) => !place.includes('/@gateway/'));
  assert.ok(foreign.length > 150);
  for (const [place, installedVersion] of foreign)
    assert.is(installedVersion, lock.packages[place]?.version, place);
});

image('a user of group 0 without a name runs it, and functions in it', async () => {
  const run = [
    'run',
    '--rm',
    '--user=1000680000:0',
    '--passwd=false',
    '--read-only',
    '--tmpfs=/tmp',
  ];
  assert.match(await podman(...run, IMAGE, 'version'), /^gateway \d/);
  const folder = tempFolder('function');
  fs.chmodSync(folder, 0o755);
  fs.writeFileSync(
    path.join(folder, 'f.js'),
    `function transform({ n }) { return { event_type: 'x', endpoint_id: '019ab3c4-5d6e-8f70-9123-456789abcdef', data: { n } }; }`,
  );
  fs.writeFileSync(path.join(folder, 'm.json'), '{"n":1}');
  const at = [`--volume=${folder}:/f:ro`];
  const output = await podman(
    ...run,
    ...at,
    IMAGE,
    'utils',
    'transform',
    '/f/f.js',
    '--sample=/f/m.json',
  );
  assert.match(output, '"n": 1');
});

image('the health check knows gateway.json', async () => {
  const folder = tempFolder('settings');
  fs.chmodSync(folder, 0o755);
  const settings = { server: { http: { agent_port: 26_777, bind: '127.0.0.3' } } };
  fs.writeFileSync(path.join(folder, 'gateway.json'), JSON.stringify(settings));
  const script = `require('http').createServer((_, response) => response.end()).listen(26777, '127.0.0.3')`;
  fs.writeFileSync(path.join(folder, 'agent.cjs'), script);
  const at = [`--volume=${folder}:/etc/gateway:ro`, '--entrypoint=node'];
  // It has the command line of an agent.
  await podman('run', '--detach', '--name=asked', ...at, IMAGE, 'agent.cjs', 'gateway', 'agent');
  await until('the answer', () =>
    podman('healthcheck', 'run', 'asked').then(
      () => true,
      () => false,
    ),
  );
  await podman('rm', '--force', 'asked');
});

image('server and agents deliver, drain, and take over from a killed one', () => operate(machine));

image('it runs on arm64', async () => {
  const foreign = IMAGE.replace('amd64', 'arm64');
  const asked = ['run', '--rm', '--entrypoint=node', foreign, '--print'];
  assert.is(await podman(...asked, 'process.arch'), 'arm64\n');
  assert.match(await podman('run', '--rm', foreign, 'version'), /^gateway \d/);
});

image('a user without rights runs it', async () => {
  const { rootless } = machine;
  const archive = path.join(out, `gateway-image-${version}-amd64.tar`);
  fs.chmodSync(path.dirname(out), 0o755);
  const [, loaded = ''] =
    /^Loaded image: (.*)$/m.exec(await rootless.podman('load', '--input', archive)) ?? [];
  await rootless.podman('tag', loaded, IMAGE);
  await operate(rootless);
});

image.after(() => machine.close());
image.run();

/** Migrates, starts a server and two agents in containers, and lets them deliver. */
async function operate(engine: Podman) {
  const receiver = await endpoint();
  const gateway = await production({
    agents: 2,
    bin: fileURLToPath(new URL('./in-container.mjs', import.meta.url)),
    env: { IN_CONTAINER: JSON.stringify({ ...engine, image: IMAGE }) },
  });
  try {
    await subscribed(gateway, receiver.url);
    const [first, second] = gateway.agents as [Agent, Agent];
    await post(gateway, first, 1);
    await receiver.received(1);

    for (const name of [`server-${gateway.serverPort}`, `agent-${first.port}`])
      await engine.podman('healthcheck', 'run', name);

    const requests = receiver.requests.length;
    await callFunction(gateway, first);
    await receiver.received(requests + 1);
    assert.ok(
      limitsOf(first).some((limits) => /Max data size +\d/.test(limits)),
      'the kernel limits the memory of functions',
    );

    receiver.answer({ hang: true });
    const before = receiver.requests.length;
    await post(gateway, first, 2);
    await receiver.received(before + 1);
    receiver.answer({});
    await engine.podman('kill', '--signal=KILL', `agent-${first.port}`);
    await receiver.received(before + 2);
    assert.is(receiver.requests.at(-1)?.body.toString(), '{"n":2}');

    receiver.answer({ delayMs: 1000 });
    await post(gateway, second, 3);
    await until('the request in flight', () => receiver.connections.open > 0);
    assert.equal(await second.process.terminate(), { code: 0, signal: null });
    assert.is(receiver.requests.at(-1)?.body.toString(), '{"n":3}');
    assert.equal(await gateway.server.terminate(), { code: 0, signal: null });
    const undone = await gateway.database.rows(
      `select id from event_deliveries where status <> 'success'`,
    );
    assert.equal(undone, []);
  } finally {
    await gateway.close();
    await receiver.close();
  }
}

type Agent = Production['agents'][number];

async function post(gateway: Production, agent: Agent, n: number) {
  const url = `http://127.0.0.1:${agent.port}/api/v1/projects/${gateway.projectId}/events`;
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.apiKey}` },
    body: JSON.stringify({ event_type: 'order.paid', data: { n } }),
  });
  assert.is(response.status, 201, await response.text());
}

/** Sends a webhook to a new HTTP source with a function. */
async function callFunction(gateway: Production, agent: Agent) {
  const { url } = await gateway.api<Created & { url: string }>('POST', '/sources', {
    name: 'hooks',
    type: 'http',
    body_function: `function transform({ n }) { return { event_type: 'order.line', data: { n } }; }`,
  });
  const { pathname } = new URL(url, 'http://localhost');
  await until('the source to be known', async () => {
    const response = await fetch(`http://127.0.0.1:${agent.port}${pathname}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"n":10}',
    });
    return response.status === 200;
  });
}

/** Returns `/proc/<pid>/limits` of the processes of an agent that run functions. */
function limitsOf({ port }: Agent): string[] {
  return [...processes()]
    .filter(
      ([pid, { parent }]) =>
        commandOf(pid).includes('/child/child.js') &&
        commandOf(parent).includes(`agent --port ${port}`),
    )
    .map(([pid]) => fs.readFileSync(`/proc/${pid}/limits`, 'utf8'));
}
