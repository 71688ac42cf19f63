import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { pathOf } from '#server/api/route';
import { ownedBy } from '#server/auth/owned';
import { routes } from '@gateway/server/routes';
import { insertSubscription } from '#store/config/subscriptions';
import { makeDelivery, makeEvents } from '../../store/made.js';
import { makeProject, startApi, type Api } from '../api.js';

/* Access of a portal link to existing ids: of its owner, and of another owner in the same
   project. access.test.ts tests which routes it can use. */
const owned = suite('server/auth/owned');
let api: Api;
let path: string;

/** Ids of an owner's resources, by collection in the path. */
interface Things {
  readonly endpoints: string;
  readonly subscriptions: string;
  readonly eventdeliveries: string;
  readonly attempt: string;
}
let mine: Things;
let theirs: Things;
/** The token of the owner `acme`, which can manage its endpoints. */
let key: string;

owned.before(async () => {
  api = await startApi({
    file: { portal: { requests_per_second: 0 }, ingest: { inline_routing: false } },
  });
  const project = await makeProject(api);
  path = project.path;
  mine = await makeThings(project.id, 'acme');
  theirs = await makeThings(project.id, 'globex');
  key = await tokenOf('acme', true);
});
owned.after(() => api.close());

async function tokenOf(owner: string, managing: boolean): Promise<string> {
  const { body } = await api.call('POST', `${path}/portal-links`, {
    name: owner,
    owner_id: owner,
    can_manage_endpoint: managing,
  });
  return body.data.token;
}

async function makeThings(projectId: string, owner: string): Promise<Things> {
  const { body: made } = await api.call('POST', `${path}/endpoints`, {
    name: owner,
    owner_id: owner,
    url: 'https://example.com/hooks',
  });
  const endpointId: string = made.data.uid;
  const subscription = await insertSubscription(api.db.knex, projectId, {
    name: owner,
    endpoint_id: endpointId,
    event_types: ['*'],
    filter: null,
  });
  const [eventId] = (await makeEvents(api.db, projectId, [{ atMs: Date.now() }])) as [string];
  const id = await makeDelivery(api.db, {
    projectId,
    eventId,
    endpointId,
    status: 'failure',
    attempts: 1,
  });
  const attempt = newId();
  await api.db.rows(
    `insert into delivery_attempts (project_id, event_delivery_id, id, occurred_at, requested_at, endpoint_id, duration_ms, number, error_class, error, url)
     select project_id, id, $2, occurred_at, now(), endpoint_id, 12, 1, 'status', 'It answered 503.', 'https://example.com' from event_deliveries where id = $1`,
    [id, attempt],
  );
  return { endpoints: endpointId, subscriptions: subscription.id, eventdeliveries: id, attempt };
}

/** A text that only operators may read. */
const INTERNAL = 'pgbouncer of team blue';

const ofPortal = routes.filter(({ portal }) => portal);
/** Routes that delete what other tests need. */
const LAST = (route: { readonly method: string }) => route.method === 'delete';

owned(
  'each route of a portal with an id finds the thing of its owner, and not that of another owner',
  async () => {
    let tried = 0;
    for (const route of [...ofPortal].sort(
      (one, other) => Number(LAST(one)) - Number(LAST(other)),
    )) {
      const collection = route.path.split('/')[1] as keyof Things;
      if (!route.path.includes(':id') || !(collection in mine)) continue;
      const call = (things: Things) => {
        const place = pathOf(route)
          .replace('/projects/:project_id', path)
          .replace(':id', things[collection]);
        const body = route.body ? {} : undefined;
        return api.call(
          route.method.toUpperCase(),
          place.replace(':attempt_id', things.attempt),
          body,
          { key },
        );
      };
      const refused = await call(theirs);
      assert.is(
        refused.status,
        404,
        `${route.method} ${route.path} of another owner: ${refused.body.message}`,
      );
      if (LAST(route)) continue;
      const { status, body } = await call(mine);
      assert.ok(status < 300, `${route.method} ${route.path}: ${status} ${body.message}`);
      tried++;
    }
    assert.ok(tried >= 14, `${tried} routes`);
  },
);

owned(
  'each list of a portal has only what belongs to its owner, also when it asks for another',
  async () => {
    const idsOf: Readonly<Record<string, (row: { uid: string }) => string>> = {
      '/endpoints': (row) => row.uid,
      '/subscriptions': (row) => row.uid,
      '/eventdeliveries': (row) => row.uid,
    };
    const lists = ofPortal.filter(
      ({ method, path: at, query }) => method === 'get' && !at.includes(':') && query,
    );
    for (const { path: at } of lists.filter((it) => !/^\/(event-types|activity)/.test(it.path))) {
      assert.ok(idsOf[at], `${at} is a list that this test does not know`);
      const wanted = [mine[at.slice(1) as keyof Things]];
      for (const [query, expected] of [
        ['', wanted],
        [at === '/endpoints' ? 'ownerId=globex' : `endpointId=${mine.endpoints}`, wanted],
        [
          at === '/endpoints' ? 'perPage=1' : `endpointId=${theirs.endpoints}`,
          at === '/endpoints' ? wanted : [],
        ],
      ] as const) {
        const { status, body } = await api.call('GET', `${path}${at}?${query}`, undefined, { key });
        assert.is(status, 200);
        assert.equal(body.data.content.map(idsOf[at]), expected, `${at}?${query}`);
      }
    }
  },
);

owned(
  'a portal counts requests to endpoints of its owner, and those of no others nor of the project',
  async () => {
    await api.db.rows(
      `insert into activity (project_id, endpoint_id, at, kind, status, n)
     select project_id, id, date_bin('10 minutes', now(), 'epoch'), 'attempt', 'failure', 3 from endpoints`,
    );
    const both = [mine, theirs].map((it) => `endpointId=${it.endpoints}`).join('&');
    const counted = await api.call('GET', `${path}/activity/endpoints?${both}`, undefined, { key });
    const [{ last_attempt_at: at, ...row }, ...others] = counted.body.data.content;
    assert.equal(row, { endpoint_id: mine.endpoints, attempts: { success: 0, failure: 3 } });
    assert.equal(others, []);
    assert.ok(Date.now() - Date.parse(at) < 3_600_000);
    const status = async (query: string) =>
      (await api.call('GET', `${path}/activity?${query}`, undefined, { key })).status;
    const of = (it: Things) => `endpointId=${it.endpoints}`;
    assert.equal(
      [await status(of(mine)), await status(of(theirs)), await status('')],
      [200, 404, 422],
    );
  },
);

owned(
  'an endpoint that is created over a portal belongs to its owner, and neither owner nor bounds are chosen there',
  async () => {
    const create = (body: object) =>
      api.call(
        'POST',
        `${path}/endpoints`,
        { name: 'new', url: 'https://example.com', ...body },
        { key },
      );
    const created = await create({});
    assert.equal([created.status, created.body.data.owner_id], [201, 'acme']);
    const endpoint = created.body.data.uid;
    for (const body of [
      { owner_id: 'globex' },
      { concurrency: 10_000 },
      { rate_limit: 0 },
      { http_timeout: 120 },
      { strategy: null },
    ]) {
      const [field] = Object.keys(body);
      for (const { status, body: answer } of [
        await create(body),
        await api.call('PUT', `${path}/endpoints/${endpoint}`, body, { key }),
      ])
        assert.equal([status, answer.errors?.map((it) => it.field)], [422, [field]]);
    }
    assert.is((await create({ owner_id: null })).status, 422);
    const subscribe = (id: string) =>
      api.call('POST', `${path}/subscriptions`, { name: 's', endpoint_id: id }, { key });
    assert.equal(
      [(await subscribe(endpoint)).status, (await subscribe(theirs.endpoints)).status],
      [201, 422],
    );
    const moved = await api.call(
      'PUT',
      `${path}/subscriptions/${mine.subscriptions}`,
      { endpoint_id: theirs.endpoints },
      { key },
    );
    assert.is(moved.status, 422);
    assert.is(
      (await api.call('DELETE', `${path}/endpoints/${endpoint}`, undefined, { key })).status,
      200,
    );
    assert.is(
      (await api.call('GET', `${path}/endpoints/${endpoint}`, undefined, { key })).status,
      404,
    );
  },
);

owned('a batch sends again only what belongs to the owner', async () => {
  await api.db.rows(`update event_deliveries set status = 'failure', next_attempt_at = null`);
  const retry = (query: string) =>
    api.call('POST', `${path}/eventdeliveries/batchretry?startDate=2020-01-01${query}`, undefined, {
      key,
    });
  const counts = async (query: string) => {
    const { due, left } = (await retry(query)).body.data;
    return [due, left];
  };
  assert.equal(await counts('&dry_run=true'), [1, 0]);
  assert.equal(await counts(`&endpointId=${theirs.endpoints}`), [0, 0]);
  assert.equal(await counts('&status=success'), [0, 0]);
  assert.equal(await counts(`&endpointId=${mine.endpoints}`), [1, 0]);
  const rows = await api.db.rows<{ id: string; status: string }>(
    'select id, status::text from event_deliveries order by id',
  );
  assert.is(rows.find(({ id }) => id === mine.eventdeliveries)?.status, 'scheduled');
  assert.is(rows.find(({ id }) => id === theirs.eventdeliveries)?.status, 'failure');
});

owned(
  'the event of a delivery tells its data and headers, not where it came from or went to beside',
  async () => {
    const { body } = await api.call(
      'GET',
      `${path}/eventdeliveries/${mine.eventdeliveries}/event`,
      undefined,
      { key },
    );
    assert.equal(Object.keys(body.data).sort(), [
      'data',
      'data_bytes',
      'event_type',
      'headers',
      'is_transformed',
      'occurred_at',
      'uid',
    ]);
    assert.equal([body.data.data, body.data.headers], [{ n: 1 }, { 'x-a': 'b' }]);
  },
);

owned('a delivery is no longer reached when its endpoint is given to another owner', async () => {
  const mover = await tokenOf('acme', false);
  const show = () =>
    api.call('GET', `${path}/eventdeliveries/${mine.eventdeliveries}`, undefined, { key: mover });
  assert.is((await show()).status, 200);
  await api.call('PUT', `${path}/endpoints/${mine.endpoints}`, { owner_id: 'umbrella' });
  assert.is((await show()).status, 404);
});

owned(
  'a route for portal links whose things have no known owner is refused when the server starts',
  () => {
    assert.throws(
      () => ownedBy({ path: '/sources/:id', portal: 'any' }),
      'the owner of its resources is unknown',
    );
    ownedBy({ path: '/sources/:id' });
  },
);

owned('no response over a portal link has a text for operators', async () => {
  const own = await makeThings(path.split('/').at(-1)!, 'acme');
  await api.db.rows(`update projects set name = $1`, [INTERNAL]);
  await api.db.rows(`update endpoints set status_reason = $1`, [INTERNAL]);
  await api.db.rows(`update event_deliveries set reason = $1`, [INTERNAL]);
  await api.db.rows(`update delivery_attempts set error = $1`, [INTERNAL]);
  await api.db.rows(`update subscriptions set function = $1`, [INTERNAL]);
  const bodies: Readonly<Record<string, object>> = {
    'post /endpoints': { name: 'x', url: 'https://example.com' },
    'post /subscriptions': { name: 'x', endpoint_id: own.endpoints },
    'post /subscriptions/test_filter': { filter: {}, sample: { event_type: 'a' } },
  };
  const texts = async (method: string, at: string, body?: object) => {
    const answer = await api.call(method, at, body, { key });
    const { message, fix = '' } = answer.body;
    const where = `${method} ${at}: ${answer.status} ${answer.text}`;
    assert.not.match(answer.text, INTERNAL, where);
    assert.not.match(answer.text, /"(reason|error|status_reason|function)":"/, where);
    assert.not.match(
      `${message} ${fix}`,
      /agent|project|portal link|limits?\.|setting|server log|KV|Postgres/,
      where,
    );
    return answer.status;
  };
  for (const things of [own, theirs])
    for (const route of ofPortal) {
      if (LAST(route) && things === own) continue;
      const { method, path: at, body } = route;
      const collection = at.split('/')[1] as keyof Things;
      const place = pathOf(route)
        .replace('/projects/:project_id', path)
        .replace(':id', things[collection])
        .replace(':attempt_id', things.attempt);
      const query = at.startsWith('/activity')
        ? `?endpointId=${things.endpoints}`
        : at.endsWith('/batchretry')
          ? `?startDate=2020-01-01T00:00:00Z`
          : '';
      const given = body && (bodies[`${method} ${at}`] ?? {});
      const status = await texts(method.toUpperCase(), place + query, given);
      const isRefused = status >= 300;
      if (things === own && at.startsWith('/event-types/')) continue;
      if (things === own) assert.not.ok(isRefused, `${method} ${at}: ${status}`);
    }
  // Errors, of which some name settings to operators.
  const delivery = `${path}/eventdeliveries/${own.eventdeliveries}/resend`;
  await api.db.rows(`update endpoints set status = 'inactive'`);
  assert.is(await texts('PUT', delivery), 409);
  assert.is(
    (await api.call('PUT', delivery, undefined, { key })).body.conflict,
    'endpoint_inactive',
  );
  assert.is(await texts('GET', `${path}/events`), 403);
  assert.is(await texts('POST', `${path}/endpoints`, { name: 'x', url: 'none' }), 422);
});

owned.run();
