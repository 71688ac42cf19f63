import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { RESOURCES, SCOPES } from '#server/api/resources';
import { accessOf, pathOf, resourceOf, type Route } from '#server/api/route';
import { routes } from '@gateway/server/routes';
import { insertApiKey, revokeApiKey, ROLES, type Role } from '#store/config/api-keys';
import { insertMember } from '#store/people/organisations';
import { bootstrapUser, insertUser } from '#store/people/users';
import { makeProject, startApi, type Api } from '../api.js';

/* Tests every route with every kind of caller, of the organisation and of another one: denied
   unless `may` allows it. Allowed requests fail for another reason, because they have no body
   and made-up ids. */
const access = suite('server/auth/access');
let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
/** Keys by the name of their holder. */
const keys: Record<string, string> = {};

access.before(async () => {
  api = await startApi({
    file: {
      api_rate_limit: 0,
      portal: { requests_per_second: 0 },
      limits: { organisations_per_user: 1_000 },
    },
  });
  project = await makeProject(api);
  const { knex } = api.db;
  const organisationId = api.owner.organisation.id;
  for (const role of ROLES) {
    const user = await insertUser(knex, {
      email: `${role}@roles.example`,
      first_name: role,
      last_name: '',
      passwordHash: '',
    });
    await insertMember(knex, { organisationId, userId: user.id, role });
    keys[role] = (await insertApiKey(knex, { type: 'personal', name: role, userId: user.id })).key;
  }
  for (const role of ['viewer', 'member', 'admin'] as const) {
    const fields = { name: role, organisationId, role, projectId: project.id } as const;
    keys[`project ${role}`] = (await insertApiKey(knex, { type: 'project', ...fields })).key;
  }
  const { owner } = api;
  keys['weak owner'] = (
    await insertApiKey(knex, {
      type: 'personal',
      name: 'weak',
      userId: owner.user.id,
      role: 'viewer',
    })
  ).key;
  const link = {
    type: 'portal',
    name: 'acme',
    organisationId,
    projectId: project.id,
    ownerId: 'acme',
  } as const;
  const expiresAt = new Date(Date.now() + 3_600_000);
  keys['portal'] = (await insertApiKey(knex, { ...link, role: 'viewer', expiresAt })).key;
  keys['portal managing'] = (await insertApiKey(knex, { ...link, role: 'member', expiresAt })).key;
  keys['portal expired'] = (
    await insertApiKey(knex, { ...link, role: 'member', expiresAt: new Date(Date.now() - 1_000) })
  ).key;
  const { key, id } = await insertApiKey(knex, { ...link, role: 'member', expiresAt });
  await revokeApiKey(knex, { type: 'portal', project_id: project.id }, id);
  keys['portal revoked'] = key;
  keys['stranger'] = (
    await bootstrapUser(knex, { email: 'stranger@example.com', firstName: 's', lastName: 't' })
  ).api_key.key;
  await api.db.rows(
    `update users set is_instance_admin = false where email = 'stranger@example.com'`,
  );
  const foreign = await api.call(
    'POST',
    '/projects',
    { name: 'theirs' },
    { key: keys['stranger'] },
  );
  keys['stranger project'] = foreign.body.data.api_key.key;
  const { uid, organisation_id: organisation } = foreign.body.data;
  const stranger = {
    ...link,
    organisationId: organisation,
    projectId: uid,
    role: 'member',
    expiresAt,
  } as const;
  keys['stranger portal'] = (await insertApiKey(knex, stranger)).key;
});
access.after(() => api.close());

const rank = (role: Role) => ROLES.indexOf(role);

/**
 * Decides whether a caller can use a route: a second, handwritten definition that reveals mistakes
 * in the first.
 */
function may(holder: string, route: Route): boolean {
  const { role: needed, needsPerson, portal } = accessOf(route);
  if (route.role === 'instance') return false;
  // A key is limited to its role, even if its user is an owner.
  if (route.reach === 'account' && holder === 'weak owner') return rank('viewer') >= rank(needed);
  // A key lists its own project, here for one that can read at least.
  const isOwnList = route.method === 'get' && route.path === '/projects';
  if (isOwnList && /^(stranger )?project/.test(holder)) return !/expired|revoked/.test(holder);
  if (route.reach === 'account') return !/^(project|portal|stranger p)/.test(holder);
  if (holder.startsWith('stranger')) return false;
  if (holder === 'portal') return route.reach === 'project' && portal === 'any';
  if (holder === 'portal managing') return route.reach === 'project' && portal !== undefined;
  if (holder.startsWith('portal')) return false;
  const [, ofProject] = /^project (\w+)$/.exec(holder) ?? [];
  if (ofProject !== undefined)
    return route.reach === 'project' && !needsPerson && rank(ofProject as Role) >= rank(needed);
  return rank(holder === 'weak owner' ? 'viewer' : (holder as Role)) >= rank(needed);
}

/** Routes that delete what other requests need; tested only with denied callers. */
const FATAL = new Set([
  'delete /projects/:project_id',
  'delete /organisations/:organisation_id',
  'post /auth/logout',
]);

access(
  'each route, by each caller of the organisation and of another one, is denied unless its declaration allows it',
  async () => {
    assert.ok(routes.length > 60);
    let denied = 0;
    for (const route of routes.filter(({ reach }) => reach !== 'open')) {
      const place = pathOf(route);
      const path = filled(place);
      const answers = await Promise.all(
        Object.entries(keys).map(async ([holder, key]) => {
          const allowed = may(holder, route);
          if (allowed && FATAL.has(`${route.method} ${place}`)) return undefined;
          const { status, body } = await api.call(route.method.toUpperCase(), path, undefined, {
            key,
          });
          const isHidden = status === 404 && /^(project|organisation) /.test(body.message);
          return {
            holder,
            allowed,
            was: status !== 401 && status !== 403 && !isHidden,
            status,
            message: body.message,
          };
        }),
      );
      for (const answer of answers) {
        if (!answer) continue;
        const isOfBody = answer.allowed && answer.status === 403 && route.reach === 'account';
        assert.ok(
          isOfBody || answer.was === answer.allowed,
          `${route.method} ${place} by ${answer.holder}: ${answer.status} ${answer.message}`,
        );
        if (!answer.allowed) denied++;
      }
    }
    assert.ok(denied > 700, `${denied} denials`);
  },
);

/** The path of a route with made-up ids, in the project and the organisation. */
function filled(place: string): string {
  return `/api/v1${place}`
    .replace(':project_id', project.id)
    .replace(':organisation_id', api.owner.organisation.id)
    .replaceAll(/:\w+/g, () => newId());
}

function scoped(scopes: readonly string[], role: Role | null = null) {
  const { user } = api.owner;
  return insertApiKey(api.db.knex, {
    type: 'personal',
    name: 'scoped',
    userId: user.id,
    role,
    scopes,
  });
}

access(
  'each route, by a key with its scope alone, is allowed, and by a key with all other scopes it is denied',
  async () => {
    const made = new Map<string, ReturnType<typeof scoped>>();
    const keyWith = (name: string, scopes: readonly string[]) =>
      made.get(name) ?? made.set(name, scoped(scopes)).get(name)!;
    let [allowed, denied] = [0, 0];
    const check = async (route: Route) => {
      const place = pathOf(route);
      const { scope } = accessOf(route);
      const writing = scope.replace(/:read$/, ':write');
      const enough = SCOPES.filter((it) => it === scope || it === writing);
      const call = (key: string) =>
        api.call(route.method.toUpperCase(), filled(place), undefined, { key });
      for (const it of FATAL.has(`${route.method} ${place}`) ? [] : enough) {
        const { status, body } = await call((await keyWith(it, [it])).key);
        assert.is.not(
          body.code,
          'scope_missing',
          `${route.method} ${place} with ${it}: ${status} ${body.message}`,
        );
        allowed++;
      }
      const { key, mask } = await keyWith(
        `all but ${scope}`,
        SCOPES.filter((it) => !enough.includes(it)),
      );
      const { status, body } = await call(key);
      const expected = [
        403,
        'scope_missing',
        `this requires the scope ${scope}, which the API key gw_${mask}_… does not have`,
      ];
      assert.equal(
        [status, body.code, body.message],
        expected,
        `${route.method} ${place} without ${scope}`,
      );
      denied++;
    };
    await Promise.all(routes.filter(({ reach }) => reach !== 'open').map(check));
    assert.ok(allowed > 100 && denied > 90, `${allowed} allowed, ${denied} denied`);
  },
);

access('there is a scope for what routes of keys need, and none besides', () => {
  const ofKeys = routes.filter(
    ({ reach, path }) => reach !== 'open' && !/^\/(auth\/|portal$)/.test(path),
  );
  assert.equal(
    [...new Set(ofKeys.map((route) => accessOf(route).scope))].sort(),
    [...SCOPES].sort(),
  );
  for (const { reach, path } of routes) assert.ok(resourceOf({ reach, path }) in RESOURCES, path);
});

access('a scope adds nothing to a role, and keys of projects have scopes too', async () => {
  const weak = await scoped(SCOPES, 'viewer');
  const path = `/projects/${project.id}/endpoints`;
  const refused = await api.call('POST', path, {}, { key: weak.key });
  assert.equal([refused.status, refused.body.code], [403, 'forbidden']);
  const fields = {
    type: 'project',
    name: 'events',
    organisationId: api.owner.organisation.id,
    projectId: project.id,
  } as const;
  const { key } = await insertApiKey(api.db.knex, { ...fields, scopes: ['events:write'] });
  const event = { event_type: 'order.paid', data: {} };
  assert.is((await api.call('POST', `/projects/${project.id}/events`, event, { key })).status, 201);
  assert.is(
    (await api.call('GET', `/projects/${project.id}/events`, undefined, { key })).status,
    200,
  );
  assert.is((await api.call('GET', path, undefined, { key })).body.code, 'scope_missing');
});

access(
  'writes of configuration, keys and people need the roles that the documentation says',
  () => {
    const needed = (method: string, path: string) =>
      accessOf(routes.find((it) => it.method === method && pathOf(it) === path)!);
    const [p, o] = ['/projects/:project_id', '/organisations/:organisation_id'];
    for (const [method, path, role] of [
      ['get', `${p}/events/:id`, 'viewer'],
      ['post', `${p}/endpoints`, 'member'],
      ['put', `${p}/eventdeliveries/:id/resend`, 'member'],
      ['put', p, 'admin'],
      ['delete', p, 'admin'],
      ['post', `${p}/api-keys`, 'admin'],
      ['post', `${o}/invitations`, 'admin'],
      ['put', `${o}/members/:user_id`, 'admin'],
      ['get', `${o}/audit-log`, 'admin'],
      ['delete', o, 'owner'],
    ] as const)
      assert.is(needed(method, path).role, role, `${method} ${path}`);
  },
);

access.run();
