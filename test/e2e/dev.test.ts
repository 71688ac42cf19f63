// deadline: 600 s
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { gateway, runGateway, type GatewayProcess } from '../support/gateway.js';
import { kafka } from '../support/kafka.js';
import { freePort } from '../support/ports.js';
import { alive, processes } from '../support/processes.js';
import { tempFolder } from '../support/start/keep.js';
import { until } from '../support/until.js';

const dev = suite('e2e/dev');

interface Memory {
  api_key: string;
  project_id: string;
  source_id: string;
  endpoint_id: string;
  postgres_home?: string;
}

/**
 * A working folder that other users can enter: if started by root, Postgres runs as another user.
 */
function workFolder(): string {
  const folder = tempFolder('dev');
  fs.chmodSync(folder, 0o755);
  return folder;
}

let first: Promise<{ folder: string; ending: Awaited<ReturnType<typeof runGateway>> }> | undefined;

/** The first start in a folder, which creates everything. Tests must not change the folder. */
function firstStart(): NonNullable<typeof first> {
  first ??= (async (folder) => ({ folder, ending: await runGateway(['dev', '--once'], { folder }) }))(workFolder());
  return first;
}

/**
 * A copy of the folder after a completed first run, which spends most of its time on the database.
 */
async function usedFolder(): Promise<string> {
  const folder = workFolder();
  const { folder: origin } = await firstStart();
  // `cp -a` instead of fs.cp: Postgres requires ownership of its files.
  const { status, stderr } = spawnSync('cp', ['-a', path.join(origin, '.gateway'), folder], { encoding: 'utf8' });
  assert.is(status, 0, stderr);
  return folder;
}

const state = (folder: string, name: string) => path.join(folder, '.gateway', name);
const memory = (folder: string) => JSON.parse(fs.readFileSync(state(folder, 'dev.json'), 'utf8')) as Memory;

let all: GatewayProcess[] = [];

dev.after.each(async () => {
  for (const running of all) await running.kill();
  all = [];
});

/** Starts an instance and waits until it follows the traffic. It is killed if its test fails. */
async function started(folder: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<GatewayProcess> {
  const running = gateway(['dev', ...args], { folder, env });
  all.push(running);
  return followed(running);
}

async function followed(running: GatewayProcess): Promise<GatewayProcess> {
  await running.line('Ctrl-C stops', { withinMs: 60_000 });
  return running;
}

let common: Promise<GatewayProcess> | undefined;

/**
 * An instance for several tests; the last of them ends it. Its environment names another database.
 */
function sharedInstance(): Promise<GatewayProcess> {
  const env = { GATEWAY_DB_HOST: 'production.invalid', GATEWAY_KV_HOST: 'production.invalid', GATEWAY_ENCRYPTION_KEY: 'wrong', PORT: '1' };
  common ??= usedFolder().then((folder) => followed(gateway(['dev'], { folder, env })));
  return common;
}

dev.after(async () => {
  await (await common)?.kill();
});

/** Calls the management API of a running instance, below its project. */
async function api<T>(running: GatewayProcess, method: string, route: string, body?: object): Promise<T> {
  const { api_key: key, project_id: project } = memory(running.folder);
  const [, url] = /API\s+(http\S+)/.exec(running.stdout) ?? [];
  const answer = await fetch(`${url}/projects/${project}${route}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  assert.ok(answer.ok, `${method} ${route} answered ${answer.status}`);
  return ((await answer.json()) as { data: T }).data;
}

/** Runs the displayed command for another message; without curl, sends the equivalent request. */
async function sendAnother(running: GatewayProcess): Promise<void> {
  const [command] = /^ {2}curl .*$/m.exec(running.stdout) ?? [];
  assert.ok(command, running.stdout);
  const typed = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
  if (typed.status !== 127) {
    assert.is(typed.status, 0, typed.stderr);
    assert.match(typed.stdout, '<MessageId>');
    return;
  }
  const [, url = '', queue = '', message = ''] = /curl (\S+) .*QueueUrl=(\S+) .*'MessageBody=(.*)'/.exec(command) ?? [];
  const answer = await fetch(url, {
    method: 'POST',
    body: new URLSearchParams({ Action: 'SendMessage', QueueUrl: queue, MessageBody: message }),
  });
  assert.is(answer.status, 200);
}

const childrenOf = (pid: number) => [...processes()].flatMap(([child, { parent }]) => (parent === pid ? [child] : []));

const gone = (pids: readonly number[]) => until('its children to be gone', () => !pids.some(alive));

function postmaster(folder: string): number {
  return Number.parseInt(fs.readFileSync(state(folder, 'postgres/data/postmaster.pid'), 'utf8'), 10);
}

dev('the first start makes everything, delivers a sample and shows each step of its way; with --once it ends with 0', async () => {
  const {
    folder,
    ending: { code, stdout, stderr },
  } = await firstStart();
  assert.is(code, 0, stdout + stderr);
  assert.match(stdout, /for development/);
  assert.match(
    stdout,
    /made +over the API: project "Development", endpoint "Inbox", subscription .*, source "Orders queue" with a transform/,
  );
  const steps = [...stdout.matchAll(/^ +(\d+) ms {2}(\w+)/gm)].map(([, ms, name]) => ({ ms: Number(ms), name }));
  assert.equal(
    steps.map(({ name }) => name),
    ['sent', 'accepted', 'routed', 'delivered', 'verified'],
  );
  assert.ok(
    steps.every(({ ms }, k) => k === 0 || ms >= (steps[k - 1]?.ms ?? 0)),
    stdout,
  );
  assert.match(stdout, /transformed into order\.created, committed as event [0-9a-f-]{36}/);
  assert.match(stdout, /POST http:\/\/127\.0\.0\.1:\d+\/ answered 200 in \d+ ms, attempt 1/);
  assert.match(stdout, /^ {4}webhook-signature: v1,\S+$/m);
  assert.match(stdout, /^ {4}x-shop: berlin$/m);
  assert.match(stdout, /^ {4}\{"number":"A-1001","total":"19\.90","currency":"EUR"\}$/m);

  // Secrets are unreadable for other users, and ignored by git.
  for (const name of ['dev.json', 'gateway.json', 'dev.log']) assert.is(fs.statSync(state(folder, name)).mode & 0o777, 0o600, name);
  assert.is(fs.statSync(state(folder, 'postgres/data')).mode & 0o077, 0);
  assert.is(fs.readFileSync(state(folder, '.gitignore'), 'utf8'), '*\n');
  assert.not.match(fs.readFileSync(state(folder, 'dev.log'), 'utf8'), memory(folder).api_key);
});

dev('the second start keeps the state and takes the ports it is told; --fresh begins anew', async () => {
  const folder = await usedFolder();
  const first = memory(folder);
  const [port, agentPort] = [await freePort(), await freePort()];
  const second = await runGateway(['dev', '--once', '--port', String(port), '--agent-port', String(agentPort)], { folder });
  assert.is(second.code, 0, second.stderr);
  assert.match(second.stdout, `http://127.0.0.1:${port}\n`);
  assert.match(second.stdout, `http://127.0.0.1:${agentPort}\n`);
  assert.not.match(second.stdout, 'over the API');
  assert.match(second.stdout, /verified/);
  // The addresses depend on the ports.
  const addresses = { inbox_url: '', queue_endpoint: '' };
  assert.equal({ ...memory(folder), ...addresses }, { ...first, ...addresses });
  const fresh = await runGateway(['dev', '--once', '--fresh'], { folder });
  assert.is(fresh.code, 0, fresh.stderr);
  assert.is.not(memory(folder).project_id, first.project_id);
});

dev('the command on the screen sends another message, whose delivery is a line', async () => {
  const running = await sharedInstance();
  await sendAnother(running);
  await running.line(/delivered .*\{"number":"A-1002".*200, signature verified/);
  const [, inbox = ''] = /inbox +(http\S+)/.exec(running.stdout) ?? [];
  const [newest] = (await (await fetch(inbox)).json()) as { verified: boolean; headers: Record<string, string>; body: string }[];
  assert.is(newest?.verified, true);
  assert.match(newest?.body ?? '', 'A-1002');
});

dev('a second one in the same folder says that there is one, and leaves it alone', async () => {
  const running = await sharedInstance();
  const second = await runGateway(['dev', '--once', '--fresh'], { folder: running.folder });
  assert.is(second.code, 1);
  assert.match(second.stderr, `gateway dev runs in this folder already (process ${running.pid})`);
  const before = running.stdout.length;
  await sendAnother(running);
  await until('the delivery', () => /delivered .*A-1002/.test(running.stdout.slice(before)));
});

dev('the configuration file in ./.gateway points other commands at it; variables that name another database do not', async () => {
  const { folder } = await sharedInstance();
  const { code, stdout } = await runGateway(['migrate', 'up', '--config', '.gateway/gateway.json'], { folder });
  assert.is(code, 0, stdout);
  assert.match(stdout, 'nothing to do');
});

dev('deliveries to an endpoint of one’s own, and events for nobody, are lines too', async () => {
  const running = await sharedInstance();
  const { uid } = await api<{ uid: string }>(running, 'POST', '/endpoints', {
    name: 'Mine',
    url: `http://127.0.0.1:${await freePort()}/hook`,
  });
  const event = await api<{ uid: string }>(running, 'POST', '/events', { event_type: 'order.paid', data: { n: 1 }, endpoint_id: uid });
  await running.line(/failed +order\.paid to Mine: .* attempt 1, again at /);
  const { content } = await api<{ content: { uid: string }[] }>(running, 'GET', '/subscriptions');
  await api(running, 'DELETE', `/subscriptions/${content[0]?.uid}`);
  await until(
    'an event for nobody',
    async () => {
      await api(running, 'POST', '/events', { event_type: 'order.lost', data: {} });
      return /nobody +order\.lost/.test(running.stdout);
    },
    { everyMs: 500 },
  );
  assert.ok(event.uid);
});

dev('Ctrl-C ends it with 0 and leaves no process behind', async () => {
  const running = await sharedInstance();
  const children = childrenOf(running.pid);
  assert.ok(children.length >= 2, 'Postgres and a sandbox');
  const { code } = await running.terminate({ signal: 'SIGINT' });
  assert.is(code, 0, running.stderr);
  await gone(children);
});

dev('after kill -9 nothing outlives it, and the next start finds everything as it was', async () => {
  const folder = await usedFolder();
  const running = await started(folder);
  const before = memory(folder);
  const children = childrenOf(running.pid);
  await running.kill();
  const next = await runGateway(['dev', '--once'], { folder });
  assert.is(next.code, 0, next.stdout + next.stderr);
  assert.is(memory(folder).project_id, before.project_id);
  await gone(children);
});

dev(
  'files of a crash that name a stranger do not stop it; a port in use is stepped over, and one that was asked for is an error that names it',
  async () => {
    const folder = await usedFolder();
    fs.writeFileSync(
      state(folder, 'postgres/data/postmaster.pid'),
      `${process.pid}\n${state(folder, 'postgres/data')}\n1\n5433\n\n127.0.0.1\n\nready   \n`,
    );
    fs.writeFileSync(state(folder, 'lock'), JSON.stringify({ pid: process.pid, command: 'another program' }));
    const taken = net.createServer();
    // Other tests use it for a moment.
    await until(
      'port 5005',
      () => new Promise<boolean>((resolve) => taken.once('error', () => resolve(false)).listen(5005, '127.0.0.1', () => resolve(true))),
    );
    const stepped = await runGateway(['dev', '--once'], { folder });
    assert.is(stepped.code, 0, stepped.stderr);
    assert.not.match(stepped.stdout, /server +http:\/\/127\.0\.0\.1:5005$/m);
    assert.match(stepped.stdout, /server +http:\/\/127\.0\.0\.1:50\d\d$/m);
    const refused = await runGateway(['dev', '--once', '--port', '5005'], { folder });
    assert.is(refused.code, 1);
    assert.match(refused.stderr, /error: port 5005 on 127\.0\.0\.1 is already in use\nfix: .*--port/);
    await new Promise((resolve) => taken.close(resolve));
  },
);

dev(
  'a function that throws is changed over the API while it runs; the message is quarantined, and --once fails with the reason',
  async () => {
    const folder = await usedFolder();
    const running = await started(folder);
    const { source_id: source } = memory(folder);
    await api(running, 'PUT', `/sources/${source}`, {
      body_function: 'function transform(payload) { throw new Error("no such shop: " + payload.shop) }',
    });
    // The agent reads the change soon, but not immediately.
    await until(
      'the new function to be in use',
      async () => {
        await sendAnother(running);
        return /quarantined .*no such shop: berlin/.test(running.stdout);
      },
      { everyMs: 500 },
    );
    await running.terminate();
    const { code, stdout, stderr } = await runGateway(['dev', '--once'], { folder });
    assert.is(code, 1);
    assert.match(stdout, / sent /);
    assert.match(stderr, /error: the sample was quarantined \(transform_threw\): .*no such shop: berlin/);
    assert.match(stderr, /fix: .*--fresh/);
  },
);

dev('a signature that the inbox cannot verify fails --once', async () => {
  const folder = await usedFolder();
  const running = await started(folder);
  await api(running, 'PUT', `/endpoints/${memory(folder).endpoint_id}/expire_secret`, { expiration: 0 });
  await running.terminate();
  const { code, stderr } = await runGateway(['dev', '--once'], { folder });
  assert.is(code, 1);
  assert.match(stderr, /the inbox answered 401: .*made with another secret/);
});

dev('when Postgres is killed it says so and ends with 1, and the next start recovers', async () => {
  const folder = await usedFolder();
  const running = await started(folder);
  process.kill(postmaster(folder), 'SIGKILL');
  assert.is((await running.ended).code, 1);
  assert.match(running.stderr, 'Postgres has ended by itself');
  assert.is((await runGateway(['dev', '--once'], { folder })).code, 0);
});

dev('--kafka reads a real topic, and goes on reading it at later starts', async () => {
  const broker = await kafka();
  const topic = await broker.topic();
  const folder = workFolder();
  await broker.produce(topic, ['{"n":1}']);
  const running = await started(folder, ['--kafka', `${broker.listeners.plaintext}/${topic}`]);
  await running.line(`the topic ${topic} on ${broker.listeners.plaintext} is a source now`, { withinMs: 60_000 });
  await running.line(/delivered .*\{"n":1\} +200, signature verified/, { withinMs: 60_000 });
  await broker.produce(topic, ['{"event_type":"order.paid","data":{"n":2}}']);
  await running.line(/delivered .*\{"n":2\} +200, signature verified/, { withinMs: 60_000 });
  assert.is((await running.terminate()).code, 0);
  const later = await started(folder);
  await broker.produce(topic, ['[3]']);
  await later.line(/delivered .*\{"value":\[3\]\} +200, signature verified/, { withinMs: 60_000 });
  assert.is((await later.terminate()).code, 0);
  await broker.close();
});

dev('a broker that cannot be reached is a sentence, and the rest works; with --once the status is 1', async () => {
  const folder = await usedFolder();
  const nowhere = `127.0.0.1:${await freePort()}`;
  const { code, stdout, stderr } = await runGateway(['dev', '--once', '--kafka', `${nowhere}/orders`], { folder });
  assert.is(code, 1);
  assert.match(stdout, /verified/);
  assert.match(stderr, `Nothing listens on ${nowhere}`);
});

dev('where nothing may be written it says so', async () => {
  const folder = workFolder();
  fs.writeFileSync(path.join(folder, '.gateway'), 'a file');
  const { code, stderr } = await runGateway(['dev', '--once'], { folder });
  assert.is(code, 1);
  assert.match(stderr, /the folder for the state cannot be used: .*\.gateway/);
});

dev('wrong use is refused with 2 before anything starts', async () => {
  const folder = workFolder();
  for (const [args, sentence] of [
    [['--kafka', 'orders'], '--kafka must be host:port/topic, not "orders"'],
    [['--port', 'many'], '--port must be a port, not "many"'],
    [['--db-host', 'x'], '--db-host is not a flag of gateway dev'],
  ] as const) {
    const { code, stderr } = await runGateway(['dev', ...args], { folder });
    assert.is(code, 2);
    assert.match(stderr, sentence);
  }
  assert.not.ok(fs.existsSync(path.join(folder, '.gateway')));
});

dev.run();
