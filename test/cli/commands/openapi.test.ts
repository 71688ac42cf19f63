import http from 'node:http';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { makeProject } from '../../agent/records.js';
import { migratedDatabase } from '../../store/migrated.js';
import { connectionOf } from '../../support/database.js';
import { runGateway } from '../../support/gateway.js';
import { loopback } from '../../support/ports.js';

const openapi = suite('cli/commands/openapi');

const folder = mkdtempSync(join(tmpdir(), 'gateway-openapi-'));
openapi.after(() => rmSync(folder, { recursive: true, force: true }));

const fixtures = fileURLToPath(new URL('../../fixtures/openapi', import.meta.url));
const shop = join(fixtures, 'shop-3.1.yaml');
const bank = join(fixtures, 'bank-3.0.json');

function file(name: string, content: string): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

interface Extracted {
  readonly summary: string;
  readonly description: string;
  readonly deprecated: boolean;
  readonly content_type: string | null;
  readonly schema: Record<string, unknown> | null;
  readonly source: string;
}

async function extract(...args: string[]): Promise<Record<string, Extracted>> {
  const { code, stdout, stderr } = await runGateway(['openapi', ...args]);
  assert.is(code, 0, stderr);
  return JSON.parse(stdout) as Record<string, Extracted>;
}

/** The server's Ajv in strict mode, which refuses keywords outside JSON Schema 2020-12. */
const { Ajv2020 } = createRequire(
  new URL('../../../packages/server/package.json', import.meta.url),
)('ajv/dist/2020.js') as {
  Ajv2020: new (options: object) => { compile(schema: unknown): (value: unknown) => boolean };
};

function validator({ schema }: Extracted): (value: unknown) => boolean {
  return new Ajv2020({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    allowUnionTypes: true,
    validateFormats: false,
  }).compile(schema);
}

let types: Record<string, Extracted>;
openapi.before(async () => {
  types = await extract(shop, bank);
});

openapi('webhooks, x-webhooks and callbacks of several documents become event types', () => {
  assert.equal(Object.keys(types), [
    'order.paid',
    'category.moved',
    'customer.created',
    'ping',
    'subscribe.onRefund',
    'transfer.settled',
    'put.accounts.id.holds.released',
    'put.accounts.id.holds.released.2',
  ]);
  const { summary, description, deprecated, content_type, source } = types['order.paid']!;
  assert.equal(
    [summary, description, deprecated],
    ['An order was paid.', 'Sent once, when the payment is settled.', false],
  );
  assert.is(content_type, 'application/json');
  assert.match(source, /shop-3\.1\.yaml#\/webhooks\/order\.paid\/post$/);
  assert.equal(
    [types['customer.created']!.deprecated, types['customer.created']!.content_type],
    [true, 'application/json'],
  );
  assert.is(types['subscribe.onRefund']!.content_type, 'application/vnd.shop+json');
  assert.equal([types['ping']!.schema, types['ping']!.content_type], [null, null]);
});

openapi(
  'a schema stands by itself: it takes what the document takes and refuses what it refuses',
  () => {
    const line = { sku: 'a', quantity: 1 };
    const order = {
      id: 'x',
      total: { amount: 5, currency: 'EUR' },
      lines: [line],
      nullable: true,
      example: 'abc',
    };
    const takes = validator(types['order.paid']!);
    assert.ok(takes(order));
    for (const wrong of [
      { ...order, total: { amount: 5, currency: 'GBP' } },
      { ...order, lines: [] },
      { ...order, lines: [{ ...line, color: 'red' }] },
      { ...order, lines: [{ ...line, quantity: 0 }] },
      { ...order, nullable: 'no' },
      { ...order, example: 'long' },
    ])
      assert.not.ok(takes(wrong), JSON.stringify(wrong));
    const refund = validator(types['subscribe.onRefund']!);
    assert.ok(refund({ refund: { amount: 1, currency: 'USD' }, reason: null }));
    assert.not.ok(refund({ refund: { amount: 1.5, currency: 'USD' } }));
  },
);

openapi('a schema that contains itself stays as it is', () => {
  const takes = validator(types['category.moved']!);
  assert.ok(takes({ category: { name: 'a', parent: { name: 'b', parent: { name: 'c' } } } }));
  assert.not.ok(takes({ category: { name: 'a', parent: { name: 'b', parent: {} } } }));
  const customer = validator(types['customer.created']!);
  assert.ok(customer({ email: 'a@b', referrer: {} }));
  assert.not.ok(customer({ referrer: {} }));
  assert.not.ok(customer({ email: 'a@b', referrer: { referrer: { email: '' } } }));
});

openapi('the words of 3.0 become those of 2020-12', () => {
  const takes = validator(types['transfer.settled']!);
  const transfer = { amount: 1000, note: null, parent: null, attachment: 'aGk=', kind: 'instant' };
  assert.ok(takes(transfer));
  assert.ok(takes({ ...transfer, parent: { ...transfer, note: 'x' } }));
  for (const wrong of [
    { amount: 0 },
    { amount: 1001 },
    { note: 5 },
    { parent: { amount: 1 } },
    { kind: null },
  ])
    assert.not.ok(takes({ ...transfer, ...wrong }), JSON.stringify(wrong));
  const hold = validator(types['put.accounts.id.holds.released']!);
  assert.ok(hold({ hold: null }));
  assert.not.ok(hold({ hold: 'c' }));
});

openapi('two places that announce one name are named, and nothing is printed', async () => {
  const other = file('other.yaml', 'openapi: 3.1.0\nwebhooks:\n  order.paid: { post: {} }\n');
  const { code, stdout, stderr } = await runGateway(['openapi', shop, other]);
  assert.equal([code, stdout], [1, '']);
  assert.match(
    stderr,
    /the event type order\.paid is declared twice: by \S+shop-3\.1\.yaml#\/webhooks\/order\.paid\/post and by \S+other\.yaml#/,
  );
});

openapi('a JSON document with one name twice is refused', async () => {
  const twice = file(
    'twice.json',
    '{ "openapi": "3.1.0", "webhooks": {\n "a": { "post": {} },\n "a": { "post": {} } } }',
  );
  const { code, stderr } = await runGateway(['openapi', twice]);
  assert.is(code, 1);
  assert.match(stderr, 'it names webhooks.a twice, in the lines 2 and 3');
});

openapi(
  'a file that is not there is refused, and a document without webhooks is an empty answer',
  async () => {
    const missing = await runGateway(['openapi', join(folder, 'none.yaml')]);
    assert.is(missing.code, 1);
    assert.match(missing.stderr, 'none.yaml: it cannot be read: there is no such file or folder');
    const { code, stdout, stderr } = await runGateway([
      'openapi',
      file('empty.yaml', 'openapi: 3.1.0\npaths: {}\n'),
    ]);
    assert.equal([code, stdout], [0, '{}\n']);
    assert.match(stderr, 'There are no webhooks, x-webhooks or callbacks in');
  },
);

openapi('a reference to another host is refused, and nothing is fetched', async () => {
  let requests = 0;
  const server = http.createServer((_, response) => {
    requests++;
    response.end('A: { type: string }');
  });
  const url = `http://127.0.0.1:${await loopback(server)}/schemas.yaml`;
  const refersTo = (name: string, ref: string) =>
    file(
      name,
      `openapi: 3.1.0\nwebhooks: { a: { post: { requestBody: { content: { application/json: { schema: { $ref: "${ref}" } } } } } } }`,
    );
  try {
    const { code, stderr } = await runGateway(['openapi', refersTo('remote.yaml', `${url}#/A`)]);
    assert.is(code, 1);
    assert.match(stderr, `it refers to ${url}, and no URL is read\nfix:   download it`);
    file('between.yaml', `A: { $ref: "${url}#/A" }`);
    const second = await runGateway(['openapi', refersTo('far.yaml', 'between.yaml#/A')]);
    assert.is(second.code, 1);
    assert.match(second.stderr, `far.yaml: unable to resolve $ref pointer "${url}"`);
    assert.is(requests, 0);
  } finally {
    server.close();
  }
});

openapi('--output writes the file and leaves standard output empty', async () => {
  const path = join(folder, 'types.json');
  const { code, stdout, stderr } = await runGateway(['openapi', bank, '--output', path]);
  assert.equal([code, stdout], [0, '']);
  assert.match(stderr, `Wrote 3 event types to ${path}.`);
  assert.is(Object.keys(JSON.parse(readFileSync(path, 'utf8')) as object).length, 3);
});

openapi(
  'with a project they are imported: created, then unchanged, then updated where something changed',
  async () => {
    const db = await migratedDatabase();
    try {
      const config = { database: connectionOf(db.url) };
      const projectId = await makeProject(db);
      const run = (...args: string[]) =>
        runGateway(['openapi', ...args, '--project-id', projectId], { config });
      const first = await run(shop, bank);
      assert.is(first.code, 0, first.stderr);
      assert.match(first.stdout, /^RESULT +EVENT TYPE\ncreated +order\.paid\n/);
      assert.match(first.stdout, '8 created, 0 updated, 0 unchanged');
      const rows = () =>
        db.rows<{
          name: string;
          description: string;
          json_schema: object;
          deprecated_at: Date | null;
        }>(`select * from event_types order by name collate "C"`);
      const before = await rows();
      assert.equal(
        before.map((it) => [it.name, it.json_schema]),
        Object.entries(types)
          .map(([name, { schema }]) => [name, schema] as const)
          .sort(([a], [b]) => (a < b ? -1 : 1)),
      );
      const [paid, , third, ping] = Object.keys(types).map((name) =>
        before.find((it) => it.name === name),
      );
      assert.equal(
        [ping?.description, third?.deprecated_at !== null, paid?.deprecated_at],
        ['Are you there?', true, null],
      );
      assert.match((await run(shop, bank)).stdout, '0 created, 0 updated, 8 unchanged');
      assert.equal(await rows(), before);

      const changed = file(
        'changed.yaml',
        'openapi: 3.1.0\nwebhooks:\n  ping: { post: { summary: Still there?, deprecated: true } }\n',
      );
      assert.equal(JSON.parse((await run(changed, '--json')).stdout), [
        { name: 'ping', result: 'updated' },
      ]);
      const now = (await rows()).find(({ name }) => name === 'ping');
      assert.equal([now?.description, now?.deprecated_at !== null], ['Still there?', true]);

      // A server bounds what it takes at once; the command has no bound in its own process.
      const content = { 'application/json': { schema: {}, example: 'x'.repeat(2_100_000) } };
      const webhooks = { large: { post: { requestBody: { content } } } };
      const large = file('large.json', JSON.stringify({ openapi: '3.1.0', webhooks }));
      assert.match((await run(large)).stdout, '1 created');

      const { code, stderr } = await runGateway(['openapi', bank, '--project-id', newId()], {
        config,
      });
      assert.is(code, 1);
      assert.match(stderr, /^error: project \S+ not found/);
    } finally {
      await db.close();
    }
  },
);

openapi('without a document, or with a project that is no id, it is wrong use', async () => {
  assert.is((await runGateway(['openapi'])).code, 2);
  const { code, stderr } = await runGateway(['openapi', shop, '--project-id', 'shop']);
  assert.is(code, 2);
  assert.match(stderr, '--project-id must be an id, not "shop"');
});

openapi.run();
