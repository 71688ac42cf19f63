import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeProject, mistakes, startApi, type Api } from '../../api.js';

const apiKeys = suite('server/routes/people/api-keys');
let api: Api;

apiKeys.before(async () => {
  api = await startApi({ file: { limits: { api_keys_per_project: 4 } } });
});
apiKeys.after(() => api.close());

apiKeys(
  'a key is created, works, is listed without its secret, and works no more once it is revoked',
  async () => {
    const { path } = await makeProject(api);
    const { status, body } = await api.call('POST', `${path}/api-keys`, { name: 'ci' });
    assert.is(status, 201);
    const { key, uid, mask } = body.data;
    assert.match(key, /^gw_/);
    assert.ok(key.startsWith(mask.slice(0, -1)));
    assert.is((await api.call('GET', path, undefined, { key })).status, 200);
    const listed = await api.call('GET', `${path}/api-keys`);
    assert.equal(
      listed.body.data.content.map((it: { name: string; revoked_at: string | null }) => [
        it.name,
        it.revoked_at,
      ]),
      [
        ['ci', null],
        ["orders's key", null],
      ],
    );
    assert.not.match(listed.text, key);
    const revoked = await api.call('DELETE', `${path}/api-keys/${uid}`);
    assert.ok(revoked.body.data.revoked_at);
    const refused = await api.call('GET', path, undefined, { key });
    assert.is(refused.status, 401);
    assert.match(refused.body.message, 'was revoked');
    assert.is(
      (await api.call('DELETE', `${path}/api-keys/${uid}`)).body.data.revoked_at,
      revoked.body.data.revoked_at,
    );
  },
);

apiKeys('a key expires', async () => {
  const { path } = await makeProject(api);
  const soon = new Date(Date.now() + 700).toISOString();
  const { key } = (await api.call('POST', `${path}/api-keys`, { name: 'short', expires_at: soon }))
    .body.data;
  assert.is((await api.call('GET', path, undefined, { key })).status, 200);
  await new Promise((resolve) => setTimeout(resolve, 800));
  const refused = await api.call('GET', path, undefined, { key });
  assert.equal([refused.status, /has expired/.test(refused.body.message)], [401, true]);
  for (const [expires_at, mistake] of [
    ['2020-01-01T00:00:00Z', 'must be in the future'],
    ['2027-99-01T00:00:00Z', 'must be in the future'],
    ['tomorrow', 'must be a time like 2027-01-31T09:00:00Z'],
  ])
    assert.equal(mistakes(await api.call('POST', `${path}/api-keys`, { name: 'x', expires_at })), [
      `expires_at ${mistake}`,
    ]);
});

apiKeys(
  'the key of a project makes and revokes none, and those of another project are not there',
  async () => {
    const [one, other] = [await makeProject(api), await makeProject(api)];
    const { uid } = (await api.call('GET', `${one.path}/api-keys`)).body.data.content[0];
    const { key } = one;
    assert.is((await api.call('POST', `${one.path}/api-keys`, { name: 'x' }, { key })).status, 403);
    assert.is(
      (await api.call('DELETE', `${one.path}/api-keys/${uid}`, undefined, { key })).status,
      403,
    );
    assert.is((await api.call('DELETE', `${other.path}/api-keys/${uid}`)).status, 404);
    assert.is((await api.call('GET', one.path, undefined, { key })).status, 200);
  },
);

apiKeys('scopes are given, shown, changed at once and written to the audit log', async () => {
  const { path, id } = await makeProject(api);
  const { key, uid, scopes } = (
    await api.call('POST', `${path}/api-keys`, { name: 'ci', scopes: ['events:write'] })
  ).body.data;
  assert.equal(scopes, ['events:write']);
  const may = async (it: string) =>
    (await api.call('GET', `${path}/${it}`, undefined, { key })).status;
  assert.equal([await may('events'), await may('endpoints')], [200, 403]);
  const changed = await api.call('PUT', `${path}/api-keys/${uid}`, {
    name: 'deploys',
    role: 'viewer',
    scopes: ['endpoints:read'],
  });
  const of = ({ body }: typeof changed) => [body.data.name, body.data.role, body.data.scopes];
  const expected = ['deploys', 'viewer', ['endpoints:read']];
  assert.equal(
    [of(changed), of(await api.call('GET', `${path}/api-keys/${uid}`))],
    [expected, expected],
  );
  assert.equal([await may('events'), await may('endpoints')], [403, 200]);
  const [entry] = await api.db.rows<{ action: string; changes: object }>(
    'select action, changes from audit_log where project_id = $1 order by id desc limit 1',
    [id],
  );
  assert.equal(entry, {
    action: 'apiKeys.update',
    changes: {
      name: { before: 'ci', after: 'deploys' },
      role: { before: null, after: 'viewer' },
      scopes: { before: ['events:write'], after: ['endpoints:read'] },
    },
  });
  assert.is(
    (await api.call('PUT', `${path}/api-keys/${uid}`, { scopes: null, role: null })).body.data
      .scopes,
    null,
  );
  assert.equal(
    [await may('events'), await may('endpoints'), await may('sources')],
    [200, 200, 200],
  );
  const [wrong] = mistakes(
    await api.call('POST', `${path}/api-keys`, { name: 'x', scopes: ['deliveries:read'] }),
  );
  assert.match(String(wrong), /^scopes\.0 must be one of .*eventDeliveries:read/);
  assert.equal(mistakes(await api.call('POST', `${path}/api-keys`, { name: 'x', scopes: [] })), [
    'scopes must not be empty',
  ]);
  assert.is(
    (await api.call('PUT', `${(await makeProject(api)).path}/api-keys/${uid}`, { name: 'x' }))
      .status,
    404,
  );
});

apiKeys('a personal key with scopes gives no key more than it has itself', async () => {
  const mine = '/api/v1/users/me/api-keys';
  const create = async (fields: object) =>
    (await api.call('POST', mine, { name: 'scoped', ...fields })).body.data;
  const own = ['users:write', 'projects:write', 'apiKeys:write', 'events:write'];
  const { key, uid } = await create({ scopes: own });
  const by = (method: string, path: string, body: object) => api.call(method, path, body, { key });
  assert.equal(
    (await by('POST', mine, { name: 'less', scopes: ['events:read'] })).body.data.scopes,
    ['events:read'],
  );
  const { uid: wide } = await create({ role: 'viewer' });
  const { path } = await makeProject(api);
  for (const [method, place, body] of [
    ['POST', mine, { name: 'all' }],
    ['POST', mine, { name: 'more', scopes: ['events:read', 'sources:read'] }],
    ['PUT', `${mine}/${uid}`, { scopes: null }],
    ['PUT', `${mine}/${wide}`, { role: 'admin' }],
    ['POST', `${path}/api-keys`, { name: 'all' }],
  ] as const) {
    const { status, body: answer } = await by(method, place, body);
    assert.equal(
      [status, answer.code],
      [403, 'forbidden'],
      `${method} ${place} ${JSON.stringify(body)}: ${answer.message}`,
    );
    assert.match(answer.message, own.join(', '));
  }
  const { uid: project, api_key: first } = (await by('POST', '/projects', { name: 'made' })).body
    .data;
  const refused = await api.call('GET', `/projects/${project}/sources`, undefined, {
    key: first.key,
  });
  assert.is(refused.body.code, 'scope_missing', 'the first key of a project that it creates');
});

apiKeys('a project has so many valid keys; revoked and expired ones do not count', async () => {
  const { path, id } = await makeProject(api);
  const create = () => api.call('POST', `${path}/api-keys`, { name: 'x' });
  for (let n = 0; n < 3; n++) assert.is((await create()).status, 201);
  const full = await create();
  assert.equal([full.status, full.body.code], [422, 'project_full']);
  assert.match(
    full.body.message,
    'the project has 4 API keys, and limits.api_keys_per_project allows no more',
  );
  const [first, second] = (await api.call('GET', `${path}/api-keys`)).body.data.content;
  await api.call('DELETE', `${path}/api-keys/${first.uid}`);
  await api.db.rows(`update api_keys set expires_at = now() - interval '1 second' where id = $1`, [
    second.uid,
  ]);
  assert.equal(
    [(await create()).status, (await create()).status, (await create()).status],
    [201, 201, 422],
  );
  assert.is((await api.db.rows('select from api_keys where project_id = $1', [id])).length, 6);
});

apiKeys.run();
