import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findSource } from '#store/config/sources';
import { makeProject, mistakes, sourceOf, startApi } from '../../api.js';

const codecs = suite('server/routes/sources/codec');

const registry = http.createServer(({ headers }, response) => {
  const isKnown = headers.authorization === `Basic ${btoa('ada:hunter2')}`;
  response.writeHead(isKnown ? 200 : 401).end('["AVRO"]');
});
await new Promise<void>((listening) => registry.listen(0, '127.0.0.1', listening));
const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`;

const broker = sourceOf({ type: 'object', properties: {} }, () => Promise.resolve(undefined));
const api = await startApi({
  file: { server: { connection_tests: 0 }, source: { allowed_networks: ['127.0.0.0/8'] } },
  sources: { broker },
});
const project = await makeProject(api);
codecs.after(async () => {
  await api.close();
  registry.close();
});

const codec = (registry: object) => ({ type: 'avro', registry: { url, ...registry } });
const create = (codec: unknown) =>
  api.call('POST', `${project.path}/sources`, {
    name: 'orders',
    type: 'pub_sub',
    pub_sub: { type: 'broker', broker: {} },
    codec,
  });

codecs(
  'a codec is checked, its secrets are sealed and masked, and kept when they are masked',
  async () => {
    const created = await create(codec({ username: 'ada', password: 'hunter2' }));
    assert.is(created.status, 201, JSON.stringify(created.body));
    const { uid, codec: shown } = created.body.data;
    assert.equal(shown, codec({ username: 'ada', password: shown.registry.password }));
    assert.not.match(JSON.stringify(created.body), /hunter2|sealed:/);
    const stored = await findSource(api.db.knex, project.id, uid);
    assert.match(JSON.stringify(stored!.pub_sub.codec), /"password":"sealed:v2:/);

    const path = `${project.path}/sources/${uid}`;
    const changed = await api.call('PUT', path, { codec: { ...shown, unions: 'tagged' } });
    assert.is(changed.status, 200, JSON.stringify(changed.body));
    assert.is(changed.body.data.codec.unions, 'tagged');
    const renamed = await api.call('PUT', path, { forward_headers: ['x-a'] });
    assert.is(renamed.body.data.codec.unions, 'tagged');

    const moved = { ...shown, registry: { ...shown.registry, url: 'http://127.0.0.1:1' } };
    const refused = await api.call('PUT', path, { codec: moved });
    assert.is(refused.status, 422);
    assert.match(JSON.stringify(mistakes(refused)), /is not sent to another address/);

    const removed = await api.call('PUT', path, { codec: null });
    assert.is(removed.body.data.codec, null);
  },
);

codecs('a registry that refuses, an unknown codec and an unknown setting are refused', async () => {
  const wrong = await create(codec({ username: 'ada', password: 'wrong' }));
  assert.is(wrong.status, 422);
  assert.match(wrong.body.message, /refuses the credentials \(401\)/);
  assert.match(JSON.stringify(await create({ type: 'avroo' })), /did you mean avro/i);
  assert.match(JSON.stringify(await create({ ...codec({}), colour: 1 })), /codec\.colour/);
});

codecs('the codecs of the gateway are listed with their settings', async () => {
  const { body } = await api.call('GET', `${project.path}/sources/codecs`);
  assert.equal(
    body.data.content.map(({ name }: { name: string }) => name),
    ['avro', 'cloudevents', 'json-schema', 'protobuf'],
  );
});

codecs.run();
