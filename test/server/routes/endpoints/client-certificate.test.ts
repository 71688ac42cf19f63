import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealer } from '#core/crypto/sealing';
import { findEndpoint } from '#store/config/endpoints';
import { resealSecrets } from '#store/config/secrets';
import { ENCRYPTION_KEY } from '../../../agent/records.js';
import { runAgent } from '../../../agent/running.js';
import { authority, type Authority } from '../../../support/authority.js';
import { issued, mutualEndpoint } from '../../../support/client-certificates.js';
import { until } from '../../../support/until.js';
import { makeProject, mistakes, startApi, type Api } from '../../api.js';

const endpoints = suite('server/routes/endpoints/client-certificate');

let api: Api;
let trusted: Authority;
let project: Awaited<ReturnType<typeof makeProject>>;
let shop: { client_cert: string; client_key: string };
endpoints.before(async () => {
  trusted = authority();
  api = await startApi({
    file: {
      encryption_key: ENCRYPTION_KEY,
      delivery: { allowed_networks: ['127.0.0.0/8'] },
      limits: { client_certificates_per_project: 3 },
    },
  });
  project = await makeProject(api);
  shop = pair('shop');
});
endpoints.after(async () => {
  await api.close();
  trusted.close();
});

const pair = (name: string, options?: { expired?: boolean }) => {
  const { cert: client_cert, key: client_key } = issued(trusted, name, options);
  return { client_cert, client_key };
};
const create = (fields: Record<string, unknown>, at = project) =>
  api.call('POST', `${at.path}/endpoints`, {
    name: 'shop',
    url: 'https://example.com/hooks',
    ...fields,
  });
const put = (uid: string, fields: object, at = project) =>
  api.call('PUT', `${at.path}/endpoints/${uid}`, fields);
const stored = async (uid: string, at = project) =>
  (await findEndpoint(api.db.knex, at.id, uid))!.mtls_client_cert;

endpoints('a certificate is shown with its end, its key is sealed and never shown', async () => {
  const made = await create({ mtls_client_cert: shop });
  assert.is(made.status, 201);
  const { uid, mtls_client_cert: shown } = made.body.data;
  assert.equal(shown, {
    client_cert: shop.client_cert.trim(),
    client_key: '********',
    expires_at: '2099-12-31T00:00:00.000Z',
  });
  const before = await stored(uid);
  assert.match(before!.client_key, /^sealed:v2:/);
  assert.is(
    sealer(ENCRYPTION_KEY).open(before!.client_key, ['endpoints', uid, 'mtls_client_cert']),
    shop.client_key,
  );
  assert.is(
    (await put(uid, { name: 'renamed', mtls_client_cert: shown })).status,
    200,
    'as it was shown',
  );
  assert.equal(await stored(uid), before);
  assert.is(
    (await put(uid, { mtls_client_cert: { client_cert: shop.client_cert } })).status,
    200,
    'the key stays',
  );
  const [{ text } = { text: '' }] = await api.db.rows<{ text: string }>(
    `select string_agg(changes::text, '') as text from audit_log where resource_id = $1`,
    [uid],
  );
  assert.not.match(text, /PRIVATE KEY|sealed:/);
  const to = sealer(Buffer.alloc(32, 9).toString('base64'));
  const counts = await resealSecrets(api.db.knex, {
    from: sealer(ENCRYPTION_KEY),
    to,
    connectionSchema: () => undefined,
    dataPlanes: [api.db.pool],
    dryRun: true,
  });
  assert.equal(
    counts.filter(({ kind }) => kind === 'endpoint client certificates'),
    [{ kind: 'endpoint client certificates', resealed: 1, already: 0 }],
  );
  assert.is((await put(uid, { mtls_client_cert: null })).body.data.mtls_client_cert, null);
});

endpoints('what cannot be used is refused with its field', async () => {
  const other = pair('other');
  for (const [fields, mistake] of [
    [
      { ...shop, client_key: other.client_key },
      'mtls_client_cert.client_key is not the key of the first certificate in client_cert',
    ],
    [
      { ...shop, client_cert: 'x' },
      'mtls_client_cert.client_cert holds no PEM certificate, which begins with -----BEGIN CERTIFICATE-----',
    ],
    [
      pair('old', { expired: true }),
      'mtls_client_cert.client_cert expired at 2020-01-02T00:00:00.000Z',
    ],
    [
      { client_cert: shop.client_cert },
      'mtls_client_cert.client_key is missing, and no key is stored',
    ],
    [
      { ...shop, client_cert: shop.client_cert.repeat(20) },
      'mtls_client_cert.client_cert must have at most 8192 characters',
    ],
  ] as const) {
    const answer = await create({ mtls_client_cert: fields });
    assert.equal([answer.status, mistakes(answer)], [422, [mistake]]);
    assert.not.match(answer.text, 'PRIVATE KEY-----\\n');
  }
  assert.equal(mistakes(await create({ url: 'http://example.com', mtls_client_cert: shop })), [
    'mtls_client_cert requires a url that begins with https://, because client certificates need TLS',
  ]);
});

endpoints('an endpoint that moves to another origin asks for the key again', async () => {
  const mine = await makeProject(api);
  const { uid, mtls_client_cert: shown } = (await create({ mtls_client_cert: shop }, mine)).body
    .data;
  for (const kept of [
    {},
    { mtls_client_cert: shown },
    { mtls_client_cert: { client_cert: shop.client_cert } },
  ])
    assert.equal(mistakes(await put(uid, { url: 'https://evil.example/hooks', ...kept }, mine)), [
      'mtls_client_cert.client_key is not used for another origin than https://example.com: url changes; give the key again, or null as mtls_client_cert to remove it',
    ]);
  assert.is((await put(uid, { url: 'https://example.com/other' }, mine)).status, 200);
  assert.match(
    mistakes(await put(uid, { url: 'http://example.com/other' }, mine)).join(),
    'because client certificates need TLS',
  );
  assert.is(
    (await put(uid, { url: 'https://new.example', mtls_client_cert: shop }, mine)).status,
    200,
  );
  assert.is(
    (await put(uid, { url: 'http://new.example', mtls_client_cert: null }, mine)).status,
    200,
  );
});

endpoints(
  'limits.client_certificates_per_project: no more are taken, and those that are there can be changed',
  async () => {
    const mine = await makeProject(api);
    const made = [];
    for (let n = 0; n < 3; n++)
      made.push((await create({ mtls_client_cert: shop }, mine)).body.data.uid);
    const full = await create({ mtls_client_cert: shop }, mine);
    assert.equal([full.status, full.body.code], [422, 'project_full']);
    assert.match(full.body.message, 'limits.client_certificates_per_project');
    const plain = (await create({}, mine)).body.data.uid;
    assert.is((await put(plain, { mtls_client_cert: shop }, mine)).status, 422);
    assert.is((await put(made[0], { mtls_client_cert: pair('renewed') }, mine)).status, 200);
  },
);

endpoints(
  'a test event reaches an endpoint that requires the certificate, and the next one shows a renewed certificate',
  async () => {
    const at = await mutualEndpoint(trusted, 'hooks');
    const mine = await makeProject(api);
    const settings = { delivery: { allowed_networks: ['127.0.0.0/8'], ca_file: trusted.file } };
    const agent = await runAgent({ db: api.db, kv: api.kv, projectId: mine.id, settings });
    try {
      const { uid } = (await create({ url: at.url, mtls_client_cert: shop }, mine)).body.data;
      agent.wiring.start();
      const test = async () => {
        await agent.configCache.refresh();
        const { event_delivery_id: id } = (
          await api.call('POST', `${mine.path}/endpoints/${uid}/test`, {})
        ).body.data;
        return until('the delivery', async () => {
          const { body } = await api.call('GET', `${mine.path}/eventdeliveries/${id}`);
          return body.data?.status === 'success' || body.data?.attempts > 0
            ? (body.data.status as string)
            : undefined;
        });
      };
      assert.is(await test(), 'success');
      await put(uid, { mtls_client_cert: pair('renewed-2') }, mine);
      assert.is(await test(), 'success');
      assert.equal(
        at.requests.map(({ client }) => client),
        ['shop', 'renewed-2'],
      );
    } finally {
      await agent.close();
      await at.close();
    }
  },
);

endpoints.run();
