// deadline: 600 s, long
import fs from 'node:fs';
import net from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { gateway, runGateway, type GatewayProcess } from '../../support/gateway.js';
import { kafka } from '../../support/kafka.js';
import { freePort } from '../../support/ports.js';
import { until } from '../../support/until.js';
import {
  api,
  childrenOf,
  followed,
  gone,
  memory,
  sendAnother,
  state,
  usedFolder,
  workFolder,
} from './runs.js';

const dev = suite('e2e/dev/restarts');

let all: GatewayProcess[] = [];

dev.after.each(async () => {
  for (const running of all) await running.kill();
  all = [];
});

/** Starts it and waits until it follows the traffic. It is killed after a failed test too. */
async function started(folder: string, args: readonly string[] = []): Promise<GatewayProcess> {
  const running = gateway(['dev', ...args], { folder });
  all.push(running);
  return followed(running);
}

function postmaster(folder: string): number {
  return Number.parseInt(
    fs.readFileSync(state(folder, 'postgres/data/postmaster.pid'), 'utf8'),
    10,
  );
}

dev(
  'the second start keeps the state and takes the ports it is told; --fresh begins anew',
  async () => {
    const folder = await usedFolder();
    const first = memory(folder);
    const [port, agentPort] = [await freePort(), await freePort()];
    const second = await runGateway(
      ['dev', '--once', '--port', String(port), '--agent-port', String(agentPort)],
      { folder },
    );
    assert.is(second.code, 0, second.stderr);
    assert.match(second.stdout, `http://127.0.0.1:${port}\n`);
    assert.match(second.stdout, `http://127.0.0.1:${agentPort}\n`);
    assert.not.match(second.stdout, 'over the API');
    assert.match(second.stdout, /verified/);
    // The addresses follow the ports.
    const addresses = { inbox_url: '', queue_endpoint: '' };
    assert.equal({ ...memory(folder), ...addresses }, { ...first, ...addresses });
    const fresh = await runGateway(['dev', '--once', '--fresh'], { folder });
    assert.is(fresh.code, 0, fresh.stderr);
    assert.is.not(memory(folder).project_id, first.project_id);
  },
);

dev(
  'after kill -9 nothing outlives it, and the next start finds everything as it was',
  async () => {
    const folder = await usedFolder();
    const running = await started(folder);
    const before = memory(folder);
    const children = childrenOf(running.pid);
    await running.kill();
    const next = await runGateway(['dev', '--once'], { folder });
    assert.is(next.code, 0, next.stdout + next.stderr);
    assert.is(memory(folder).project_id, before.project_id);
    await gone(children);
  },
);

dev(
  'files of a crash that name a stranger do not stop it; a port in use is stepped over, and one that was asked for is an error that names it',
  async () => {
    const folder = await usedFolder();
    fs.writeFileSync(
      state(folder, 'postgres/data/postmaster.pid'),
      `${process.pid}\n${state(folder, 'postgres/data')}\n1\n5433\n\n127.0.0.1\n\nready   \n`,
    );
    fs.writeFileSync(
      state(folder, 'lock'),
      JSON.stringify({ pid: process.pid, command: 'another program' }),
    );
    const taken = net.createServer();
    // Other tests take it for a moment.
    await until(
      'port 5005',
      () =>
        new Promise<boolean>((resolve) =>
          taken.once('error', () => resolve(false)).listen(5005, '127.0.0.1', () => resolve(true)),
        ),
    );
    const stepped = await runGateway(['dev', '--once'], { folder });
    assert.is(stepped.code, 0, stepped.stderr);
    assert.not.match(stepped.stdout, /server +http:\/\/127\.0\.0\.1:5005$/m);
    assert.match(stepped.stdout, /server +http:\/\/127\.0\.0\.1:50\d\d$/m);
    const refused = await runGateway(['dev', '--once', '--port', '5005'], { folder });
    assert.is(refused.code, 1);
    assert.match(
      refused.stderr,
      /error: port 5005 on 127\.0\.0\.1 is already in use\nfix: .*--port/,
    );
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
      body_function:
        'function transform(payload) { throw new Error("no such shop: " + payload.shop) }',
    });
    // The agent follows at once, but not in the same instant.
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
    assert.match(
      stderr,
      /error: the sample was quarantined \(transform_threw\): .*no such shop: berlin/,
    );
    assert.match(stderr, /fix: .*--fresh/);
  },
);

dev('a signature that the inbox cannot verify fails --once', async () => {
  const folder = await usedFolder();
  const running = await started(folder);
  await api(running, 'PUT', `/endpoints/${memory(folder).endpoint_id}/expire_secret`, {
    expiration: 0,
  });
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
  assert.match(running.stderr, 'Postgres has stopped unexpectedly');
  assert.is((await runGateway(['dev', '--once'], { folder })).code, 0);
});

dev('--kafka reads a real topic, and goes on reading it at later starts', async () => {
  const broker = await kafka();
  const topic = await broker.topic();
  const folder = workFolder();
  await broker.produce(topic, ['{"n":1}']);
  const running = await started(folder, ['--kafka', `${broker.listeners.plaintext}/${topic}`]);
  await running.line(`the topic ${topic} on ${broker.listeners.plaintext} is a source now`, {
    withinMs: 60_000,
  });
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

dev(
  'a broker that cannot be reached is a sentence, and the rest works; with --once the status is 1',
  async () => {
    const folder = await usedFolder();
    const nowhere = `127.0.0.1:${await freePort()}`;
    const { code, stdout, stderr } = await runGateway(
      ['dev', '--once', '--kafka', `${nowhere}/orders`],
      { folder },
    );
    assert.is(code, 1);
    assert.match(stdout, /verified/);
    assert.match(stderr, `Nothing listens on ${nowhere}`);
  },
);

dev.run();
