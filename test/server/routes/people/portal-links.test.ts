import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { deleteEndedKeys } from '#store/config/api-keys';
import { makeProject, mistakes, startApi, type Api } from '../../api.js';

const links = suite('server/routes/people/portal-links');
let api: Api;

links.before(async () => {
  api = await startApi({
    file: {
      host: 'https://hooks.example.com',
      limits: { portal_links_per_project: 3, endpoints_per_owner: 2, subscriptions_per_owner: 1 },
      portal: { requests_per_second: 4 },
    },
  });
});
links.after(() => api.close());

const acme = { name: 'Acme', owner_id: 'acme' };

links(
  'a link is created with its url this once, opens the portal of its owner, and is listed without its token',
  async () => {
    const { path, id, key: backend } = await makeProject(api);
    const created = await api.call(
      'POST',
      `${path}/portal-links`,
      { ...acme, auth_type: 'static_token' },
      { key: backend },
    );
    assert.is(created.status, 201);
    const { uid, token, url, mask, expires_at: expiresAt } = created.body.data;
    assert.is(url, `https://hooks.example.com/portal/${id}#token=${token}`);
    assert.ok(Math.abs(new Date(expiresAt).getTime() - Date.now() - 86_400_000) < 60_000);
    const portal = await api.call('GET', `${path}/portal`, undefined, { key: token });
    assert.equal(portal.body.data, {
      project_id: id,
      ...acme,
      can_manage_endpoint: false,
      expires_at: expiresAt,
    });
    await api.call('POST', `${path}/portal-links`, { ...acme, owner_id: 'globex' });
    const listed = await api.call('GET', `${path}/portal-links?ownerId=acme`);
    assert.equal(
      listed.body.data.content.map((it: { uid: string; mask: string }) => [it.uid, it.mask]),
      [[uid, mask]],
    );
    assert.not.match(listed.text, token);
    assert.is((await api.call('GET', `${path}/api-keys`)).body.data.content.length, 1);
    assert.is((await api.call('GET', `${path}/portal`)).status, 404);
  },
);

links(
  'a refresh gives another token, and the one before ends; a revoked link has no more of them',
  async () => {
    const { path } = await makeProject(api);
    const { uid, token } = (await api.call('POST', `${path}/portal-links`, acme)).body.data;
    const status = async (key: string) =>
      (await api.call('GET', `${path}/portal`, undefined, { key })).status;
    const refreshed = await api.call('POST', `${path}/portal-links/${uid}/refresh_token`, {
      expires_at: '2099-01-01T00:00:00Z',
    });
    assert.equal(mistakes(refreshed), ['expires_at must be within a year']);
    assert.is(await status(token), 200);
    const { token: fresh } = (
      await api.call('POST', `${path}/portal-links/${uid}/refresh_token`, {})
    ).body.data;
    assert.equal([await status(token), await status(fresh)], [401, 200]);
    assert.ok((await api.call('PUT', `${path}/portal-links/${uid}/revoke`)).body.data.revoked_at);
    assert.is(await status(fresh), 401);
    assert.is(
      (await api.call('POST', `${path}/portal-links/${uid}/refresh_token`, {})).status,
      404,
    );
    await api.db.rows(`update api_keys set revoked_at = now() - interval '8 days' where id = $1`, [
      uid,
    ]);
    await deleteEndedKeys(api.db.pool);
    assert.is((await api.call('GET', `${path}/portal-links/${uid}`)).status, 404);
  },
);

links('whether a link manages endpoints is changed at once, and the audit log has it', async () => {
  const { path } = await makeProject(api);
  const { uid, token } = (await api.call('POST', `${path}/portal-links`, acme)).body.data;
  const create = () =>
    api.call(
      'POST',
      `${path}/endpoints`,
      { name: 'x', url: 'https://example.com' },
      { key: token },
    );
  assert.is((await create()).status, 403);
  const changed = await api.call('PUT', `${path}/portal-links/${uid}`, {
    can_manage_endpoint: true,
  });
  assert.is(changed.body.data.can_manage_endpoint, true);
  assert.is((await create()).status, 201);
  const log = await api.call('GET', `/organisations/${api.owner.organisation.id}/audit-log`);
  const [made, managed, linked] = log.body.data.content;
  assert.equal([made.action, made.actor.type, made.actor.id], ['endpoints.create', 'portal', uid]);
  assert.equal(
    [managed.action, managed.changes],
    ['portalLinks.update', { can_manage_endpoint: { before: false, after: true } }],
  );
  assert.is(linked.action, 'portalLinks.create');
  assert.not.match(log.text, token);
});

links(
  'a link neither shows nor sets the function of a subscription, and leaves it as it is',
  async () => {
    const { path } = await makeProject(api);
    const { token: key } = (
      await api.call('POST', `${path}/portal-links`, { ...acme, can_manage_endpoint: true })
    ).body.data;
    const endpoint = (
      await api.call('POST', `${path}/endpoints`, {
        name: 'x',
        url: 'https://example.com',
        owner_id: 'acme',
      })
    ).body.data.uid;
    const text = 'function transform({ id }) { return { id }; }';
    const { uid } = (
      await api.call('POST', `${path}/subscriptions`, {
        name: 's',
        endpoint_id: endpoint,
        function: text,
      })
    ).body.data;
    const at = `${path}/subscriptions/${uid}`;
    assert.is((await api.call('GET', at, undefined, { key })).body.data.function, null);
    for (const given of [null, 'function transform() { return {}; }'])
      assert.equal(mistakes(await api.call('PUT', at, { function: given }, { key })), [
        'function is set by the project and not allowed over a portal link: omit it',
      ]);
    assert.is((await api.call('PUT', at, { name: 'renamed' }, { key })).status, 200);
    assert.is((await api.call('GET', at)).body.data.function, text);
  },
);

links(
  'a project has so many valid links, and an owner so many endpoints and subscriptions over them',
  async () => {
    const { path } = await makeProject(api);
    const link = () =>
      api.call('POST', `${path}/portal-links`, { ...acme, can_manage_endpoint: true });
    const { token: key, uid } = (await link()).body.data;
    await link();
    await api.call('PUT', `${path}/portal-links/${(await link()).body.data.uid}/revoke`);
    await link();
    const full = await link();
    assert.equal([full.status, full.body.code], [422, 'project_full']);
    assert.match(
      full.body.message,
      'the project has 3 portal links, and limits.portal_links_per_project allows no more',
    );
    const create = (options: { key?: string }) =>
      api.call(
        'POST',
        `${path}/endpoints`,
        { name: 'x', url: 'https://example.com', owner_id: 'acme' },
        options,
      );
    const { uid: endpoint } = (await create({ key })).body.data;
    await create({ key });
    const many = await create({ key });
    assert.equal(
      [many.status, many.body.code, many.body.message],
      [422, 'project_full', 'Unprocessable Entity'],
    );
    assert.is((await create({})).status, 201);
    const { token } = (await api.call('POST', `${path}/portal-links/${uid}/refresh_token`, {})).body
      .data;
    const subscribe = () =>
      api.call(
        'POST',
        `${path}/subscriptions`,
        { name: 's', endpoint_id: endpoint },
        { key: token },
      );
    assert.is((await subscribe()).status, 201);
    assert.is((await subscribe()).body.code, 'project_full');
  },
);

links('a link that makes too many requests waits, and its project does not', async () => {
  const { path } = await makeProject(api);
  const { token } = (await api.call('POST', `${path}/portal-links`, acme)).body.data;
  const answers = await Promise.all(
    Array.from({ length: 40 }, () => api.call('GET', `${path}/portal`, undefined, { key: token })),
  );
  const refused = answers.find(({ status }) => status === 429);
  assert.is(refused?.body.code, 'too_many_portal_requests');
  assert.ok(refused?.headers.get('retry-after'));
  assert.is((await api.call('GET', path)).status, 200);
});

links('the links of another project are not there', async () => {
  const [one, other] = [await makeProject(api), await makeProject(api)];
  const { uid } = (await api.call('POST', `${one.path}/portal-links`, acme)).body.data;
  for (const [method, rest, body] of [
    ['GET', ''],
    ['PUT', '', { name: 'x' }],
    ['PUT', '/revoke'],
    ['POST', '/refresh_token', {}],
  ] as const)
    assert.is(
      (await api.call(method, `${other.path}/portal-links/${uid}${rest}`, body)).status,
      404,
      `${method} ${rest}`,
    );
});

links.run();
