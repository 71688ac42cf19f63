import http from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import avro from '@gateway/codec-avro';
import { guardedCodec } from '#core/plugins/guarded-codec';
import { sourceGuard } from '#core/http/ssrf-guard';
import type { ActivatedPlugins } from '#core/plugins/activation';
import { updateSource } from '#store/config/sources';
import type { CodecPlugin } from '@gateway/plugin';
import { migratedDatabase } from '../../store/migrated.js';
import { until, within } from '../../support/until.js';
import { Broker, type Queue } from '../memory-source.js';
import { makeSource } from '../records.js';
import { pluginsOf, runAgent } from '../running.js';

const codecs = suite('agent/sources/codecs');
const db = await migratedDatabase();
codecs.after(() => db.close());

const SCHEMA = {
  type: 'record',
  name: 'Message',
  fields: [
    { name: 'event_type', type: 'string' },
    { name: 'data', type: { type: 'map', values: 'long' } },
  ],
};

/** `{ event_type: 'a', data: { n } }` with schema 1. */
function encoded(n: number, schema = 1): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(schema, 1);
  return Buffer.concat([head, Buffer.from([2, 97, 2, 2, 110, n * 2, 0])]);
}

async function scene(
  test: (scene: {
    readonly broker: Queue;
    readonly registry: { isAway: boolean; readonly asked: string[] };
    readonly running: Awaited<ReturnType<typeof runAgent>>;
    readonly sourceId: string;
  }) => Promise<void>,
): Promise<void> {
  const registry = { isAway: false, asked: [] as string[] };
  const server = http.createServer((request, response) => {
    registry.asked.push(request.url!);
    if (registry.isAway) return void response.writeHead(503).end('away');
    const isKnown = request.url === '/schemas/ids/1';
    const body = isKnown
      ? { schema: JSON.stringify(SCHEMA) }
      : { error_code: 40403, message: 'Schema not found' };
    response.writeHead(isKnown ? 200 : 404).end(JSON.stringify(body));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as { port: number };
  const broker = new Broker();
  const installed = { name: 'avro', package: '@gateway/codec-avro' } as never;
  const guard = sourceGuard(['127.0.0.0/8']);
  const codec = guardedCodec(avro as unknown as CodecPlugin, installed, { guard });
  const active = { manifest: {} as never, connectionSchema: {}, settings: {} };
  const plugins: ActivatedPlugins = {
    ...pluginsOf(broker.plugins()),
    codecs: new Map([['avro', { ...active, load: () => Promise.resolve(codec) }]]),
  };
  const running = await runAgent({ db, plugins });
  try {
    const { id, pub_sub } = await makeSource(db, running.projectId, { queue: 'q' });
    const settings = { registry: { url: `http://127.0.0.1:${port}`, framing: 'confluent' } };
    await updateSource(db.knex, running.projectId, id, {
      pub_sub: { ...pub_sub, codec: { type: 'avro', numbers: 'strings', ...settings } },
    });
    await running.configCache.refresh();
    running.wiring.start();
    await within(
      test({ broker: broker.queue('q'), registry, running, sourceId: id }),
      60_000,
      'the test',
    );
  } finally {
    await running.close();
    server.close();
    await db.rows('delete from sources');
  }
}

const stateOf = (running: Awaited<ReturnType<typeof runAgent>>) =>
  running.health.components.find(({ name }) => name.startsWith('source'));

codecs('messages are decoded, each schema is asked for once, and digits stay', () =>
  scene(async ({ broker, registry, running }) => {
    const outcomes = await Promise.all([1, 2, 3].map((n) => broker.send(encoded(n))));
    assert.equal(outcomes, ['accepted', 'accepted', 'accepted']);
    assert.equal(registry.asked, ['/schemas/ids/1']);
    const rows = await db.rows(
      `select data::text as data from events where project_id = '${running.projectId}' order by id`,
    );
    assert.equal(
      rows.map(({ data }) => data).sort(),
      ['1', '2', '3'].map((n) => `{"n":"${n}"}`),
    );
  }),
);

codecs('what cannot be decoded is quarantined with its schema, and asked for once', () =>
  scene(async ({ broker, registry, running }) => {
    const bad = [encoded(1, 7), encoded(2, 7), Buffer.from('{}')];
    const outcomes = await Promise.all(bad.map((bytes) => broker.send(bytes)));
    assert.equal(outcomes, ['quarantined', 'quarantined', 'quarantined']);
    assert.is(await broker.send(encoded(3)), 'accepted');
    assert.equal(registry.asked, ['/schemas/ids/7', '/schemas/ids/1']);
    const rows = await db.rows(
      `select code, reason from quarantined_messages where project_id = '${running.projectId}'`,
    );
    assert.equal(new Set(rows.map(({ code }) => code)), new Set(['undecodable']));
    const reasons = rows.map(({ reason }) => String(reason)).join('\n');
    assert.match(
      reasons,
      /The codec avro cannot decode the message\. The schema registry has no schema id 7\./,
    );
    assert.match(reasons, /with the bytes 7b7d/);
  }),
);

codecs('while the registry is away, messages wait in order, and health says why', () =>
  scene(async ({ broker, registry, running }) => {
    registry.isAway = true;
    const sent = [1, 2, 3].map((n) => broker.send(encoded(n)));
    await until('health to say so', () => stateOf(running)?.state === 'down');
    assert.match(
      stateOf(running)!.reason!,
      /The schema registry gives an unexpected answer \(503\)\..*Trying again/,
    );
    const count = () => db.rows(`select from events where project_id = '${running.projectId}'`);
    assert.is((await count()).length, 0);
    registry.isAway = false;
    assert.equal(await Promise.all(sent), ['accepted', 'accepted', 'accepted']);
    await until('health to recover', () => stateOf(running)?.state === 'ok');
  }),
);

codecs('a source that stops while the registry is away leaves its messages with the broker', () =>
  scene(async ({ broker, registry, running, sourceId }) => {
    registry.isAway = true;
    void broker.send(encoded(1));
    await until('health to say so', () => stateOf(running)?.state === 'down');
    await updateSource(db.knex, running.projectId, sourceId, { is_disabled: true });
    await until('the source to stop', () => broker.readers === 0);
    assert.is(broker.waiting, 1);
  }),
);

codecs.run();
