// deadline: 600 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { SCOPES } from '#server/api/resources';
import type { Schema } from '@gateway/server/openapi';
import { insertApiKey } from '#store/config/api-keys';
import { recordFailures } from '#store/counts/issues';
import { encodeValue } from '#store/kv/versions';
import { bootstrapUser } from '#store/people/users';
import { quarantineMessages } from '#store/quarantine/messages';
import { makeDelivery, makeEvents } from '../store/made.js';
import { startApi, type Answer, type Api, type CallOptions } from './api.js';
import { description } from './described.js';

/* Every operation of the API document, by every kind of credential of one tenant, on the resources
   of others: in their paths, in its own paths with their ids, and with their ids in the query and
   the body. None reads or changes anything of theirs. A new operation is in the matrix by itself;
   one with a new kind of resource or of id fails until `furnish` makes it. */
const tenants = suite('server/tenants');

/** A project, or what one owner of endpoints has in it. Its resources have its name in their texts. */
interface Tenant {
  readonly name: string;
  readonly organisation: string;
  readonly project: string;
  /** The id of a resource by its collection or by the name of the field that refers to it. */
  readonly ids: Readonly<Record<string, string>>;
}

let api: Api;
const all: Record<'mine' | 'rival' | 'sibling' | 'stranger', Tenant> = {} as never;
/** Credentials of the first tenant, and the tenants that they must not reach. */
const callers: [name: string, as: CallOptions, victims: (keyof typeof all)[]][] = [];
let strangers: CallOptions[];

async function made(
  path: string,
  body: unknown,
  key: string,
): Promise<{ uid: string } & Record<string, string>> {
  const answer = await api.call('POST', path, body, { key });
  assert.is(answer.status, 201, answer.text);
  return answer.body.data;
}

/** Makes one of each kind of resource. */
async function furnish(
  name: string,
  owner: { key: string; organisation: string; user: string },
  project: string,
): Promise<Tenant> {
  const path = `/projects/${project}`;
  const { key } = owner;
  const url = `https://${name}.example.com`;
  const ownerId = `owner-${newId()}`;
  const endpoint = (await made(`${path}/endpoints`, { name, url, owner_id: ownerId }, key)).uid;
  // Event types belong to the project, and every owner sees them.
  const ofProject = name === 'secret-rival' ? 'mine.rival' : name;
  const type = { name: `${ofProject}.paid`, description: ofProject };
  const subscriptionOf = (id: string) => ({
    name,
    endpoint_id: id,
    filter_config: { event_types: [type.name] },
  });
  const [subscription, source, eventType, apiKey, link, invitation] = await Promise.all([
    made(`${path}/subscriptions`, subscriptionOf(endpoint), key),
    made(
      `${path}/sources`,
      { name, type: 'http', body_function: `function transform() { return '${name}'; }` },
      key,
    ),
    made(`${path}/event-types`, type, key),
    made(`${path}/api-keys`, { name }, key),
    made(`${path}/portal-links`, { name, owner_id: ownerId }, key),
    made(
      `/organisations/${owner.organisation}/invitations`,
      { email: `${name}@example.com`, role: 'viewer' },
      key,
    ),
  ]);
  const events = {
    atMs: Date.now() - 60_000,
    eventType: type.name,
    data: JSON.stringify({ name }),
    sourceId: source.uid,
  };
  const [event] = (await makeEvents(api.db, project, [events])) as [string];
  const delivery = await makeDelivery(api.db, {
    projectId: project,
    eventId: event,
    endpointId: endpoint,
    status: 'failure',
  });
  const orderKey = newId();
  await api.db.rows(
    `insert into ordered_keys (project_id, endpoint_id, order_key, delivery_id, occurred_at, parked_at)
     select project_id, endpoint_id, $3, id, occurred_at, now() from event_deliveries where project_id = $1 and id = $2`,
    [project, delivery, orderKey],
  );
  const later = {
    ...{ event_type: type.name, data: { name }, owner_id: ownerId },
    deliver_at: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const scheduled = await made(`${path}/events/fanout`, later, key);
  const attempt = newId();
  await api.db.rows(
    `insert into delivery_attempts (project_id, event_delivery_id, id, occurred_at, requested_at, endpoint_id, duration_ms, number, error_class, error, url)
     select $1, $2, $3, occurred_at, now(), $4, 1, 1, 'timeout', $5, $5 from event_deliveries where project_id = $1 and id = $2`,
    [project, delivery, attempt, endpoint, name],
  );
  const quarantined = newId();
  const message = {
    projectId: project,
    id: quarantined,
    sourceId: source.uid,
    occurredAtMs: Date.now(),
    coordinates: 't/0/1',
  };
  const raw = Buffer.from(JSON.stringify({ name }));
  await quarantineMessages(api.db.pool, [
    { ...message, code: 'not_json', reason: name, headers: '{}', raw },
  ]);
  const issue = newId();
  const group = {
    projectId: project,
    endpointId: endpoint,
    kind: 'timeout',
    issueId: issue,
    failures: 4,
  };
  const times = { firstAtMs: Date.now() - 60_000, lastAtMs: Date.now() };
  await recordFailures(api.db.pool, [
    { ...group, ...times, deliveryId: delivery, httpStatus: null, error: name },
  ]);
  const until = {
    since_ms: Date.now(),
    until_ms: Date.now() + 3_600_000,
    forget_ms: Date.now() + 7_200_000,
  };
  const breaker = {
    project_id: project,
    state: 'open',
    requests: 9,
    failures: 9,
    trips: 1,
    ...until,
  };
  await api.kv
    .map('breakers')
    .change([{ field: endpoint, from: undefined, to: encodeValue('breaker', breaker) }]);
  const userKey = await insertApiKey(api.db.knex, { type: 'personal', name, userId: owner.user });
  const session = await insertApiKey(api.db.knex, {
    type: 'session',
    name,
    userId: owner.user,
    expiresAt: new Date(until.until_ms),
  });
  return {
    name,
    organisation: owner.organisation,
    project,
    ids: {
      ...{
        organisation_id: owner.organisation,
        organisationId: owner.organisation,
        project_id: project,
        orgID: owner.organisation,
        projectId: project,
      },
      ...{ endpoints: endpoint, endpoint_id: endpoint, endpointId: endpoint, resourceId: endpoint },
      ...{ owner_id: ownerId, ownerId },
      ...{ subscriptions: subscription.uid, subscription_id: subscription.uid },
      ...{ sources: source.uid, source_id: source.uid, sourceId: source.uid },
      ...{ events: event, event_id: event, eventId: event, after: event },
      ...{ eventdeliveries: delivery, ids: delivery, deliveryattempts: attempt },
      ...{ quarantine: quarantined, quarantine_id: quarantined, issues: issue },
      ...{ 'event-types': eventType.uid, 'ordered-keys': orderKey },
      ...{ 'scheduled-events': scheduled.uid },
      ...{ 'api-keys': apiKey.uid, 'portal-links': link.uid, invitations: invitation.uid },
      ...{ members: owner.user, actorId: owner.user, shards: 'default', projects: project },
      ...{ 'users/me/api-keys': userKey.id, 'users/me/sessions': session.id },
    },
  };
}

tenants.before(async () => {
  const unlimited = { api_rate_limit: 0, portal: { requests_per_second: 0 } };
  api = await startApi({
    file: { ...unlimited, server: { function_tests: 0, auth: { max_failures: 0 } } },
  });
  const { knex } = api.db;
  const person = async (name: string) => {
    const { user, organisation, api_key } = await bootstrapUser(knex, {
      email: `${name}@example.com`,
      firstName: name,
      lastName: name,
    });
    return { key: api_key.key, organisation: organisation.id, user: user.id };
  };
  const [own, other] = [await person('secret-own'), await person('secret-stranger')];
  await knex('users').update({ is_instance_admin: false });
  const project = async (name: string, { key, organisation }: typeof own) =>
    (await api.call('POST', '/projects', { name, organisation_id: organisation }, { key })).body
      .data as { uid: string; api_key: { key: string } };
  const [first, second, foreign] = [
    await project('mine', own),
    await project('secret-sibling', own),
    await project('secret-stranger', other),
  ];
  all.mine = await furnish('mine', own, first.uid);
  all.rival = await furnish('secret-rival', own, first.uid);
  all.sibling = await furnish('secret-sibling', own, second.uid);
  all.stranger = await furnish('secret-stranger', other, foreign.uid);
  const { project: projectId, organisation: organisationId } = all.mine;
  const expiresAt = new Date(Date.now() + 3_600_000);
  const keyOf = async (fields: Parameters<typeof insertApiKey>[1]) => ({
    key: (await insertApiKey(knex, fields)).key,
  });
  const ofProject = { type: 'project', name: 'k', organisationId, projectId } as const;
  const ofPerson = { type: 'personal', name: 'k', userId: own.user } as const;
  const link = {
    type: 'portal',
    name: 'k',
    organisationId,
    projectId,
    ownerId: all.mine.ids['owner_id']!,
    expiresAt,
  } as const;
  const session = await insertApiKey(knex, {
    type: 'session',
    name: 'k',
    userId: own.user,
    expiresAt,
  });
  const cookie = `gateway_session=${session.key}`;
  const shown = await api.call('GET', '/api/v1/auth/session', undefined, {
    key: null,
    headers: { cookie },
  });
  const headers = { cookie, 'x-csrf-token': shown.body.data.csrf_token as string };
  callers.push(
    ['a project key', await keyOf(ofProject), ['sibling', 'stranger']],
    [
      'a project key with scopes',
      await keyOf({ ...ofProject, scopes: SCOPES }),
      ['sibling', 'stranger'],
    ],
    ['a personal key', { key: own.key }, ['stranger']],
    ['a personal key with scopes', await keyOf({ ...ofPerson, scopes: SCOPES }), ['stranger']],
    ['a personal key with a role', await keyOf({ ...ofPerson, role: 'admin' }), ['stranger']],
    ['a session', { key: null, headers }, ['stranger']],
    ['a portal link that reads', await keyOf({ ...link, role: 'viewer' }), ['rival', 'stranger']],
    ['a portal link that manages', await keyOf({ ...link, role: 'member' }), ['rival', 'stranger']],
    ['nobody', { key: null }, ['stranger']],
  );
  strangers = [{ key: other.key }, { key: foreign.api_key.key }];
});
tenants.after(() => api.close());

interface Named {
  readonly name: string;
  readonly schema: Schema;
  readonly required: boolean;
  readonly in: string;
}

const IS_ID = /(_id|Id|ID|^ids|^after)$/;
/** Ids of services elsewhere. */
const ELSEWHERE = new Set(['client_id', 'access_key_id', 'external_id']);

function resolved(schema: Schema): Schema {
  const ref = schema['$ref'] as string | undefined;
  return ref === undefined
    ? schema
    : resolved((description.components.schemas as Record<string, Schema>)[ref.split('/').at(-1)!]!);
}

function idOf({ ids }: Tenant, name: string): string {
  const id = ids[name];
  if (id === undefined) throw new Error(`furnish() makes nothing for the id ${name}`);
  return id;
}

/** Returns a small valid value. Ids are those of `tenant`; of the optional ones, only `chosen`. */
function sampleOf(given: Schema, name: string, tenant: Tenant, chosen?: string): unknown {
  const schema = resolved(given);
  const type = [schema['type']].flat()[0] as string | undefined;
  if (IS_ID.test(name) && !ELSEWHERE.has(name) && type !== 'object')
    return type === 'array' ? [idOf(tenant, name)] : idOf(tenant, name);
  const words = schema['enum'] as unknown[] | undefined;
  if (words) return words[0];
  if (type === 'boolean') return true;
  if (type === 'integer' || type === 'number') return schema['minimum'] ?? 1;
  if (type === 'array') {
    const item = sampleOf((schema['items'] ?? {}) as Schema, '', tenant, chosen);
    return [item];
  }
  if (type === 'object') {
    const required = (schema['required'] ?? []) as string[];
    const members = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>);
    return Object.fromEntries(
      members
        .filter(([member]) => required.includes(member) || member === chosen)
        .map(([member, it]) => [member, sampleOf(it, member, tenant, chosen)]),
    );
  }
  if (/url$/.test(name)) return 'https://example.com/';
  if (name === 'startDate') return '2020-01-01';
  if (name === 'email') return 'somebody@example.net';
  if (name === 'function') return 'function transform(it) { return it; }';
  return 'x'.repeat(Math.max(3, (schema['minLength'] as number | undefined) ?? 0));
}

/** Returns the names of optional ids in a body. */
function optionalIds(given: Schema): string[] {
  const schema = resolved(given);
  const required = (schema['required'] ?? []) as string[];
  const members = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>);
  return members.flatMap(([name, it]) => {
    const inner = resolved((resolved(it)['items'] ?? it) as Schema);
    const own = IS_ID.test(name) && !ELSEWHERE.has(name) && !required.includes(name) ? [name] : [];
    return [...own, ...(inner['type'] === 'object' ? optionalIds(inner) : [])];
  });
}

/** Fills the parameters of a path from `outer` and, for the resource itself, from `inner`. */
function filled(path: string, outer: Tenant, inner: Tenant): string {
  const rest = path.replace(
    /^\/(projects\/\{project_id\}|organisations\/\{organisation_id\})(?=\/|$)/,
    '',
  );
  const prefix = path
    .slice(0, path.length - rest.length)
    .replace('{project_id}', outer.project)
    .replace('{organisation_id}', outer.organisation);
  const parts = rest.split('/').slice(1);
  const collections = parts.map((_, k) => parts.slice(0, k).filter((it) => !it.startsWith('{')));
  return (
    '/api/v1' +
    [
      prefix,
      ...parts.map((part, k) => {
        if (!part.startsWith('{')) return part;
        const of = collections[k]!;
        return idOf(inner, of[0] === 'users' ? of.join('/') : of.at(-1)!);
      }),
    ].join('/')
  );
}

/** Requests that end the credential that the others need. */
const ENDING = new Set(['POST /auth/logout']);

interface Attempt {
  readonly path: string;
  readonly body: unknown;
  /** The statuses that are right if the resource of the path is the victim's; else undefined. */
  readonly refused: readonly number[] | undefined;
}

function attempts(method: string, path: string, mine: Tenant, victim: Tenant): Attempt[] {
  const operation = description.paths[path]![method]! as unknown as {
    parameters?: readonly Named[];
    requestBody?: { content: Record<string, { schema: Schema }> };
  };
  const query = (operation.parameters ?? []).filter((it) => it.in === 'query');
  const schema = operation.requestBody?.content['application/json']?.schema;
  const text = (chosen?: string) => {
    const given = query.filter((it) => it.required || it.name === chosen);
    const pairs = given.map((it) => [
      it.name,
      String([sampleOf(it.schema, it.name, victim)].flat()[0]),
    ]);
    return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`;
  };
  const body = (chosen?: string) => schema && sampleOf(schema, '', victim, chosen);
  const inQuery = query
    .filter(({ name, required }) => IS_ID.test(name) && !required)
    .map(({ name }) => name);
  const inBody = schema ? optionalIds(schema) : [];
  const variants = (at: string, refused?: readonly number[]): Attempt[] => [
    { path: at + text(), body: body(), refused },
    ...inQuery.map((name) => ({ path: at + text(name), body: body(), refused })),
    ...inBody.map((name) => ({ path: at + text(), body: body(name), refused })),
  ];
  const isOfTenant = /\{(project|organisation)_id\}/.test(path);
  const hasOwn = path.replace(/^\/(projects|organisations)\/\{\w+\}/, '').includes('{');
  const hasRequired =
    victim.ids['endpoint_id'] && JSON.stringify(body() ?? '').includes(victim.ids['endpoint_id']);
  const isShared = victim.project === mine.project && path.includes('/event-types');
  const isOther = !isShared && !path.startsWith('/shards');
  const namesThem = hasRequired || inQuery.length + inBody.length > 0;
  return [
    ...(isOfTenant && victim.project !== mine.project
      ? variants(filled(path, victim, victim), [401, 403, 404])
      : []),
    ...(hasOwn
      ? variants(filled(path, mine, victim), isOther ? [401, 403, 404, 409, 422, 429] : undefined)
      : []),
    ...(namesThem || !isOfTenant || (method === 'get' && !hasOwn)
      ? variants(filled(path, mine, mine), undefined)
      : []),
  ];
}

/** Returns a digest of each table's rows that mention the victims. */
async function rowsOf(victims: readonly Tenant[]): Promise<Record<string, string>> {
  const tables = await api.db.rows<{ name: string }>(
    `select table_name as name from information_schema.tables
     where table_schema = current_schema() and table_type = 'BASE TABLE' and table_name !~ '_default$|_p?\\d+$|^gateway_'`,
  );
  const ids = victims
    .flatMap((it) => Object.values(it.ids))
    .filter((it) => /^[0-9a-f-]{36}$/.test(it));
  const own = new Set(Object.values(all.mine.ids));
  const pattern = [...new Set(ids)].filter((it) => !own.has(it)).join('|');
  const digests = tables.map(
    ({ name }) =>
      `select '${name}' as name, string_agg(it, chr(10) order by it) as rows
       from (select (to_jsonb(r) - 'last_used_at')::text as it from ${name} r) _ where it ~ $1`,
  );
  const rows = await api.db.rows<{ name: string; rows: string }>(digests.join(' union all '), [
    pattern,
  ]);
  const { entries } = await api.kv
    .map('breakers')
    .some(victims.map((it) => it.ids['endpoint_id']!));
  return {
    ...Object.fromEntries(rows.map(({ name, rows: text }) => [name, text])),
    breakers: [...entries].join('\n'),
  };
}

tenants(
  'no operation reads or changes anything of another tenant, whatever the credential',
  async () => {
    const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => [method, path] as const),
    );
    assert.ok(operations.length > 120, `${operations.length} operations`);
    // The project may change what is the rival's, its portal links may not.
    const groups = [
      { isPortal: true, victims: [all.rival, all.sibling, all.stranger] },
      { isPortal: false, victims: [all.sibling, all.stranger] },
    ];
    const unchanged = await rowsOf(groups[1]!.victims);
    const whole = await rowsOf(groups[0]!.victims);
    assert.ok(Object.values(whole).filter(Boolean).length > 15, 'tables with rows of the victims');
    let [asked, refused] = [0, 0];
    for (const [method, path] of operations) {
      const name = `${method.toUpperCase()} ${path}`;
      if (ENDING.has(name)) continue;
      const isOpen = path.startsWith('/auth/') && path !== '/auth/session';
      const before = asked;
      for (const { isPortal, victims } of groups) {
        const by = isOpen ? callers.slice(-1) : callers;
        const requests = by
          .filter(([caller]) => caller.includes('portal') === isPortal)
          .flatMap(([caller, as, of]) =>
            of.flatMap((victim) =>
              attempts(method, path, all.mine, all[victim]).map((it) => ({
                ...{ caller, as, victim },
                ...it,
              })),
            ),
          );
        if (requests.length === 0) continue;
        const rows = method === 'get' ? undefined : await rowsOf(victims);
        const answers = await Promise.all(
          requests.map(async (it): Promise<[typeof it, Answer]> => [
            it,
            await api.call(method.toUpperCase(), it.path, it.body, it.as),
          ]),
        );
        for (const [{ caller, victim, path: at, refused: right, body }, answer] of answers) {
          const { status, text } = answer;
          const what = `${name} by ${caller}, ${at} ${JSON.stringify(body) ?? ''}: ${status} ${text.slice(0, 300)}`;
          assert.ok(status < 500, what);
          assert.not.match(text, all[victim].name, what);
          if (caller === 'nobody' && !isOpen) assert.is(status, 401, what);
          if (right) assert.ok(right.includes(status), what);
          asked++;
          if (status >= 400) refused++;
        }
        if (!rows) continue;
        for (const [table, now] of Object.entries(await rowsOf(victims)))
          assert.is(now, rows[table], `${name}: ${table}`);
      }
      assert.ok(asked > before, `${name} is not tried`);
    }
    const { sibling, stranger } = all;
    assert.equal(await rowsOf([sibling, stranger]), unchanged, 'reads changed nothing');
    assert.ok(asked > 1_500 && refused > 1_000, `${asked} requests, ${refused} refused`);
  },
);

tenants('the tenants themselves see what the others do not', async () => {
  let seen = 0;
  for (const path of Object.keys(description.paths)) {
    if (!description.paths[path]!['get'] || /\/(shards|instance)/.test(path)) continue;
    const [own] = attempts('get', path, all.stranger, all.stranger);
    const at = own?.path ?? filled(path, all.stranger, all.stranger);
    const answers = await Promise.all(strangers.map((as) => api.call('GET', at, undefined, as)));
    if (answers.some(({ text }) => text.includes(all.stranger.name))) seen++;
  }
  assert.ok(seen >= 30, `${seen} operations show the name of the tenant`);
});

tenants.run();
