// deadline: 1800 s, long
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { packNpm } from '../../scripts/release/npm.mjs';
import { containers } from '../deploy/containers.js';
import { nodeBase, npmrc } from '../deploy/node-base.js';
import { standIns } from '../deploy/stand-ins/build.js';
import { root } from '../meta/house.js';
import { tempFolder } from '../support/start/keep.js';
import { python } from '../support/start/python.js';
import { until } from '../support/until.js';

/** docs/guides/docker.md: `docker` is Podman, and the images of other projects are stand-ins. */
const guide = suite('docs/docker-guide');

const run = promisify(execFile);
const page = fs.readFileSync(path.join(root, 'docs/guides/docker.md'), 'utf8');
const folder = tempFolder('docker-guide');
const compose = path.join(folder, 'deploy/compose');
fs.cpSync(path.join(root, 'deploy'), path.join(folder, 'deploy'), { recursive: true });

const machine = await containers({ ownNetwork: true });
guide.after(() => machine.close());
const { podman, within } = machine;
await podman('import', nodeBase('amd64'), 'docker.io/library/node:24-trixie-slim');
await packNpm({ root, out: path.join(folder, 'release') });
await standIns(machine, fs.readFileSync(path.join(compose, 'compose.yaml'), 'utf8'));

/**
 * Podman needs systemd to repeat health checks, and Podman 4 does not wait for them. So services
 * start at once here, and those that need another one fail and restart until it is there.
 */
const docker = `#!/bin/bash
set -e
podman() { ${within.join(' ')} env --chdir="$PWD" podman "$@"; }
compose() {
  ${within.join(' ')} env --chdir="$PWD" timeout 120 ${python(['podman-compose==1.5.0'])} -m podman_compose --in-pod=false "$@"
}
case "$*" in
  'compose up --detach')
    compose up --detach --no-deps
    for each in server agent kafka; do
      until podman healthcheck run gateway_\${each}_1 > /dev/null; do sleep 1; done
    done;;
  'compose up demo')
    compose --profile demo up --detach --no-deps demo
    podman logs --follow gateway_demo_1
    exit "$(podman wait gateway_demo_1)";;
  'compose run '*) compose run --no-deps "\${@:3}";;
  'build '*) buildah build --format=docker --secret=id=npmrc,src=${npmrc()} "\${@:2}";;
  'run '*) podman run --network=guide "\${@:2}";;
  *) podman "$@";;
esac
`;
const bin = path.join(folder, 'bin');
fs.mkdirSync(bin);
fs.writeFileSync(path.join(bin, 'docker'), docker, { mode: 0o755 });

/** Runs blocks of a section in one bash, with replacements, and returns its output. */
async function follow(
  section: string,
  cwd: string,
  replacements: Readonly<Record<string, string>> = {},
): Promise<string> {
  const text = page.split(/^## /m).find((it) => it.startsWith(`${section}\n`)) ?? '';
  const blocks = [...text.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = '']) => block);
  assert.ok(blocks.length > 0, section);
  const script = Object.entries(replacements).reduce(
    (done, [from, to]) => (assert.ok(done.includes(from), from), done.replaceAll(from, to)),
    blocks.join('\n'),
  );
  const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
  const options = { cwd, env, maxBuffer: 64 << 20, timeout: 300_000 };
  return (await run('bash', ['-eo', 'pipefail', '-c', script], options)).stdout;
}

/** Reads a URL beside the containers. */
async function get<Data>(url: string): Promise<Data> {
  const [program = '', ...args] = [...within, 'curl', '-sS', '--fail', url];
  return (JSON.parse((await run(program, args, { maxBuffer: 64 << 20 })).stdout) as { data: Data })
    .data;
}

guide('the image can be built with a tracer', async () => {
  // The archives of a release are those of test/deploy/image.
  await follow('The image', folder, {
    'docker load --input release/gateway-image-0.1.0-amd64.tar': '',
  });
  const tracer = `require.resolve('@gateway/tracer-otel', { paths: ['/usr/lib/gateway'] })`;
  await podman('run', '--rm', '--entrypoint=node', 'gateway:0.1.0', '--print', tracer);
});

guide('Run it leads to a server and an agent that drain', async () => {
  await podman('network', 'create', 'guide');
  const started = ['run', '--detach', '--network=guide'];
  const postgres = ['--env=POSTGRES_USER=gateway', '--env=POSTGRES_PASSWORD=secret'];
  await podman(...started, '--name=postgres.example.com', ...postgres, 'postgres:17');
  await podman(...started, '--name=redis.example.com', 'redis:8');
  await until('Postgres', () =>
    podman('exec', 'postgres.example.com', 'pg_isready', '--host=localhost').then(
      () => true,
      () => false,
    ),
  );
  assert.match(await follow('Run it', folder, { 'PASSWORD=…': 'PASSWORD=secret' }), /"key": "/);
  for (const name of ['server', 'agent']) {
    await until(`${name} to be healthy`, () =>
      podman('healthcheck', 'run', name).then(
        () => true,
        () => false,
      ),
    );
    await podman('stop', name);
    assert.is((await podman('wait', name)).trim(), '0', `${name} drains`);
  }
});

guide('Compose leads to a delivery from Kafka, and Prometheus sees all processes', async () => {
  const output = await follow('Compose', compose);
  assert.match(output, /delivered: \{[^]*'webhook-signature': 'v1,[^]*"id":"A-1001"/);

  const prometheus = 'http://127.0.0.1:9090/api/v1';
  await until('the server and both agents as targets of Prometheus', async () => {
    const { activeTargets } = await get<{
      activeTargets: { labels: { job: string }; health: string }[];
    }>(`${prometheus}/targets`);
    const up = activeTargets.filter(({ health }) => health === 'up');
    const jobs = up.map(({ labels }) => labels.job).sort();
    return jobs.join() === 'gateway-agent,gateway-agent,gateway-server';
  });
  const { groups } = await get<{ groups: { rules: { name: string }[] }[] }>(`${prometheus}/rules`);
  const written = fs.readFileSync(path.join(root, 'deploy/prometheus/alerts.yml'), 'utf8');
  const names = [...written.matchAll(/^\s+- (?:alert|record): (\S+)$/gm)].map(([, name]) => name);
  assert.equal(groups.flatMap(({ rules }) => rules.map(({ name }) => name)).sort(), names.sort());
});

guide('Grafana gets a data source, and the dashboard from where its provider looks', () => {
  const text = (name: string) => fs.readFileSync(path.join(compose, name), 'utf8');
  const [, source] = /url: http:\/\/(\w+):9090/.exec(text('grafana/datasources.yml')) ?? [];
  const [, dashboards] = /path: (\S+)/.exec(text('grafana/dashboards.yml')) ?? [];
  const services = text('compose.yaml');
  assert.ok(services.includes(`\n  ${source}:\n`));
  assert.ok(services.includes(`- ../grafana/gateway.json:${dashboards}/`));
  assert.match(text('../grafana/gateway.json'), /"type": "datasource"|"type": "prometheus"/);
});

guide.run();
