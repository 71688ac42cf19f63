import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { accessOf, pathOf, type Route } from '#server/api/route';
import { LINK_SCOPES } from '#server/auth/access';
import { routes } from '@gateway/server/routes';
import { insertApiKey, type Role } from '#store/config/api-keys';
import { insertMember } from '#store/people/organisations';
import { insertUser } from '#store/people/users';
import { makeProject, startApi, type Api } from '../api.js';

/* No key can grant more than it has: tests each route that grants access, with a key that has
   only the route's scope. */
const grants = suite('server/auth/grants');
let api: Api;
let place: Record<string, string>;

grants.before(async () => {
  api = await startApi({ file: { api_rate_limit: 0, limits: { organisations_per_user: 100 } } });
  const { path } = await makeProject(api);
  const member = await insertUser(api.db.knex, {
    email: 'viewer@example.com',
    first_name: '',
    last_name: '',
    passwordHash: '',
  });
  await insertMember(api.db.knex, {
    organisationId: api.owner.organisation.id,
    userId: member.id,
    role: 'viewer',
  });
  const created = async (at: string, body: object) =>
    (await api.call('POST', at, body)).body.data.uid as string;
  place = {
    '/projects/:project_id': path,
    '/organisations/:organisation_id': `/organisations/${api.owner.organisation.id}`,
    '/members/:user_id': `/members/${member.id}`,
    '/users/me/api-keys/:id': `/users/me/api-keys/${await created('/api/v1/users/me/api-keys', { name: 'x', scopes: ['users:read'] })}`,
    '/portal-links/:id': `/portal-links/${await created(`${path}/portal-links`, { name: 'x', owner_id: 'acme' })}`,
    '/api-keys/:id': `/api-keys/${await created(`${path}/api-keys`, { name: 'x' })}`,
  };
});
grants.after(() => api.close());

/** Body fields that grant access, and response fields that contain it. */
const GIVES = ['role', 'scopes', 'can_manage_endpoint', 'password'];
const CARRIES = ['key', 'token', 'api_key'];

const fieldsOf = (schema: unknown) =>
  Object.keys((schema as { properties?: object } | undefined)?.properties ?? {});

function givesAccess({ method, reach, body, data }: Route): boolean {
  return (
    method !== 'get' &&
    reach !== 'open' &&
    (fieldsOf(body).some((it) => GIVES.includes(it)) ||
      fieldsOf(data).some((it) => CARRIES.includes(it)))
  );
}

/** A request per route for more than the key has. */
const ASKED: Readonly<Record<string, object>> = {
  'post /organisations/:organisation_id/invitations': { email: 'new@example.com', role: 'owner' },
  'put /organisations/:organisation_id/members/:user_id': { role: 'owner' },
  'put /users/me/password': { current_password: 'x', password: 'a long enough word' },
  'post /users/me/api-keys': { name: 'x' },
  'put /users/me/api-keys/:id': { scopes: null },
  'post /projects/:project_id/api-keys': { name: 'x' },
  'put /projects/:project_id/api-keys/:id': { scopes: ['events:write'] },
  'post /projects/:project_id/portal-links': { name: 'x', owner_id: 'acme' },
  'put /projects/:project_id/portal-links/:id': { can_manage_endpoint: true },
  'post /projects/:project_id/portal-links/:id/refresh_token': {},
  // Its key gets the caller's scopes: tested in server/routes/people/api-keys.
  'post /projects': { name: 'x' },
};

async function by(
  scopes: readonly string[] | null,
  role: Role | null,
  route: Route,
  body = ASKED[`${route.method} ${pathOf(route)}`],
) {
  const { key } = await insertApiKey(api.db.knex, {
    type: 'personal',
    name: 'narrow',
    userId: api.owner.user.id,
    scopes,
    role,
  });
  const path = Object.entries(place).reduce(
    (text, [name, value]) => text.replace(name, value),
    pathOf(route),
  );
  return api.call(route.method.toUpperCase(), `/api/v1${path}`, body, { key });
}

grants('each route that gives access refuses a key that has no more than its scope', async () => {
  const giving = routes.filter(givesAccess);
  assert.equal(giving.map((it) => `${it.method} ${pathOf(it)}`).sort(), Object.keys(ASKED).sort());
  for (const route of giving.filter((it) => pathOf(it) !== '/projects')) {
    const narrow = await by([accessOf(route).scope], null, route);
    const what = `${route.method} ${pathOf(route)}`;
    assert.equal([narrow.status, narrow.body.code], [403, 'forbidden'], `${what}: ${narrow.text}`);
    assert.match(narrow.body.message, /^.* has the scopes .* and cannot grant /);
    const whole = await by(null, null, route);
    assert.ok(whole.status < 300 || /current_password/.test(whole.text), `${what}: ${whole.text}`);
  }
});

grants('a key gives people no higher role than its own, and takes roles away', async () => {
  const route = (method: string, end: string) =>
    routes.find((it) => it.method === method && it.reach === 'organisation' && it.path === end)!;
  const [invite, change] = [route('post', '/invitations'), route('put', '/members/:user_id')];
  const weak = [
    await by(null, 'admin', invite),
    await by(null, 'admin', change, { role: 'owner' }),
  ];
  for (const { status, text } of weak) assert.is(status, 403, text);
  assert.is((await by(['members:write'], null, change, { role: 'viewer' })).status, 200);
});

grants('a key gives a portal link that the scopes of the link allow', async () => {
  const create = routes.find((it) => it.method === 'post' && it.path === '/portal-links')!;
  for (const [role, portal] of [
    ['viewer', ['any']],
    ['member', ['any', 'managing']],
  ] as const) {
    const used = routes
      .filter((it) => portal.includes(it.portal as never) && it.path !== '/portal')
      .map((it) => accessOf(it).scope);
    const needed = new Set(
      used.filter(
        (scope) => !used.includes(scope.replace(/:read$/, ':write')) || scope.endsWith(':write'),
      ),
    );
    assert.equal([...LINK_SCOPES[role]], [...needed].sort(), role);
    const body = { name: 'x', owner_id: 'acme', can_manage_endpoint: role === 'member' };
    assert.is(
      (await by([...LINK_SCOPES[role], 'portalLinks:write'], null, create, body)).status,
      201,
      role,
    );
    if (role === 'member')
      assert.is(
        (await by([...LINK_SCOPES.viewer, 'portalLinks:write'], null, create, body)).status,
        403,
      );
  }
});

grants.run();
