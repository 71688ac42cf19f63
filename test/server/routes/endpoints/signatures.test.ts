import { createPublicKey } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealer } from '#core/crypto/sealing';
import { findEndpoint } from '#store/config/endpoints';
import { resealSecrets } from '#store/config/secrets';
import { ENCRYPTION_KEY } from '../../../agent/records.js';
import { until } from '../../../support/until.js';
import { makeProject, mistakes, startApi, type Api } from '../../api.js';

const endpoints = suite('server/routes/endpoints/signatures');

let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
endpoints.before(async () => {
  api = await startApi({ file: { encryption_key: ENCRYPTION_KEY } });
  project = await makeProject(api);
});
endpoints.after(() => api.close());

const url = 'https://example.com/hooks';
const create = (fields: object) =>
  api.call('POST', `${project.path}/endpoints`, { name: 'shop', url, ...fields });
const put = (uid: string, fields: object) =>
  api.call('PUT', `${project.path}/endpoints/${uid}`, fields);
const stored = async (uid: string) => (await findEndpoint(api.db.knex, project.id, uid))!;
const keySet = (uid: string) =>
  api.call('GET', `${project.path}/endpoints/${uid}/jwks.json`, undefined, { key: null });

interface Jwk {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  readonly x: string;
  readonly kid: string;
}
const keysOf = async (uid: string): Promise<Jwk[]> =>
  (JSON.parse((await keySet(uid)).text) as { keys: Jwk[] }).keys;

endpoints('an endpoint has a key once a signature needs one, and no answer shows it', async () => {
  const made = await create({});
  assert.equal(made.body.data.signatures, null);
  const { uid, secrets } = made.body.data;
  assert.is(secrets[0].public_key, null);

  const keyed = await put(uid, { signatures: ['hmac', 'rfc9421-ed25519'] });
  assert.is(keyed.status, 200, keyed.text);
  const [shown] = keyed.body.data.secrets;
  assert.match(shown.public_key, /^whpk_[\w+/]{43}=$/);
  assert.is(shown.uid, secrets[0].uid);
  const again = await put(uid, { signatures: ['ed25519'] });
  assert.is(again.body.data.secrets[0].public_key, shown.public_key);
  const [record] = (await stored(uid)).secrets;
  assert.match(record!.ed25519!.private_key, /^sealed:/);
  assert.not.match(keyed.text, 'private_key');
  assert.not.match(keyed.text, 'sealed:');
});

endpoints('its key set is public, and has both keys while they overlap', async () => {
  const made = await create({ signatures: ['ed25519'] });
  const { uid } = made.body.data;
  const [first] = await until('its key', () => keysOf(uid));
  assert.is(
    `whpk_${createPublicKey({ key: { ...first! }, format: 'jwk' })
      .export({ format: 'der', type: 'spki' })
      .subarray(-32)
      .toString('base64')}`,
    made.body.data.secrets[0].public_key,
  );
  const { headers, status } = await keySet(uid);
  assert.is(status, 200);
  assert.is(headers.get('cache-control'), 'public, max-age=300');

  const rotated = await api.call('PUT', `${project.path}/endpoints/${uid}/expire_secret`, {});
  assert.is(rotated.body.data.secrets.length, 2);
  const both = await until('both keys', async () => {
    const keys = await keysOf(uid);
    return keys.length === 2 && keys;
  });
  assert.equal(both[1], first);
  assert.equal(
    both.map(({ kid }) => kid),
    rotated.body.data.secrets.map((it: { uid: string }) => it.uid),
  );
  const other = await keySet(project.id);
  assert.is(other.status, 404);
  const plain = await create({});
  const none = await until('an endpoint without a key', async () => {
    const { status: found, text } = await keySet(plain.body.data.uid);
    return found === 200 && text;
  });
  assert.is(none, '{"keys":[]}');
});

endpoints('headers are sealed and masked, and kept while the origin stays', async () => {
  const made = await create({ headers: [{ name: 'X-Tenant', value: 'north' }] });
  assert.is(made.status, 201, made.text);
  const { uid } = made.body.data;
  const masked = [{ name: 'x-tenant', value: '********' }];
  assert.equal(made.body.data.headers, masked);
  const plain = async () => {
    const { open } = sealer(ENCRYPTION_KEY);
    const { headers } = await stored(uid);
    return headers?.map(({ name, value }) => [name, open(value, ['endpoints', uid, 'headers'])]);
  };
  assert.equal(await plain(), [['x-tenant', 'north']]);
  await put(uid, { headers: [...masked, { name: 'x-more', value: '1' }] });
  assert.equal(await plain(), [
    ['x-tenant', 'north'],
    ['x-more', '1'],
  ]);
  const moved = mistakes(await put(uid, { url: 'https://evil.example.com' }));
  assert.match(
    moved[0]!,
    /^headers\.0\.value is not sent to another origin than https:\/\/example/,
  );
  const fresh = [{ name: 'x-tenant', value: 'south' }];
  const there = await put(uid, { url: 'https://shop.example.com', headers: fresh });
  assert.is(there.status, 200, there.text);
  assert.equal(await plain(), [['x-tenant', 'south']]);
  assert.is((await put(uid, { headers: [] })).body.data.headers, null);
});

endpoints('headers that others set are refused, and so are mistakes', async () => {
  const refused = async (name: string, value?: string, fields: object = {}) =>
    mistakes(await create({ headers: [{ name, value }], ...fields }))[0];
  const taken = 'headers.0.name is a header that the gateway or the connection sets';
  for (const name of ['Host', 'webhook-id', 'content-type', 'traceparent', 'Signature-Input'])
    assert.is(await refused(name, 'x'), taken, name);
  assert.is(await refused('svix-id', 'x', { signature_prefix: 'svix' }), taken);
  assert.match((await refused('authorization', 'x'))!, 'use that field');
  assert.match((await refused('a b', 'x'))!, 'must be the name of a header');
  assert.match((await refused('x-a', 'a\nb'))!, 'HTTP cannot carry');
  assert.match((await refused('x-a', '********'))!, 'none is stored');
  const key = { type: 'api_key', api_key: { header_name: 'X-Key', header_value: 'k' } };
  assert.match((await refused('x-key', 'x', { authentication: key }))!, 'there twice');
  const signatures = await create({ signatures: ['md5'], signature_prefix: 'X_' });
  assert.is(signatures.status, 422);
  assert.is(mistakes(signatures).length, 2);
});

endpoints(
  'a header with parts of the message is a template, also after it is resealed',
  async () => {
    const value = 'of {{ message.key }}';
    const { uid } = (await create({ headers: [{ name: 'x-key', value }] })).body.data;
    assert.is((await stored(uid)).headers![0]!.is_template, true);
    await put(uid, { headers: [{ name: 'x-key', value: '********' }] });
    assert.is((await stored(uid)).headers![0]!.is_template, true);
    const batch = { max_events: 10, max_bytes: 10_000, max_wait_ms: 100 };
    const batched = await put(uid, { batch });
    assert.match(mistakes(batched)[0]!, /^batch cannot be combined with headers that hold/);
    for (const wrong of ['{{ data.id }}', '{{ message.secret }}', '{{ message.key'])
      assert.match(
        mistakes(await create({ headers: [{ name: 'x-key', value: wrong }] }))[0]!,
        /^headers\.0\.value holds \{\{/,
      );
  },
);

endpoints('another encryption key opens keys and headers after they are resealed', async () => {
  const made = await create({
    signatures: ['ed25519'],
    headers: [{ name: 'x-tenant', value: 'north' }],
  });
  const { uid } = made.body.data;
  const to = sealer(Buffer.alloc(32, 7).toString('base64'));
  await resealSecrets(api.db.knex, {
    from: sealer(ENCRYPTION_KEY),
    to,
    connectionSchema: () => undefined,
    dryRun: false,
    dataPlanes: [],
  });
  const { headers, secrets } = await stored(uid);
  assert.is(to.open(headers![0]!.value, ['endpoints', uid, 'headers']), 'north');
  assert.ok(to.open(secrets[0]!.ed25519!.private_key, ['endpoints', uid, 'secrets']));
});

endpoints.run();
