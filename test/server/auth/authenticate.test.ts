import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newApiKey } from '#core/crypto/api-keys';
import { pathOf } from '#server/api/route';
import { routes } from '@gateway/server/routes';
import { bootstrapUser } from '#store/people/users';
import { makeProject, startApi, type Api } from '../api.js';

const authenticate = suite('server/auth/authenticate');

let api: Api;
authenticate.before(async () => {
  api = await startApi({
    file: { server: { http: { port: 0, bind: '127.0.0.1' }, auth: { max_failures: 0 } } },
  });
});
authenticate.after(() => api.close());

authenticate(
  'every route of the API refuses a request without a good key, with a sentence for each way',
  async () => {
    const cases: [header: string | undefined, sentence: RegExp][] = [
      [undefined, /no API key/],
      ['Basic b3duZXI6cGFzcw==', /not of the form Bearer/],
      ['Bearer', /not of the form Bearer/],
      ['Bearer secret', /contains no API key of this gateway/],
      [`Bearer ${newApiKey().key}`, /is unknown/],
      [`Bearer ${api.owner.api_key.key.slice(0, -4)}AAAA`, /is unknown/],
    ];
    const nobody = '00000000-0000-7000-8000-000000000000';
    assert.ok(routes.length > 40, `${routes.length} routes`);
    for (const route of routes.filter(({ reach }) => reach !== 'open')) {
      const { method } = route;
      const path = `/api/v1${pathOf(route)}`.replace(/:\w+/g, nobody);
      for (const [authorization, sentence] of cases) {
        const { status, body, headers } = await api.call(method.toUpperCase(), path, undefined, {
          key: null,
          headers: authorization ? { authorization } : {},
        });
        assert.is(status, 401, `${method} ${path} ${authorization}`);
        assert.match(body.message, sentence);
        assert.equal([body.status, body.data, body.code], [false, null, 'unauthorized']);
        assert.ok(body.fix);
        assert.is(headers.get('www-authenticate'), 'Bearer');
      }
    }
  },
);

authenticate('an expired key is told apart', async () => {
  const { key } = await makeProject(api);
  await api.db.rows(`update api_keys set expires_at = now() where mask = $1`, [key.slice(3, 19)]);
  const { status, body } = await api.call('GET', '/projects', undefined, { key });
  assert.is(status, 401);
  assert.match(body.message, 'expired');
  assert.not.match(body.message, key);
});

authenticate(
  'a project key reaches its project and no other, and nothing above projects',
  async () => {
    const mine = await makeProject(api);
    const other = await makeProject(api);
    const get = async (path: string) =>
      (await api.call('GET', path, undefined, { key: mine.key })).status;
    assert.is(await get(mine.path), 200);
    assert.is(await get(`${mine.path}/endpoints`), 200);
    assert.is(await get(other.path), 403);
    assert.is(await get(`${other.path}/events`), 403);
    const listed = await api.call('GET', '/projects', undefined, { key: mine.key });
    const uids = (listed.body.data.content as { uid: string }[]).map(({ uid }) => uid);
    assert.equal(uids, [mine.id]);
    assert.is(await get('/organisations'), 403);
    assert.is((await api.call('POST', '/projects', { name: 'x' }, { key: mine.key })).status, 403);
  },
);

authenticate('a project of another organisation does not exist for a personal key', async () => {
  const { path } = await makeProject(api);
  const stranger = await bootstrapUser(api.db.knex, {
    email: 'stranger@example.com',
    firstName: 's',
    lastName: 't',
  });
  const key = stranger.api_key.key;
  for (const [method, target, body] of [
    ['GET', path, undefined],
    ['PUT', path, { name: 'mine now' }],
    ['DELETE', path, undefined],
    ['GET', `${path}/endpoints`, undefined],
  ] as const) {
    assert.is((await api.call(method, target, body, { key })).status, 404, `${method} ${target}`);
  }
  assert.equal((await api.call('GET', '/projects', undefined, { key })).body.data.content, []);
});

authenticate('the organisations of the user of the key are listed', async () => {
  const { body } = await api.call('GET', '/organisations');
  assert.is(body.data.content.length, 1);
  assert.equal(
    [body.data.content[0].uid, body.data.content[0].name],
    [api.owner.organisation.id, 'Default Organisation'],
  );
});

authenticate.run();
