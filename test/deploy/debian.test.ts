// deadline: 600 s, long
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { packDeb } from '../../scripts/release/deb.mjs';
import { names } from '../../scripts/release/names.mjs';
import { packNpm } from '../../scripts/release/npm.mjs';
import { cached } from '../support/start/cached.js';
import { installed } from '../support/start/packages.js';
import { tempFolder } from '../support/start/keep.js';
import { until } from '../support/until.js';
import { containers } from './containers.js';

const debian = suite('deploy/debian');

const root = fileURLToPath(new URL('../..', import.meta.url));
const machine = await containers();
const { podman } = machine;
const out = tempFolder('debian');
const packages = await packNpm({ root, out, names });
const [file = ''] = await packDeb({ root, out, version: '0.1.0', names, packages });

/** A Debian with systemd and what the guide installs beside the package. */
const system = cached('gateway-debian-13', (folder) => {
  process.stderr.write('making a Debian with systemd (mmdebstrap)\n');
  const include = 'systemd,systemd-sysv,dbus,nodejs,postgresql,redis-server,openssl';
  execFileSync(
    'mmdebstrap',
    [
      '--variant=minbase',
      `--include=${include}`,
      '--aptopt=APT::Install-Recommends "false"',
      'trixie',
      path.join(folder, 'root.tar'),
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
});
await podman('import', path.join(system, 'root.tar'), 'localhost/debian');
await podman(
  'run',
  '--name=vm',
  '--detach',
  '--privileged',
  '--cgroups=enabled',
  '--systemd=always',
  '--network=none',
  '--pids-limit=0',
  'localhost/debian',
  '/sbin/init',
);

/** Runs a script in one shell of that machine, and returns its output. */
const sh = (script: string) => podman('exec', '--workdir=/root', 'vm', 'bash', '-ec', script);

await until('systemd', async () => {
  const state = await sh('systemctl is-system-running').catch((error: unknown) =>
    String((error as { stdout?: string }).stdout),
  );
  return /running|degraded/.test(state);
});

// Credentials arrive through the propagation of mounts, which systemd leaves to whoever starts it here.
await sh('mount --make-rshared /');

debian('lintian finds no error', async () => {
  installed('lintian', ['lintian'], 'to check the Debian package');
  const { stdout } = await promisify(execFile)('lintian', ['--allow-root', '--fail-on=none', file]);
  assert.equal(
    stdout.split('\n').filter((line) => line.startsWith('E:')),
    [],
  );
});

debian('the guide leads to a server and an agent that deliver', async () => {
  await sh('mkdir release');
  await podman('cp', file, 'vm:/root/release/');
  const page = fs.readFileSync(path.join(root, 'docs/guides/systemd.md'), 'utf8');
  const commands = [...page.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, text = '']) => text);
  const [install, ...rest] = commands as [string, ...string[]];
  await sh(install);
  // The endpoint of this test is on loopback.
  await sh('echo GATEWAY_DELIVERY_ALLOWED_NETWORKS=127.0.0.0/8 > /etc/gateway/environment');
  const output = await sh(rest.join('\n'));
  const [, key = ''] = /"key": "([^"]+)"/.exec(output) ?? [];

  fs.writeFileSync(path.join(path.dirname(file), 'send.mjs'), SEND);
  await podman('cp', path.join(path.dirname(file), 'send.mjs'), 'vm:/root/send.mjs');
  assert.is(await sh(`node send.mjs ${key}`), '{"n":1}\n{"n":2}\n');
});

debian('functions run under the limits of the kernel', async () => {
  const limits = await sh(
    `cat /proc/$(pgrep --full --oldest child/child.js)/limits | grep 'data size'`,
  );
  assert.match(limits, /Max data size +\d/);
});

debian('the service can read its settings, and write nowhere', async () => {
  assert.is(await sh('stat -c %a:%U:%G /etc/gateway/gateway.json'), '640:root:gateway\n');
  const pid = (await sh('systemctl show --property=MainPID --value gateway-server')).trim();
  const tried = await sh(`nsenter --target ${pid} --mount -- touch /etc/gateway/x 2>&1 || true`);
  assert.match(tried, /Read-only file system/);
});

debian('an agent that was killed starts again, and one that is stopped drains', async () => {
  const pid = () => sh('systemctl show --property=MainPID --value gateway-agent@5008');
  const before = await pid();
  await sh(`kill -9 ${before}`);
  await until('another process', async () => !['0\n', before].includes(await pid()));
  await ready();
  await sh('systemctl stop gateway-agent@5008');
  assert.is(
    await sh('systemctl show --property=Result --property=ExecMainStatus gateway-agent@5008'),
    'Result=success\nExecMainStatus=0\n',
  );
});

debian('removing the package stops the server and keeps the settings', async () => {
  await sh('apt-get remove --yes gateway');
  assert.is(await sh('systemctl is-active gateway-server || true'), 'inactive\n');
  await sh('test -s /etc/gateway/gateway.json');
});

debian('purging it deletes the settings and nothing that others made', async () => {
  await sh('mkdir -p /var/lib/gateway/archive && touch /var/lib/gateway/archive/day');
  await sh('apt-get purge --yes gateway');
  const left = await sh(
    'find /etc/gateway /var/lib/gateway /etc/systemd/system -name "*gateway*" -o -name day -o -name environment',
  );
  assert.equal(left.trim().split('\n').sort(), [
    '/etc/gateway',
    '/etc/gateway/environment',
    '/var/lib/gateway',
    '/var/lib/gateway/archive/day',
  ]);
  await sh('rm -r /var/lib/gateway/archive /etc/gateway/environment');
  await sh('apt-get install --yes ./release/gateway_0.1.0_all.deb && apt-get purge --yes gateway');
  await sh('test ! -e /etc/gateway && test ! -e /var/lib/gateway');
});

debian.after(() => machine.close());
debian.run();

async function ready() {
  const ask = `fetch('http://127.0.0.1:5008/healthz?ready').then(({ ok }) => process.exit(ok ? 0 : 1))`;
  await until('the agent', () =>
    sh(`node --eval "${ask}"`).then(
      () => true,
      () => false,
    ),
  );
}

/** Sends an event, and a webhook through a function, to itself; prints the two bodies. */
const SEND = `
import http from 'node:http';
const bodies = [];
let arrived;
const inbox = http.createServer((request, response) => {
  let body = '';
  request.on('data', (bytes) => (body += bytes)).on('end', () => {
    response.end();
    bodies.push(body);
    if (bodies.length === 2) arrived();
  });
});
inbox.listen(8080, '127.0.0.1');
const both = new Promise((resolve) => (arrived = resolve));
const call = async (port, path, body) => {
  const answer = await fetch('http://127.0.0.1:' + port + path, {
    method: 'POST',
    headers: { authorization: 'Bearer ' + process.argv[2], 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(path + ' ' + answer.status + ' ' + text);
  return JSON.parse(text).data;
};
const ready = async (port) => {
  while (!(await fetch('http://127.0.0.1:' + port + '/healthz?ready').then(({ ok }) => ok, () => false)))
    await new Promise((resolve) => setTimeout(resolve, 100));
};
await ready(5005);
await ready(5008);
const project = '/api/v1/projects/' + (await call(5005, '/api/v1/projects', { name: 'x' })).uid;
const endpoint = await call(5005, project + '/endpoints', { name: 'x', url: 'http://127.0.0.1:8080/' });
await call(5005, project + '/subscriptions', { name: 'x', endpoint_id: endpoint.uid, filter_config: { event_types: ['*'] } });
const source = await call(5005, project + '/sources', {
  name: 'hooks',
  type: 'http',
  body_function: "function transform({ n }) { return { event_type: 'x', data: { n } }; }",
});
await call(5005, project + '/events', { event_type: 'x', data: { n: 1 } });
await call(5005, new URL(source.url, 'http://localhost').pathname, { n: 2 });
await both;
console.log(bodies.sort().join('\\n'));
process.exit();
`;
