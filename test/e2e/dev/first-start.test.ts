import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { gateway, runGateway, type GatewayProcess } from '../../support/gateway.js';
import { freePort } from '../../support/ports.js';
import { until } from '../../support/until.js';
import {
  api,
  childrenOf,
  firstStart,
  followed,
  gone,
  memory,
  sendAnother,
  state,
  usedFolder,
  workFolder,
} from './runs.js';

const dev = suite('e2e/dev/first-start');

let common: Promise<GatewayProcess> | undefined;

/** An instance for several tests; the last of them ends it. Its environment names another database. */
function sharedInstance(): Promise<GatewayProcess> {
  const env = {
    GATEWAY_DB_HOST: 'production.invalid',
    GATEWAY_KV_HOST: 'production.invalid',
    GATEWAY_ENCRYPTION_KEY: 'wrong',
    PORT: '1',
  };
  common ??= usedFolder().then((folder) => followed(gateway(['dev'], { folder, env })));
  return common;
}

dev.after(async () => {
  await (await common)?.kill();
});

dev(
  'the first start makes everything, delivers a sample and shows each step of its way; with --once it ends with 0',
  async () => {
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
    const steps = [...stdout.matchAll(/^ +(\d+) ms {2}(\w+)/gm)].map(([, ms, name]) => ({
      ms: Number(ms),
      name,
    }));
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

    // Only the owner can read secrets, and git ignores them.
    for (const name of ['dev.json', 'gateway.json', 'dev.log'])
      assert.is(fs.statSync(state(folder, name)).mode & 0o777, 0o600, name);
    assert.is(fs.statSync(state(folder, 'postgres/data')).mode & 0o077, 0);
    assert.is(fs.readFileSync(state(folder, '.gitignore'), 'utf8'), '*\n');
    assert.not.match(fs.readFileSync(state(folder, 'dev.log'), 'utf8'), memory(folder).api_key);
  },
);

dev('the command on the screen sends another message, whose delivery is a line', async () => {
  const running = await sharedInstance();
  await sendAnother(running);
  await running.line(/delivered .*\{"number":"A-1002".*200, signature verified/);
  const [, inbox = ''] = /inbox +(http\S+)/.exec(running.stdout) ?? [];
  const [newest] = (await (await fetch(inbox)).json()) as {
    verified: boolean;
    headers: Record<string, string>;
    body: string;
  }[];
  assert.is(newest?.verified, true);
  assert.match(newest?.body ?? '', 'A-1002');
});

dev('a second one in the same folder says that there is one, and leaves it alone', async () => {
  const running = await sharedInstance();
  const second = await runGateway(['dev', '--once', '--fresh'], { folder: running.folder });
  assert.is(second.code, 1);
  assert.match(
    second.stderr,
    `gateway dev is already running in this folder (process ${running.pid})`,
  );
  const before = running.stdout.length;
  await sendAnother(running);
  await until('the delivery', () => /delivered .*A-1002/.test(running.stdout.slice(before)));
});

dev(
  'the configuration file in ./.gateway points other commands at it; variables that name another database do not',
  async () => {
    const { folder } = await sharedInstance();
    const { code, stdout } = await runGateway(
      ['migrate', 'up', '--config', '.gateway/gateway.json'],
      { folder },
    );
    assert.is(code, 0, stdout);
    assert.match(stdout, 'nothing to do');
  },
);

dev('deliveries to an endpoint of one’s own, and events for nobody, are lines too', async () => {
  const running = await sharedInstance();
  const { uid } = await api<{ uid: string }>(running, 'POST', '/endpoints', {
    name: 'Mine',
    url: `http://127.0.0.1:${await freePort()}/hook`,
  });
  const event = await api<{ uid: string }>(running, 'POST', '/events', {
    event_type: 'order.paid',
    data: { n: 1 },
    endpoint_id: uid,
  });
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

dev('where nothing may be written it says so', async () => {
  const folder = workFolder();
  fs.writeFileSync(path.join(folder, '.gateway'), 'a file');
  const { code, stderr } = await runGateway(['dev', '--once'], { folder });
  assert.is(code, 1);
  assert.match(stderr, /the state folder cannot be used: .*\.gateway/);
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
