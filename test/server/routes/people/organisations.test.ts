import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { insertApiKey, type Role } from '#store/config/api-keys';
import { insertMember } from '#store/people/organisations';
import { insertUser } from '#store/people/users';
import { makeProject, startApi, type Api } from '../../api.js';

const organisations = suite('server/routes/people/organisations');
let api: Api;
let path: string;

organisations.before(async () => {
  api = await startApi({});
  path = `/organisations/${api.owner.organisation.id}`;
});
organisations.after(() => api.close());

async function member(role: Role): Promise<{ id: string; key: string }> {
  const { knex } = api.db;
  const organisationId = api.owner.organisation.id;
  const { id } = await insertUser(knex, {
    email: `${role}-${Math.random()}@example.com`,
    first_name: '',
    last_name: '',
    passwordHash: '',
  });
  await insertMember(knex, { organisationId, userId: id, role });
  return { id, key: (await insertApiKey(knex, { type: 'personal', name: role, userId: id })).key };
}

organisations(
  'an organisation is created, renamed and deleted by its owner, but not while projects belong to it',
  async () => {
    const made = await api.call('POST', '/organisations', { name: 'Acme' });
    assert.is(made.status, 201);
    const own = `/organisations/${made.body.data.uid}`;
    assert.is(made.headers.get('location'), `/api/v1${own}`);
    assert.equal((await api.call('GET', own)).body.data.role, 'owner');
    assert.is((await api.call('PUT', own, { name: 'Acme Ltd' })).body.data.name, 'Acme Ltd');
    await api.call('POST', '/projects', { name: 'orders', organisation_id: made.body.data.uid });
    const refused = await api.call('DELETE', own);
    assert.equal([refused.status, refused.body.fix], [409, 'delete its projects first']);
    const empty = (await api.call('POST', '/organisations', { name: 'Empty' })).body.data.uid;
    assert.is((await api.call('DELETE', `/organisations/${empty}`)).status, 200);
    assert.is((await api.call('GET', `/organisations/${empty}`)).status, 404);
  },
);

organisations(
  'what happens in one organisation of a person is not in the audit log of another',
  async () => {
    const { uid } = (await api.call('POST', '/organisations', { name: 'Apart' })).body.data;
    await api.call('POST', '/projects', { name: 'hidden from others', organisation_id: uid });
    const log = async (id: string) =>
      (await api.call('GET', `/organisations/${id}/audit-log`)).body.data.content;
    const actions = (entries: { action: string }[]) => entries.map(({ action }) => action);
    assert.equal(actions(await log(uid)), ['projects.create', 'organisations.create']);
    assert.not.match(
      JSON.stringify(await log(api.owner.organisation.id)),
      /hidden from others|Apart/,
    );
  },
);

organisations('a changed role counts from the next request on', async () => {
  const { id, key } = await member('viewer');
  const create = () =>
    api.call(
      'POST',
      '/projects',
      { name: 'x', organisation_id: api.owner.organisation.id },
      { key },
    );
  assert.is((await create()).status, 403);
  const changed = await api.call('PUT', `${path}/members/${id}`, { role: 'admin' });
  assert.is(changed.body.data.role, 'admin');
  assert.is((await create()).status, 201);
  assert.is((await api.call('DELETE', `${path}/members/${id}`)).status, 200);
  assert.is((await create()).status, 404, 'no member any more');
});

organisations('only an owner makes and changes owners, and the last one stays', async () => {
  const admin = await member('admin');
  const by = (key: string) => (role: string, id: string) =>
    api.call('PUT', `${path}/members/${id}`, { role }, { key });
  const { id: ownerId } = api.owner.user;
  assert.is((await by(admin.key)('owner', admin.id)).status, 403);
  assert.is((await by(admin.key)('viewer', ownerId)).status, 403);
  assert.is(
    (await api.call('DELETE', `${path}/members/${ownerId}`, undefined, { key: admin.key })).status,
    403,
  );
  const last = await api.call('PUT', `${path}/members/${ownerId}`, { role: 'admin' });
  assert.equal([last.status, last.body.fix], [409, 'make another member an owner first']);
  const second = await member('owner');
  const both = await Promise.all([
    api.call('DELETE', `${path}/members/${second.id}`),
    api.call('PUT', `${path}/members/${ownerId}`, { role: 'viewer' }, { key: second.key }),
  ]);
  assert.ok(
    both.every(({ status }) => status < 500),
    both.map(({ text }) => text).join(),
  );
  assert.ok(
    both.some(({ status }) => status === 409) ||
      both.some(({ status }) => status === 404 || status === 403),
    'one owner stays',
  );
  const { content } = (await api.call('GET', `${path}/members`, undefined, { key: admin.key })).body
    .data;
  assert.ok(content.some((it: { role: string }) => it.role === 'owner'));
});

organisations(
  'the audit log tells who changed what, with the values before and after, and no secret',
  async () => {
    const audited = await startApi({});
    try {
      const { path: project } = await makeProject(audited);
      const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
      const endpoint = await audited.call('POST', `${project}/endpoints`, {
        name: 'shop',
        url: 'https://example.com/a',
        secret,
      });
      const own = `${project}/endpoints/${endpoint.body.data.uid}`;
      await audited.call('PUT', own, {
        url: 'https://example.com/b',
        authentication: { type: 'bearer', bearer: { token: 'sesame-sesame' } },
      });
      await audited.call('PUT', own, { url: '' });
      await audited.call('POST', `${project}/api-keys`, { name: 'ci' });
      await audited.call('POST', '/api/v1/users/me/api-keys', { name: 'mine' });
      await audited.call('POST', `${project}/events`, { event_type: 'a', data: {} });
      await audited.call('DELETE', own);
      const log = await audited.call(
        'GET',
        `/organisations/${audited.owner.organisation.id}/audit-log?sort=ASC`,
      );
      const entries = log.body.data.content;
      assert.equal(
        entries.map((it: { action: string }) => it.action),
        [
          'projects.create',
          'endpoints.create',
          'endpoints.update',
          'apiKeys.create',
          'users.createApiKey',
          'endpoints.delete',
        ],
      );
      const [, created, updated, , , deleted] = entries;
      assert.equal(updated.changes.url, {
        before: 'https://example.com/a',
        after: 'https://example.com/b',
      });
      assert.is(created.changes.name.after, 'shop');
      assert.is(deleted.changes.name.before, 'shop');
      assert.equal(
        [updated.actor.type, updated.actor.name, updated.resource_id],
        ['user', audited.owner.user.email, endpoint.body.data.uid],
      );
      assert.match(updated.address, /^(127\.0\.0\.1|::1)$/);
      for (const hidden of [secret, 'sesame-sesame'])
        assert.not.ok(log.text.includes(hidden), hidden);
      assert.not.match(log.text, /gw_[0-9a-f]{16}_[A-Za-z0-9_-]{43}/);
      const countOf = async (filter: string) =>
        (
          await audited.call(
            'GET',
            `/organisations/${audited.owner.organisation.id}/audit-log?${filter}`,
          )
        ).body.data.content.length;
      assert.is(await countOf('action=endpoints.update'), 1);
      assert.is(await countOf('action=endpoints.*'), 3);
      assert.is(await countOf('action=end.*'), 0);
      assert.is(await countOf(`resourceId=${endpoint.body.data.uid}`), 3);
    } finally {
      await audited.close();
    }
  },
);

organisations(
  'personal keys have a role at most, make none that may more, and tell when they were used',
  async () => {
    const reader = (
      await api.call('POST', '/api/v1/users/me/api-keys', { name: 'reader', role: 'viewer' })
    ).body.data;
    assert.is((await api.call('GET', '/projects', undefined, { key: reader.key })).status, 200);
    assert.is(
      (await api.call('POST', '/projects', { name: 'x' }, { key: reader.key })).status,
      403,
    );
    assert.is(
      (await api.call('POST', '/api/v1/users/me/api-keys', { name: 'x' }, { key: reader.key }))
        .status,
      403,
    );
    await api.call('DELETE', `/api/v1/users/me/api-keys/${reader.uid}`);
    assert.is((await api.call('GET', '/projects', undefined, { key: reader.key })).status, 401);
  },
);

organisations('organisations of a user and open invitations have a bound', async () => {
  const bounded = await startApi({
    file: { limits: { organisations_per_user: 2, invitations_per_organisation: 1 } },
  });
  try {
    const make = () => bounded.call('POST', '/organisations', { name: 'Acme' });
    assert.is((await make()).status, 201);
    const full = await make();
    assert.equal([full.status, /limits\.organisations_per_user/.test(full.body.fix!)], [409, true]);
    const invite = () =>
      bounded.call('POST', `/organisations/${bounded.owner.organisation.id}/invitations`, {
        email: 'a@example.com',
        role: 'viewer',
      });
    assert.is((await invite()).status, 201);
    const refused = await invite();
    assert.equal(
      [refused.status, /limits\.invitations_per_organisation/.test(refused.body.fix!)],
      [409, true],
    );
  } finally {
    await bounded.close();
  }
});

organisations.run();
