import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { until } from '../../../support/until.js';
import { makeEvents } from '../../../store/made.js';
import { makeProject, mistakes, startApi, type Api } from '../../api.js';

const events = suite('server/routes/events/events');

let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
let endpointId: string;
events.before(async () => {
  api = await startApi({ file: { ingest: { max_message_bytes: 10_000 } } });
  project = await makeProject(api);
  endpointId = (
    await api.call('POST', `${project.path}/endpoints`, {
      name: 'shop',
      url: 'https://example.com',
      owner_id: 'acme',
    })
  ).body.data.uid;
});
events.after(() => api.close());

const create = (body: unknown, route = '') =>
  api.call('POST', `${project.path}/events${route}`, body);
const find = async (id: string) =>
  (await api.call('GET', `${project.path}/events/${id}`)).body.data;

events('an event keeps the bytes of its data on the way in and out', async () => {
  const data =
    '{ "price" : 1.10,\n "id" : 9007199254740993, "text": "\\u00e9\\ud83d\\ude00 é", "none": "\\u0000" }';
  const { status, body } = await create(
    `{"event_type":"order.paid","data":${data},"endpoint_id":"${endpointId}"}`,
  );
  assert.is(status, 201);
  assert.is(body.data.duplicate, false);
  const [row] = await api.db.rows<{
    data: string;
    status: string;
    message_type: string;
    endpoint_id: string;
  }>('select * from events where id = $1', [body.data.uid]);
  assert.equal([row?.data, row?.message_type, row?.endpoint_id], [data, 'single', endpointId]);
  const shown = await api.call('GET', `${project.path}/events/${body.data.uid}`);
  assert.ok(shown.text.includes(`"data":${data}`));
  const listed = await api.call('GET', `${project.path}/events`);
  assert.ok(listed.text.includes(`"data":${data}`));
});

events('events, alone or in a batch, are not written to the audit log', async () => {
  const event = { event_type: 'a', data: {} };
  assert.is((await create({ events: [event, event] }, '/batch')).body.data.created, 2);
  assert.is((await create(event)).status, 201);
  const created = await api.call('POST', `${project.path}/event-types`, { name: 'audited' });
  assert.is(created.status, 201);
  const actions = async () =>
    (
      await api.db.rows<{ action: string }>(
        'select action from audit_log where project_id = $1 order by id',
        [project.id],
      )
    ).map(({ action }) => action);
  await until('the entry of a change', async () => (await actions()).length > 1);
  assert.equal(
    (await actions()).filter((it) => it.startsWith('events')),
    [],
  );
});

events('a created event is signalled to the create-event queue, a duplicate is not', async () => {
  const queue = api.kv.queue('create-event');
  const before = await queue.depth();
  const keyed = { event_type: 'a', data: {}, idempotency_key: 'signalled-once' };
  await create(keyed);
  await create(keyed);
  await until('the signal', async () => (await queue.depth()) === before + 1);
});

events(
  'a single event needs no endpoint, a fanout has an owner, a broadcast has neither',
  async () => {
    const plain = { event_type: 'order.paid', data: {} };
    const [single, fanout, broadcast] = await Promise.all([
      create(plain),
      create({ ...plain, owner_id: 'acme' }, '/fanout'),
      create(plain, '/broadcast'),
    ]);
    const shown = async (answer: typeof single) => {
      const {
        message_type: type,
        owner_id: owner,
        endpoint_id: endpoint,
        source_id: source,
      } = await find(answer.body.data.uid);
      return [type, owner, endpoint, source];
    };
    assert.equal(await shown(single), ['single', null, null, null]);
    assert.equal(await shown(fanout), ['fanout', 'acme', null, null]);
    assert.equal(await shown(broadcast), ['broadcast', null, null, null]);
  },
);

events(
  'whoever subscribes and then posts to the same server reaches the new endpoint too',
  async () => {
    const subscribe = async (n: number) => {
      const { body } = await api.call('POST', `${project.path}/endpoints`, {
        name: `fresh ${n}`,
        url: 'https://example.com/hook',
      });
      const fields = {
        name: `fresh ${n}`,
        endpoint_id: body.data.uid,
        filter_config: { event_types: ['fresh'] },
      };
      assert.is((await api.call('POST', `${project.path}/subscriptions`, fields)).status, 201);
    };
    const deliveries = async () => {
      const { body } = await create({ event_type: 'fresh', data: {} });
      const [row] = await api.db.rows<{ status: string; n: number }>(
        `select e.status::text, (select count(*)::int from event_deliveries d where d.event_id = e.id) as n from events e where e.id = $1`,
        [body.data.uid],
      );
      return row!.status === 'pending' ? 'pending' : row!.n;
    };
    await subscribe(1);
    await until('an event to be routed in its commit', async () => (await deliveries()) === 1);
    const holder = await api.db.planes.control.connect();
    try {
      // The server cannot read the change meanwhile.
      await holder.query('begin');
      await holder.query('lock table sources in access exclusive mode');
      await subscribe(2);
      assert.is(
        await deliveries(),
        'pending',
        'agents read the configuration again before they route it',
      );
    } finally {
      await holder.query('rollback');
      holder.release();
    }
    await until('both to be reached in the commit', async () => (await deliveries()) === 2);
  },
);

events('custom headers travel in lower case, a trace context among them', async () => {
  const { body } = await create({
    event_type: 'a',
    data: {},
    custom_headers: { 'X-Tenant': 'acme', tracestate: 'a=b', Authorization: 'x' },
  });
  assert.equal((await find(body.data.uid)).headers, {
    'x-tenant': 'acme',
    tracestate: 'a=b',
    authorization: 'x',
  });
});

events(
  'a custom header that the gateway or the connection owns is refused, with its name',
  async () => {
    const answer = await create({
      event_type: 'a',
      data: {},
      custom_headers: { 'X-Tenant': 'a', 'Content-Encoding': 'b', 'TRANSFER-ENCODING': 'c' },
    });
    assert.is(answer.status, 422);
    assert.equal(mistakes(answer), [
      'custom_headers.Content-Encoding is set by the gateway: omit it, or rename it',
      'custom_headers.TRANSFER-ENCODING is set by the connection: omit it, or rename it',
    ]);
  },
);

events('a known idempotency key answers with the first event', async () => {
  const keyed = { event_type: 'a', data: { n: 1 }, idempotency_key: 'order-17' };
  const first = await create(keyed);
  const second = await create({ ...keyed, data: { n: 2 } });
  assert.equal([first.status, second.status], [201, 200]);
  assert.equal(second.body.data, { uid: first.body.data.uid, duplicate: true });
  const { content } = (await api.call('GET', `${project.path}/events?idempotencyKey=order-17`)).body
    .data;
  assert.equal(
    content.map((it: { uid: string; data: unknown }) => [it.uid, it.data]),
    [[first.body.data.uid, { n: 1 }]],
  );
});

events('the header Idempotency-Key is the key of an event, and of no batch', async () => {
  const post = (body: object, key: string, route = '') =>
    api.call('POST', `${project.path}/events${route}`, body, {
      headers: { 'idempotency-key': key },
    });
  const first = await post({ event_type: 'a', data: { n: 1 } }, 'order-18');
  const second = await create({ event_type: 'a', data: { n: 2 }, idempotency_key: 'order-18' });
  assert.equal(second.body.data, { uid: first.body.data.uid, duplicate: true });
  assert.is(
    (await post({ event_type: 'a', data: {}, idempotency_key: 'order-18' }, 'order-18')).status,
    200,
  );
  const both = await post({ event_type: 'a', data: {}, idempotency_key: 'order-19' }, 'order-18');
  assert.equal(mistakes(both), [
    'Idempotency-Key differs from idempotency_key in the body: give one of them',
  ]);
  assert.equal(mistakes(await post({ event_type: 'a', data: {} }, 'é')), [
    'Idempotency-Key must be 1 to 512 characters of ASCII',
  ]);
  const batch = await post({ events: [{ event_type: 'a', data: {} }] }, 'order-20', '/batch');
  assert.match(mistakes(batch).join(), 'Idempotency-Key is not allowed for a batch');
});

/** Inserts an unexpired idempotency key. */
const holdKey = (projectId: string, key: string, eventId: string) =>
  api.db.rows(
    `insert into idempotency_keys (project_id, key, event_id, expires_at) values ($1, $2, $3, now() + interval '1 hour')`,
    [projectId, key, eventId],
  );

events('the other filters hold beside a live idempotency key', async () => {
  const own = await makeProject(api);
  const sourceId = newId();
  const [id] = await makeEvents(api.db, own.id, [
    { atMs: Date.UTC(2026, 4, 2, 12), sourceId, key: 'live' },
  ]);
  await holdKey(own.id, 'live', id!);
  const list = async (query: string) =>
    (
      await api.call('GET', `${own.path}/events?idempotencyKey=live&${query}`)
    ).body.data.content.map((it: { uid: string }) => it.uid);
  for (const query of [
    '',
    'status=processed',
    'event_type=order.paid',
    `sourceId=${sourceId}`,
    'startDate=2026-05-02&endDate=2026-05-02',
  ])
    assert.equal(await list(query), [id], query);
  for (const query of [
    'status=failed',
    'event_type=refund',
    `sourceId=${newId()}`,
    'startDate=2026-05-03',
    'endDate=2026-05-01',
  ])
    assert.equal(await list(query), [], query);
});

events('a list by a live idempotency key leaves a large body out, too', async () => {
  const own = await makeProject(api);
  const data = JSON.stringify({ text: 'x'.repeat(20_000) });
  const [id] = await makeEvents(api.db, own.id, [{ atMs: Date.now(), key: 'live', data }]);
  await holdKey(own.id, 'live', id!);
  const { content, pagination } = (await api.call('GET', `${own.path}/events?idempotencyKey=live`))
    .body.data;
  assert.equal(
    content.map((it: { uid: string; data: unknown; data_bytes: number }) => [
      it.uid,
      it.data,
      it.data_bytes,
    ]),
    [[id, null, data.length]],
  );
  assert.equal([pagination.has_next_page, pagination.has_prev_page], [false, false]);
});

events('mistakes are listed with their places', async () => {
  const answer = await create({
    event_type: '',
    data: [],
    idempotency_key: 'a\u0001',
    custom_headers: { 'x y': 'v', ok: 5 },
    owner: 'x',
  });
  assert.is(answer.status, 422);
  assert.equal(mistakes(answer).sort(), [
    'custom_headers.ok must be a string',
    'data must be an object',
    'event_type must not be empty',
    'idempotency_key must not contain control characters',
    'owner is not a field here',
  ]);
  const plain = { event_type: 'a', data: {} };
  assert.equal(
    mistakes(
      await create({
        ...plain,
        custom_headers: { 'x y': 'v', 'x-line': 'a\nb', 'X-Gateway-Message-Type': 'broadcast' },
      }),
    ),
    [
      'custom_headers.x y is not a header name',
      'custom_headers.x-line has a value that HTTP cannot carry (control characters or letters beyond Latin-1)',
      'custom_headers.X-Gateway-Message-Type is implied by the route: /events, /events/fanout or /events/broadcast',
    ],
  );
  assert.equal(mistakes(await create({ ...plain, endpoint_id: newId() })), [
    'endpoint_id is not an endpoint of this project',
  ]);
  assert.equal(mistakes(await create({ ...plain, owner_id: 'nobody' }, '/fanout')), [
    'owner_id does not own an endpoint of this project',
  ]);
  assert.equal(mistakes(await create(plain, '/fanout')), ['owner_id is missing']);
  assert.equal(mistakes(await create({ ...plain, data: { x: 'y'.repeat(10_000) } })), [
    'data has more than 10000 bytes, which is ingest.max_message_bytes',
  ]);
  assert.equal(mistakes(await create('{"event_type":"a\\u0000b","data":{}}')), [
    'event_type must not contain control characters',
  ]);
  assert.equal(mistakes(await create('{"event_type":"a\\ud800b","data":{}}')), [
    'event_type contains U+0000 or half of a surrogate pair',
  ]);
});

events('events are listed in pages and filtered', async () => {
  const own = await makeProject(api);
  const now = Date.UTC(2026, 4, 2, 12);
  const sourceId = newId();
  const ids = await makeEvents(api.db, own.id, [
    { atMs: now - 86_400_000, status: 'failed' },
    { atMs: now, sourceId },
    { atMs: now + 1, eventType: 'refund', status: 'pending' },
  ]);
  const list = async (query: string) =>
    (await api.call('GET', `${own.path}/events?${query}`)).body.data.content.map(
      (it: { uid: string }) => ids.indexOf(it.uid),
    );
  assert.equal(await list(''), [2, 1, 0]);
  assert.equal(await list('sort=ASC&perPage=2'), [0, 1]);
  assert.equal(await list('status=failed'), [0]);
  assert.equal(await list('event_type=refund'), [2]);
  assert.equal(await list(`sourceId=${sourceId}`), [1]);
  assert.equal(await list('startDate=2026-05-02'), [2, 1]);
  assert.equal(await list('endDate=2026-05-01'), [0]);
  assert.equal(await list('startDate=2026-05-02T12:00:00.001Z'), [2]);
  assert.equal(await list('startDate=2026-05-01&endDate=2026-05-02T12:00:00'), [1, 0]);
  assert.equal(await list('idempotencyKey=none'), []);
});

events('a wrong query is refused with each mistake', async () => {
  const answer = await api.call(
    'GET',
    `${project.path}/events?perPage=0&status=done&sourceId=x&startDate=yesterday&perpage=1&direction=up`,
  );
  assert.is(answer.status, 422);
  assert.equal(mistakes(answer).sort(), [
    'direction must be one of next, prev',
    'perPage must be at least 1',
    'perpage is not a field here; did you mean perPage?',
    'sourceId must be an id: a UUID in lower case',
    'startDate must be a date like 2026-11-21 or a time like 2026-11-21T09:00:00Z',
    'status must be one of pending, processed, failed',
  ]);
  assert.equal(mistakes(await api.call('GET', `${project.path}/events?startDate=2026-13-45`)), [
    'startDate is not a calendar date',
  ]);
  assert.equal(
    mistakes(await api.call('GET', `${project.path}/events?endDate=2026-02-30T10:00:00Z`)),
    ['endDate is not a calendar date'],
  );
});

events('an event that is not there is a 404', async () => {
  const other = await makeProject(api);
  const { uid } = (await create({ event_type: 'a', data: {} })).body.data;
  assert.is((await api.call('GET', `${other.path}/events/${uid}`)).status, 404);
  assert.is((await api.call('GET', `${project.path}/events/${newId()}`)).status, 404);
});

events('a batch keeps the bytes of each event, and has a result for each in order', async () => {
  const datas = [
    '{ "price": 1.10 }',
    '{"id":9007199254740993, "events":[{"data":1}]}',
    '{"none":"\\u0000"}',
  ];
  const [first, second, third] = datas;
  const body = `{"events" : [ {"data":${first},"event_type":"a"}, {"event_type":"b","data":${second},"endpoint_id":"${endpointId}"},
    {"event_type":"c","data":{},"owner_id":"acme","data":${third}}]}`;
  const { status, body: answer } = await create(body, '/batch');
  assert.is(status, 200);
  assert.equal([answer.data.created, answer.data.duplicates, answer.data.rejected], [3, 0, 0]);
  const uids = answer.data.content.map(({ uid }: { uid: string }) => uid);
  const rows = await api.db.rows<{
    id: string;
    data: string;
    event_type: string;
    message_type: string;
    owner_id: string | null;
  }>('select * from events where id = any ($1::uuid[])', [uids]);
  const inOrder = uids.map((uid: string) => rows.find(({ id }) => id === uid));
  assert.equal(
    inOrder.map((row: (typeof rows)[0]) => [
      row.event_type,
      row.data,
      row.message_type,
      row.owner_id,
    ]),
    [
      ['a', first, 'single', null],
      ['b', second, 'single', null],
      ['c', third, 'fanout', 'acme'],
    ],
  );
});

events('of a batch the valid events are created, and the others say what is wrong', async () => {
  const plain = { event_type: 'a', data: {} };
  const { status, body } = await create(
    {
      events: [
        { ...plain, endpoint_id: newId() },
        { ...plain, idempotency_key: 'of a batch' },
        { ...plain, idempotency_key: 'of a batch' },
        { ...plain, owner_id: 'nobody' },
        { ...plain, data: { text: 'x'.repeat(10_000) } },
        { ...plain, custom_headers: { host: 'a' } },
        { ...plain, endpoint_id: endpointId, owner_id: 'acme' },
        { ...plain, event_type: 'a\ud800' },
        plain,
      ],
    },
    '/batch',
  );
  assert.is(status, 200);
  const { content, ...counts } = body.data;
  assert.equal(counts, { created: 2, duplicates: 1, rejected: 6 });
  assert.equal(
    [content[1].uid, content[1].duplicate, content[2]],
    [content[2].uid, false, { uid: content[1].uid, duplicate: true }],
  );
  const sentences = [0, 3, 4, 5, 6, 7].map((k) =>
    content[k].errors
      .map(({ field, sentence }: { field: string; sentence: string }) => `${field} ${sentence}`)
      .join(),
  );
  assert.match(sentences[0], /^events\.0\.endpoint_id is not an endpoint of this project$/);
  assert.match(sentences[1], /^events\.3\.owner_id does not own an endpoint/);
  assert.match(sentences[2], /^events\.4\.data has more than 10000 bytes/);
  assert.match(sentences[3], /^events\.5\.custom_headers\.host is set by/);
  assert.match(sentences[4], /^events\.6\.owner_id cannot be combined with endpoint_id/);
  assert.match(sentences[5], /^events\.7\.event_type contains U\+0000 or half/);
  assert.is((await find(content[8].uid)).event_type, 'a');
});

events('of a batch with malformed elements the well-formed are created', async () => {
  const plain = { event_type: 'a', data: {} };
  const given: [element: unknown, mistake: string][] = [
    [{ ...plain, data: 5 }, '.data must be an object'],
    [{ ...plain, event_type: '' }, '.event_type must not be empty'],
    [{ ...plain, tpye: 'a' }, '.tpye is not a field here'],
    [{ data: {} }, '.event_type is missing'],
    [{ ...plain, custom_headers: { a: 1 } }, '.custom_headers.a must be a string'],
    [{ ...plain, endpoint_id: 'x' }, '.endpoint_id must be an id: a UUID in lower case'],
    [{ ...plain, idempotency_key: '' }, '.idempotency_key must not be empty'],
    [null, ' must be an object'],
    [[plain], ' must be an object'],
    ['plain', ' must be an object'],
  ];
  const elements = [plain, ...given.map(([element]) => element), plain];
  const { status, body, text } = await create({ events: elements }, '/batch');
  assert.is(status, 200, text);
  const { content, ...counts } = body.data;
  assert.equal(counts, { created: 2, duplicates: 0, rejected: given.length });
  for (const [k, [, mistake]] of given.entries()) {
    const [{ field, sentence }] = content[k + 1].errors;
    assert.is(`${field} ${sentence}`.slice(0, 200), `events.${k + 1}${mistake}`);
  }
});

events(
  'a batch without a valid event, of a wrong shape or of too many events creates nothing',
  async () => {
    const count = async () =>
      (await api.db.rows<{ n: number }>('select count(*)::int as n from events'))[0]!.n;
    const before = await count();
    const plain = { event_type: 'a', data: {} };
    for (const [given, mistake] of [
      [
        [{ ...plain, owner_id: 'nobody' }],
        'events.0.owner_id does not own an endpoint of this project',
      ],
      [[{ event_type: 'a' }], 'events.0.data is missing'],
      [[], 'events must not be empty'],
      [Array.from({ length: 1001 }, () => plain), 'events must have at most 1000 elements'],
    ] as const) {
      const answer = await create({ events: given }, '/batch');
      assert.equal([answer.status, mistakes(answer)], [422, [mistake]]);
    }
    assert.is(await count(), before);
    assert.is(
      (await create({ events: Array.from({ length: 1000 }, () => plain) }, '/batch')).body.data
        .created,
      1000,
    );
  },
);

events('events without a recipient are listed and routed again by their outcome', async () => {
  const project = await makeProject(api);
  const ids = await makeEvents(api.db, project.id, [
    { atMs: 1_700_000_000_000 },
    { atMs: 1_700_000_000_001 },
    { atMs: 1_700_000_000_002 },
    { atMs: 1_700_000_000_003 },
  ]);
  for (const [n, outcome] of [
    [1, 'no_subscription'],
    [2, 'unknown_owner'],
    [3, 'no_subscription'],
  ] as const)
    await api.db.pool.query('update events set outcome = $1 where id = $2', [outcome, ids[n]]);
  const list = async (query: string) => {
    const { body } = await api.call('GET', `${project.path}/events?${query}`);
    return body.data.content.map(({ uid }: { uid: string }) => ids.indexOf(uid));
  };
  assert.equal(await list('outcome=no_subscription'), [3, 1]);
  assert.equal(await list('outcome=no_subscription&outcome=unknown_owner&sort=ASC'), [1, 2, 3]);
  assert.equal(await list(`outcome=no_subscription&query=${ids[1]!.slice(0, 13)}`), [1]);
  assert.equal(
    mistakes(await api.call('GET', `${project.path}/events?outcome=no_subscription&status=failed`)),
    ['outcome cannot be combined with status: select by one of them'],
  );
  assert.is((await api.call('GET', `${project.path}/events?outcome=routed`)).status, 422);
  const replay = `${project.path}/events/batchreplay?startDate=2023-01-01&outcome=no_subscription`;
  assert.is((await api.call('POST', replay)).body.data.count, 2);
  assert.equal(await list('outcome=no_subscription'), []);
  const plan = await api.db.rows<{ 'QUERY PLAN': string }>(
    `explain select id from events where project_id = '${project.id}' and (outcome, id) <= ('no_subscription', '${ids[0]}'::uuid)
       and outcome <> 'routed' order by outcome desc, id desc limit (select 50)`,
  );
  assert.match(plan.map((row) => row['QUERY PLAN']).join(' '), /_outcome_id_idx/);
});

events('a search finds events by their data, and a mistake names its place', async () => {
  const { body } = await create({ event_type: 'found', data: { order: { id: 4711 } } });
  const search = (text: string) =>
    api.call('GET', `${project.path}/events?search=${encodeURIComponent(text)}`);
  for (const text of ['data.order.id = 4711', 'found 4711']) {
    const { data } = (await search(text)).body;
    assert.equal(
      data.content.map(({ uid }: { uid: string }) => uid),
      [body.data.uid],
    );
    assert.is(data.pagination.searched_to, undefined);
  }
  const wrong = await search('data.order.id 4711');
  assert.is(wrong.status, 422);
  assert.match(wrong.body.errors![0]!.sentence, /at character 15, such as data\.order\.id = 42/);
  const replay = await api.call(
    'POST',
    `${project.path}/events/batchreplay?startDate=2020-01-01&dry_run=true&search=4711`,
  );
  assert.is(replay.body.data.count, (await find(body.data.uid)).status === 'pending' ? 0 : 1);
});

events('searches of a project wait for their turn, up to a bound', async () => {
  const asked = Array.from({ length: 12 }, () =>
    api.call('GET', `${project.path}/events?search=data.nowhere`),
  );
  const answers = await Promise.all(asked);
  const refused = answers.filter(({ status }) => status === 429);
  assert.ok(answers.some(({ status }) => status === 200));
  assert.ok(refused.length > 0);
  assert.is(refused[0]!.body.code, 'too_many_searches');
});

events.run();
