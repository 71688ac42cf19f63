import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { insertSource } from '#store/config/sources';
import { makeEndpoint, makeProject, makeSubscription } from '../../../agent/records.js';
import { migratedDatabase } from '../../../store/migrated.js';
import { connectionOf } from '../../../support/database.js';
import { gateway, runGateway } from '../../../support/gateway.js';
import { until } from '../../../support/until.js';

const transform = suite('cli/commands/utils/transform');

const folder = mkdtempSync(join(tmpdir(), 'gateway-transform-'));
transform.after(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, content: string): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

const sample = file('sample.json', '{"id":"o-1","amount":50,"shop":"acme"}');
const run = (args: readonly string[], config: object = {}) =>
  runGateway(['utils', 'transform', ...args], { config });
const on = (text: string, ...args: string[]) =>
  run([file('function.js', text), '--sample', sample, ...args]);

transform(
  'what a function returns is shown with what would become of it, without a database',
  async () => {
    const text = `function transform(payload) {
    console.log('amount', payload.amount);
    return { event_type: 'order.paid', owner_id: payload.shop, data: { id: payload.id } };
  }`;
    const { code, stdout, stderr } = await on(text);
    assert.is(code, 0, stderr);
    assert.match(stdout, /^function\.js: called with 38 bytes, \d/);
    assert.match(stdout, 'console: amount 50');
    assert.match(stdout, '"owner_id": "acme"');
    assert.match(stdout, 'It would be accepted as one event: order.paid.');
  },
);

transform(
  'a sample may be bytes that are not UTF-8, and a header that is left out is noted',
  async () => {
    writeFileSync(join(folder, 'latin1.csv'), 'Jos\xe9;7', 'latin1');
    const text = `function transform(payload, message) {
    const [name] = Array.from(message.bytes, (byte) => String.fromCharCode(byte)).join('').split(';');
    return { event_type: 'a', data: { name, payload }, custom_headers: { Host: 'evil.example' } };
  }`;
    const args = [file('latin1.js', text), '--sample', join(folder, 'latin1.csv')];
    const { code, stdout, stderr } = await run(args);
    assert.is(code, 0, stderr);
    assert.match(stdout, 'called with 6 bytes');
    assert.match(stdout, '"name": "José",\n      "payload": "Jos\ufffd;7"');
    const note = 'the header "Host" was omitted: the connection sets it';
    assert.match(stdout, `\n  note: ${note}\n`);
    const record = JSON.parse((await run([...args, '--json'])).stdout) as {
      results: { notes: string[] }[];
    };
    assert.equal(record.results[0]?.notes, [note]);
  },
);

transform(
  'a function that throws would be quarantined: its line is shown, and the status is 1',
  async () => {
    const { code, stdout } = await on('function transform(p) {\n  return p.a.b;\n}');
    assert.is(code, 1);
    assert.match(stdout, 'It would be quarantined: transform_threw\n');
    assert.match(stdout, '2 | return p.a.b;');
  },
);

transform('a function that overruns is stopped at the deadline of the settings', async () => {
  const { code, stdout } = await run(
    [file('loop.js', 'function transform() { for (;;); }'), '--sample', sample],
    {
      transform: { deadline_ms: 100 },
    },
  );
  assert.is(code, 1);
  assert.match(stdout, 'The function did not return within its deadline of 100 ms.');
});

transform('null drops on purpose, and one bad result of several refuses the message', async () => {
  const dropped = await on('function transform() { return null; }', '--json');
  assert.is(dropped.code, 0);
  assert.is((JSON.parse(dropped.stdout) as { outcome: string }).outcome, 'dropped');
  const { code, stdout } = await on(
    "function transform() { return [{ event_type: 'a', data: {} }, { event_type: 'b' }]; }",
    '--json',
  );
  assert.is(code, 1);
  const record = JSON.parse(stdout) as {
    outcome: string;
    refusal: { reason: string };
    results: { refusal: unknown }[];
  };
  assert.equal(
    [record.outcome, record.results.map(({ refusal }) => refusal === null)],
    ['quarantined', [true, false]],
  );
  assert.match(record.refusal.reason, /^Result 2 of 2: /);
});

transform(
  'with a project it tells where the events would go, and which subscriptions do not want them',
  async () => {
    const db = await migratedDatabase();
    try {
      const config = { database: connectionOf(db.url) };
      const projectId = await makeProject(db);
      const shop = await makeEndpoint(db, projectId, {
        url: 'https://shop.example.com/hooks',
        name: 'shop',
        owner_id: 'acme',
      });
      await makeEndpoint(db, projectId, {
        url: 'https://archive.example.com/hooks',
        name: 'archive',
      });
      await makeSubscription(db, projectId, {
        endpointId: shop.id,
        filter: { body: { amount: { $gte: 100 } } },
      });
      await makeSubscription(db, projectId, {
        endpointId: shop.id,
        eventTypes: ['order.*'],
        filter: { headers: { 'x-tenant': 'a' } },
      });
      const plain = file(
        'plain.js',
        "function transform(p) { return { event_type: 'order.paid', data: p }; }",
      );
      const project = ['--sample', sample, '--project-id', projectId];

      const routed = await run([plain, ...project, '--header', 'X-Tenant: a'], config);
      assert.is(routed.code, 0, routed.stderr);
      assert.match(routed.stdout, 'would go to 1 endpoint: shop by the subscription subscription');
      assert.match(
        routed.stdout,
        'not by subscription: the filter requires amount to be at least 100, but it is 50',
      );
      assert.match(
        (await run([plain, ...project], config)).stdout,
        'would go nowhere. No subscription of the project matches',
      );

      const text =
        "function transform() { return { event_type: 'a', data: {}, custom_headers: { 'x-gateway-message-type': 'broadcast' } }; }";
      const source = await insertSource(db.knex, projectId, {
        name: 'orders topic',
        type: 'pub_sub',
        pub_sub: { type: 'memory', memory: {} },
        body_function: text,
        is_disabled: false,
      });
      const stored = await run(['--source-id', source.id, '--sample', sample], config);
      assert.match(stored.stdout, 'the function of orders topic: called');
      assert.match(stored.stdout, /would go to 2 endpoints: (shop, archive|archive, shop)\n/);

      for (const args of [
        ['--source-id', newId()],
        [plain, '--project-id', newId()],
      ]) {
        const { code, stderr } = await run([...args, '--sample', sample], config);
        assert.is(code, 1);
        assert.match(stderr, /^error: (source|project) \S+ not found/);
      }
    } finally {
      await db.close();
    }
  },
);

transform(
  'with --watch it runs again when a file is changed or replaced, goes on after a mistake, and ends with Ctrl-C',
  async () => {
    const path = file('watched.js', 'function transform() { return null; }');
    const running = gateway(['utils', 'transform', path, '--sample', sample, '--watch']);
    try {
      await running.line('waiting for a change');
      assert.match(running.stdout, 'It would be dropped');
      writeFileSync(path, 'function transform() { retrun null; }');
      await running.line('transform_not_compiled');
      rmSync(path);
      await running.line('cannot be read: there is no such file or folder');
      renameSync(
        file('new.js', "function transform() { return { event_type: 'replaced', data: {} }; }"),
        path,
      );
      await running.line('one event: replaced.');
      await until(
        'it to wait again',
        () => running.stderr.split('waiting for a change').length === 5,
      );
      const { code, signal } = await running.terminate({ signal: 'SIGINT' });
      assert.equal([code, signal], [0, null]);
    } finally {
      await running.kill();
    }
  },
);

transform('what is missing or makes no sense is wrong use', async () => {
  const cases = [
    [['f.js'], 'there is no message to run the function on'],
    [['--sample', sample], 'there is no function to run'],
    [
      ['f.js', '--source-id', newId(), '--sample', sample],
      'a file and --source-id were both given',
    ],
    [
      ['f.js', '--project-id', 'orders', '--sample', sample],
      '--project-id must be an id, not "orders"',
    ],
    [
      ['f.js', '--header', 'tenant', '--sample', sample],
      '--header must be a name and a value, not "tenant"',
    ],
    [
      ['none.js', '--sample', sample],
      'the file none.js of the function cannot be read: there is no such file or folder',
    ],
  ] as const;
  const told = await Promise.all(cases.map(([args]) => run(args)));
  for (const [at, { code, stderr }] of told.entries()) {
    assert.is(code, 2, stderr);
    assert.match(stderr, cases[at]![1]);
  }
});

transform.run();
