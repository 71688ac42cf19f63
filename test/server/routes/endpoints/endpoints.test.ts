import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealer } from '#core/crypto/sealing';
import { newId } from '#core/events/ids';
import { deleteEndpoint, findEndpoint, type EndpointRow } from '#store/config/endpoints';
import { WAIT_REASONS } from '#store/deliveries/postponed-deliveries';
import { sweepDeliveries } from '#store/deliveries/settle-deliveries';
import type { BreakerRecord } from '#store/kv/circuit-breakers';
import { writeLoweredLimits } from '#store/kv/endpoint-limits';
import { makeDelivery, makeEvents } from '../../../store/made.js';
import { encryptionKey, makeProject, mistakes, startApi, type Api } from '../../api.js';

const endpoints = suite('server/routes/endpoints/endpoints');

let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
endpoints.before(async () => {
  api = await startApi();
  project = await makeProject(api);
});
endpoints.after(() => api.close());

const { open } = sealer(encryptionKey);
const create = (fields: Record<string, unknown> = {}) =>
  api.call('POST', `${project.path}/endpoints`, {
    name: 'shop',
    url: 'https://example.com/hooks',
    ...fields,
  });
const stored = async (id: string) =>
  (await findEndpoint(api.db.knex, project.id, id)) as EndpointRow;

endpoints(
  'a created endpoint has a Standard Webhooks secret, shown this once and sealed at rest',
  async () => {
    const { status, body } = await create();
    assert.is(status, 201);
    const { uid, secrets, ...rest } = body.data;
    assert.match(secrets[0].value, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.equal(
      [
        rest.name,
        rest.url,
        rest.status,
        rest.owner_id,
        rest.http_timeout,
        rest.concurrency,
        rest.strategy,
        rest.authentication,
        rest.project_id,
      ],
      ['shop', 'https://example.com/hooks', 'active', null, 10, null, null, null, project.id],
    );
    const row = await stored(uid);
    assert.match(row.secrets[0]!.value, /^sealed:/);
    assert.is(open(row.secrets[0]!.value, ['endpoints', uid, 'secrets']), secrets[0].value);

    const shown = await api.call('GET', `${project.path}/endpoints/${uid}`);
    assert.is(shown.body.data.secrets[0].value, 'whsec_********');
    assert.not.match(shown.text, 'sealed:');
    const listed = await api.call('GET', `${project.path}/endpoints`);
    assert.not.match(listed.text, secrets[0].value);
  },
);

endpoints(
  'a given secret is taken when it is one of Standard Webhooks of 24 to 64 bytes, or a text of 12 characters',
  async () => {
    const of = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`;
    for (const secret of [of(24), of(64), 'endpoint-secret', of(24).replace('whsec_', '')])
      assert.is((await create({ secret })).body.data.secrets[0].value, secret);
    for (const secret of [of(23), of(65), 'secret', 'whsec_', 'whsec_$$$', `${of(25)}=`]) {
      const answer = await create({ secret });
      assert.is(answer.status, 422, secret);
      assert.match(mistakes(answer).join(), /^secret /);
      assert.not.match(answer.text, of(23).slice(6));
      assert.not.match(mistakes(answer).join(), '$$$');
    }
  },
);

endpoints('the URL must be one that can be sent to, without credentials', async () => {
  const cases: [url: string, sentence: string][] = [
    ['not a url', 'url must be a URL like https://example.com/webhooks'],
    ['ftp://example.com', 'url must begin with https:// or http://'],
    // The part before the colon can be a secret.
    ['hunter2:x@example.com', 'url must begin with https:// or http://'],
    ['javascript:alert(1)', 'url must begin with https:// or http://'],
    [
      'https://user:hunter2@example.com',
      'url must not hold credentials; use the field authentication, where they are kept sealed',
    ],
  ];
  for (const [url, sentence] of cases) {
    const answer = await create({ url });
    assert.equal([answer.status, mistakes(answer)], [422, [sentence]]);
    assert.not.match(answer.text, 'hunter2');
  }
});

endpoints(
  'each way to authenticate is sealed, masked, and kept when its mask is sent back',
  async () => {
    const cases = [
      { type: 'api_key', api_key: { header_name: 'X-Key', header_value: 'hunter2' } },
      { type: 'basic', basic: { username: 'ada', password: 'hunter2' } },
      { type: 'bearer', bearer: { token: 'hunter2' } },
    ];
    for (const authentication of cases) {
      const made = await create({ authentication });
      assert.is(made.status, 201);
      assert.not.match(made.text, 'hunter2');
      const { uid, authentication: shown } = made.body.data;
      const before = (await stored(uid)).authentication;
      assert.not.match(JSON.stringify(before), 'hunter2');
      assert.match(JSON.stringify(before), 'sealed:');
      const put = await api.call('PUT', `${project.path}/endpoints/${uid}`, {
        name: 'renamed',
        authentication: shown,
      });
      assert.is(put.status, 200);
      assert.equal((await stored(uid)).authentication, before);
      const cleared = await api.call('PUT', `${project.path}/endpoints/${uid}`, {
        authentication: null,
      });
      assert.is(cleared.body.data.authentication, null);
    }
  },
);

endpoints(
  'an endpoint that moves to another origin asks for its authentication again',
  async () => {
    const authentication = { type: 'bearer', bearer: { token: 'hunter2' } };
    const made = (await create({ authentication })).body.data;
    const put = (fields: object) =>
      api.call('PUT', `${project.path}/endpoints/${made.uid}`, fields);
    const before = await stored(made.uid);
    for (const url of [
      'https://evil.example/hooks',
      'http://example.com/hooks',
      'https://example.com:8443/hooks',
    ])
      for (const kept of [{}, { authentication: made.authentication }])
        assert.equal(mistakes(await put({ url, ...kept })), [
          'authentication.bearer is not sent to another origin than https://example.com: url changes; give the secret again, or null as authentication to remove it',
        ]);
    assert.equal(await stored(made.uid), before);
    assert.is((await put({ url: 'https://example.com/elsewhere?a=1' })).status, 200);
    assert.equal((await stored(made.uid)).authentication, before.authentication);
    assert.is((await put({ url: 'https://evil.example', authentication })).status, 200);
    assert.is((await put({ url: 'https://example.com', authentication: null })).status, 200);
    assert.is(
      (await put({ url: 'https://evil.example' })).status,
      200,
      'there is nothing to ask for',
    );
  },
);

endpoints(
  'the secret of OAuth 2.0 goes to no other token server than it was given for',
  async () => {
    const oauth2 = {
      url: 'https://login.example.com/token',
      client_id: 'shop',
      client_secret: 's3cret',
      client_auth: 'post',
      scope: 'hooks',
    };
    const { authentication, uid } = (await create({ authentication: { type: 'oauth2', oauth2 } }))
      .body.data;
    assert.equal(authentication, {
      type: 'oauth2',
      oauth2: { ...oauth2, client_secret: '********' },
    });
    assert.not.match(JSON.stringify(await stored(uid)), 's3cret');
    const put = (changed: object) =>
      api.call('PUT', `${project.path}/endpoints/${uid}`, {
        authentication: { type: 'oauth2', oauth2: { ...authentication.oauth2, ...changed } },
      });
    assert.is((await put({ url: 'https://login.example.com/v2/token', scope: 'all' })).status, 200);
    assert.equal(mistakes(await put({ url: 'https://evil.example/token' })), [
      'authentication.oauth2 is not sent to another origin than https://login.example.com: authentication.oauth2.url changes; give the secret again, or null as authentication to remove it',
    ]);
    assert.equal(mistakes(await put({ url: 'login.example.com' })), [
      'authentication.oauth2.url must be a URL like https://example.com/webhooks',
    ]);
    assert.is(
      (await put({ url: 'https://evil.example/token', client_secret: 'another' })).status,
      200,
    );
  },
);

endpoints('an authentication that does not fit its type is refused with the field', async () => {
  const cases: [authentication: unknown, mistake: string][] = [
    [{ type: 'basic' }, 'authentication.basic is missing'],
    [
      { type: 'bearer', bearer: { token: 't' }, basic: { username: 'a', password: 'b' } },
      'authentication.basic does not belong to the type bearer',
    ],
    [
      {
        type: 'oauth2',
        oauth2: {
          url: 'https://a.example',
          client_id: 'a',
          client_secret: 'b',
          client_auth: 'jwt',
        },
      },
      'authentication.oauth2.client_auth must be one of basic, post',
    ],
    [
      { type: 'oauth' },
      'authentication.type must be one of api_key, basic, bearer, oauth2, secret_url',
    ],
    [
      { type: 'api_key', api_key: { header_name: 'content-length', header_value: '1' } },
      'authentication.api_key.header_name is a header that the gateway or the connection sets',
    ],
    [
      { type: 'api_key', api_key: { header_name: 'x y', header_value: '1' } },
      'authentication.api_key.header_name must be the name of a header',
    ],
    [
      { type: 'bearer', bearer: { token: 'a\nb' } },
      'authentication.bearer.token holds characters that HTTP cannot carry',
    ],
    [
      { type: 'bearer', bearer: { token: '********' } },
      'authentication.bearer holds the mask of a secret, but none is stored; give the secret itself',
    ],
    ['none', 'authentication must be an object or null'],
  ];
  for (const [authentication, mistake] of cases)
    assert.equal(mistakes(await create({ authentication })), [mistake]);
});

endpoints(
  'a change touches what is given, null clears, and the secret has its own route',
  async () => {
    const { uid } = (
      await create({
        owner_id: 'acme',
        concurrency: 5,
        strategy: { type: 'linear', duration: 1, retry_count: 2 },
      })
    ).body.data;
    const path = `${project.path}/endpoints/${uid}`;
    const { body } = await api.call('PUT', path, {
      owner_id: null,
      concurrency: null,
      strategy: null,
      http_timeout: 2.5,
      description: 'd',
    });
    assert.equal(
      [
        body.data.owner_id,
        body.data.concurrency,
        body.data.strategy,
        body.data.http_timeout,
        body.data.description,
        body.data.name,
      ],
      [null, null, null, 2.5, 'd', 'shop'],
    );
    const answer = await api.call('PUT', path, { secret: 'whsec_x', http_timeout: 0 });
    assert.equal(mistakes(answer).sort(), [
      'http_timeout must be at least 0.1',
      'secret is not a field here',
    ]);
  },
);

endpoints('endpoints are listed by owner', async () => {
  const { path } = await makeProject(api);
  for (const owner of ['acme', 'acme', 'globex'])
    await api.call('POST', `${path}/endpoints`, {
      name: owner,
      url: 'https://example.com',
      owner_id: owner,
    });
  assert.is((await api.call('GET', `${path}/endpoints?ownerId=acme`)).body.data.content.length, 2);
  assert.is((await api.call('GET', `${path}/endpoints`)).body.data.content.length, 3);
});

endpoints('endpoints are found by status, and by a part of name, URL or owner', async () => {
  const { path } = await makeProject(api);
  const made = async (fields: object) =>
    (await api.call('POST', `${path}/endpoints`, { url: 'https://a.example.com', ...fields })).body
      .data;
  await made({ name: 'Shop', owner_id: 'acme' });
  const { uid } = await made({ name: 'bank', url: 'https://bank.example.org/hooks_1' });
  const found = async (query: string) =>
    (await api.call('GET', `${path}/endpoints?sort=ASC&${query}`)).body.data.content.map(
      (it: { name: string }) => it.name,
    );
  assert.equal(
    [await found('q=shop'), await found('q=ACM'), await found('q=s_1')],
    [['Shop'], ['Shop'], ['bank']],
  );
  assert.equal(
    [await found('q=example'), await found('q=%25'), await found('q=%5C')],
    [['Shop', 'bank'], [], []],
  );
  await api.call('PUT', `${path}/endpoints/${uid}/pause`);
  assert.equal(
    [
      await found('status=paused'),
      await found('status=inactive'),
      await found('status=active&q=bank'),
    ],
    [['bank'], [], []],
  );
});

endpoints(
  'a rotated secret is shown this once, and the old one signs until the overlap ends',
  async () => {
    const made = (await create()).body.data;
    const path = `${project.path}/endpoints/${made.uid}/expire_secret`;
    const { status, body } = await api.call('PUT', path, { expiration: 2 });
    assert.is(status, 200);
    const [fresh, old] = body.data.secrets;
    assert.match(fresh.value, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.is.not(fresh.value, made.secrets[0].value);
    assert.equal(
      [fresh.expires_at, old.uid, old.value],
      [null, made.secrets[0].uid, 'whsec_********'],
    );
    const hours = (new Date(old.expires_at).getTime() - Date.now()) / 3_600_000;
    assert.ok(hours > 1.9 && hours <= 2, String(hours));

    const ended = await api.call('PUT', path, { expiration: 0 });
    assert.is(ended.body.data.secrets.length, 1);
    const { secrets } = await stored(made.uid);
    assert.is(
      open(secrets[0]!.value, ['endpoints', made.uid, 'secrets']),
      ended.body.data.secrets[0].value,
    );
  },
);

endpoints('an endpoint has a few live secrets at most', async () => {
  const { uid } = (await create()).body.data;
  const statuses: number[] = [];
  for (let n = 0; n < 5; n++)
    statuses.push(
      (await api.call('PUT', `${project.path}/endpoints/${uid}/expire_secret`, {})).status,
    );
  assert.equal(statuses, [200, 200, 200, 200, 409]);
  assert.is((await stored(uid)).secrets.length, 5);
});

endpoints(
  'a deleted endpoint that has all its live secrets is gone for a rotation as for every other route',
  async () => {
    const { uid } = (await create()).body.data;
    const path = `${project.path}/endpoints/${uid}`;
    for (let n = 0; n < 4; n++) await api.call('PUT', `${path}/expire_secret`, {});
    await api.call('DELETE', path);
    const { status, body } = await api.call('PUT', `${path}/expire_secret`, {});
    assert.equal([status, body.code], [404, 'not_found']);
  },
);

endpoints('pausing holds what waits, activating sends it', async () => {
  const { uid } = (await create()).body.data;
  const [eventId] = await makeEvents(api.db, project.id, [{ atMs: Date.now() }]);
  const delivery = await makeDelivery(api.db, {
    projectId: project.id,
    eventId: eventId!,
    endpointId: uid,
    status: 'retry',
  });
  const shown = async () =>
    (await api.call('GET', `${project.path}/eventdeliveries/${delivery}`)).body.data;
  assert.ok((await shown()).next_attempt_at);

  const paused = await api.call('PUT', `${project.path}/endpoints/${uid}/pause`);
  assert.equal([paused.status, paused.body.data.status], [200, 'paused']);
  assert.equal(
    [
      (await shown()).next_attempt_at,
      (await shown()).status,
      (await shown()).endpoint_metadata.status,
    ],
    [null, 'retry', 'paused'],
  );

  const active = await api.call('POST', `${project.path}/endpoints/${uid}/activate`);
  assert.equal(
    [active.status, active.body.data.status, active.body.data.status_reason],
    [200, 'active', null],
  );
  assert.ok(new Date((await shown()).next_attempt_at) <= new Date(Date.now() + 60_000));
});

endpoints('a deleted endpoint is gone and what waited for it is discarded', async () => {
  const { uid } = (await create()).body.data;
  const [eventId] = await makeEvents(api.db, project.id, [{ atMs: Date.now() - 1 }]);
  const delivery = await makeDelivery(api.db, {
    projectId: project.id,
    eventId: eventId!,
    endpointId: uid,
  });
  assert.is((await api.call('DELETE', `${project.path}/endpoints/${uid}`)).status, 200);
  assert.is((await api.call('GET', `${project.path}/endpoints/${uid}`)).status, 404);
  const { data } = (await api.call('GET', `${project.path}/eventdeliveries/${delivery}`)).body;
  assert.equal(
    [data.status, data.reason, data.endpoint_metadata.status],
    ['discarded', 'The endpoint was deleted.', 'deleted'],
  );
});

endpoints('a deletion that was killed after its commit is finished by a second one', async () => {
  const { uid } = (await create()).body.data;
  const [eventId] = await makeEvents(api.db, project.id, [{ atMs: Date.now() - 3 }]);
  const delivery = await makeDelivery(api.db, {
    projectId: project.id,
    eventId: eventId!,
    endpointId: uid,
  });
  await deleteEndpoint(api.db.knex, project.id, uid);
  assert.is((await api.call('DELETE', `${project.path}/endpoints/${uid}`)).status, 404);
  assert.is(
    (await api.call('GET', `${project.path}/eventdeliveries/${delivery}`)).body.data.status,
    'discarded',
  );
});

endpoints(
  'an activation whose deliveries cannot be changed now has succeeded: the sweep releases them',
  async () => {
    const { uid } = (await create()).body.data;
    const [eventId] = await makeEvents(api.db, project.id, [{ atMs: Date.now() - 4 }]);
    const delivery = await makeDelivery(api.db, {
      projectId: project.id,
      eventId: eventId!,
      endpointId: uid,
      status: 'retry',
    });
    const dueAt = async () =>
      (await api.call('GET', `${project.path}/eventdeliveries/${delivery}`)).body.data
        .next_attempt_at;
    await api.call('PUT', `${project.path}/endpoints/${uid}/pause`);
    await api.db.rows(
      `create function away() returns trigger language plpgsql as $$ begin raise 'away'; end $$`,
    );
    await api.db.rows(
      'create trigger away before update on event_deliveries for each row execute function away()',
    );
    const active = await api.call('POST', `${project.path}/endpoints/${uid}/activate`);
    await api.db.rows('drop function away cascade');
    assert.equal([active.status, active.body.data.status, await dueAt()], [200, 'active', null]);
    await sweepDeliveries(api.db.planes, 60);
    assert.ok(await dueAt());
  },
);

endpoints(
  'an endpoint has a rate limit when it says so, and changing it hastens what waits for it',
  async () => {
    const plain = (await create()).body.data;
    assert.equal([plain.rate_limit, plain.rate_limit_duration], [null, null]);
    const { uid, ...made } = (await create({ rate_limit: 100, rate_limit_duration: 60 })).body.data;
    assert.equal([made.rate_limit, made.rate_limit_duration], [100, 60]);
    const [eventId] = await makeEvents(api.db, project.id, [{ atMs: Date.now() - 2 }]);
    const delivery = await makeDelivery(api.db, {
      projectId: project.id,
      eventId: eventId!,
      endpointId: uid,
    });
    await api.db.pool.query(
      `update event_deliveries set next_attempt_at = now() + interval '1 hour', reason = $2 where id = $1`,
      [delivery, WAIT_REASONS.rate_limit],
    );
    const waiting = async () =>
      (await api.call('GET', `${project.path}/eventdeliveries/${delivery}`)).body.data;
    assert.equal((await waiting()).reason, WAIT_REASONS.rate_limit);
    await api.call('PUT', `${project.path}/endpoints/${uid}`, { name: 'other' });
    assert.ok(
      new Date((await waiting()).next_attempt_at).getTime() > Date.now() + 1_800_000,
      'a change of something else hastens nothing',
    );
    const changed = await api.call('PUT', `${project.path}/endpoints/${uid}`, {
      rate_limit: 0,
      rate_limit_duration: null,
    });
    assert.equal([changed.body.data.rate_limit, changed.body.data.rate_limit_duration], [0, null]);
    const { next_attempt_at: due, reason } = await waiting();
    assert.ok(new Date(due).getTime() < Date.now() + 60_000, due);
    assert.is(reason, null);
    for (const [fields, mistake] of [
      [{ rate_limit: -1 }, 'rate_limit must be at least 0'],
      [{ rate_limit: 1.5 }, 'rate_limit must be an integer or null'],
      [{ rate_limit_duration: 0 }, 'rate_limit_duration must be at least 1'],
    ] as const)
      assert.equal(mistakes(await create(fields)), [mistake]);
  },
);

endpoints(
  'the circuit breaker of an endpoint is shown, in lists too, and closed on request, which hastens what waits',
  async () => {
    const { uid, circuit_breaker: closed } = (await create()).body.data;
    const none = { since: null, until: null, requests: 0, failures: 0, back_off_until: null };
    assert.equal(closed, { state: 'closed', ...none });
    const nowMs = Date.now();
    const record: BreakerRecord = {
      project_id: project.id,
      state: 'open',
      since_ms: nowMs,
      until_ms: nowMs + 30_000,
      requests: 20,
      failures: 15,
      trips: 1,
      forget_ms: nowMs + 60_000,
      back_off: { until_ms: nowMs + 20_000, ms: 20_000 },
    };
    await writeLoweredLimits(api.kv, [{ endpointId: uid, limit: 7 }]);
    await api.kv
      .map('breakers')
      .change([{ field: uid, from: undefined, to: JSON.stringify(record) }]);
    const open = {
      state: 'open',
      since: new Date(nowMs).toISOString(),
      until: new Date(nowMs + 30_000).toISOString(),
      requests: 20,
      failures: 15,
      back_off_until: new Date(nowMs + 20_000).toISOString(),
    };
    const one = (await api.call('GET', `${project.path}/endpoints/${uid}`)).body.data;
    assert.equal([one.circuit_breaker, one.current_concurrency], [open, 7]);
    const { content } = (await api.call('GET', `${project.path}/endpoints?perPage=100`)).body.data;
    const shown = content as { uid: string; circuit_breaker: unknown }[];
    assert.equal(shown.find((it) => it.uid === uid)?.circuit_breaker, open);
    assert.equal(shown.find((it) => it.uid !== uid)?.circuit_breaker, closed);

    const [eventId] = await makeEvents(api.db, project.id, [{ atMs: Date.now() - 3 }]);
    const delivery = await makeDelivery(api.db, {
      projectId: project.id,
      eventId: eventId!,
      endpointId: uid,
    });
    await api.db.pool.query(
      `update event_deliveries set next_attempt_at = now() + interval '1 hour', reason = $2 where id = $1`,
      [delivery, WAIT_REASONS.breaker],
    );
    const reset = await api.call('POST', `${project.path}/endpoints/${uid}/reset_circuit_breaker`);
    assert.equal([reset.status, reset.body.data.circuit_breaker], [200, closed]);
    const { next_attempt_at: due } = (
      await api.call('GET', `${project.path}/eventdeliveries/${delivery}`)
    ).body.data;
    assert.ok(new Date(due).getTime() < Date.now() + 60_000, due);
    assert.is(
      (await api.call('POST', `${project.path}/endpoints/${uid}/reset_circuit_breaker`)).status,
      200,
      'closing a closed one is no mistake',
    );
    await api.kv
      .map('breakers')
      .change([{ field: uid, from: undefined, to: JSON.stringify(record) }]);
    const renamed = await api.call('PUT', `${project.path}/endpoints/${uid}`, { name: 'other' });
    assert.equal(renamed.body.data.circuit_breaker, open);
    const moved = await api.call('PUT', `${project.path}/endpoints/${uid}`, {
      url: 'https://example.com/elsewhere',
    });
    assert.equal(moved.body.data.circuit_breaker, closed, 'it may be mended by its new URL');
  },
);

endpoints(
  'a list has the endpoints whose circuit breaker is in a state, by pages, and says so while KV is away',
  async () => {
    const { path, id } = await makeProject(api);
    const made = async (name: string) =>
      (await api.call('POST', `${path}/endpoints`, { name, url: 'https://example.com' })).body.data
        .uid as string;
    const names = ['open', 'also open', 'probed', 'counting', 'healthy'] as const;
    const uids = new Map<string, string>();
    for (const name of names) uids.set(name, await made(name));
    const times = {
      since_ms: 0,
      until_ms: Date.now() + 60_000,
      requests: 9,
      failures: 8,
      trips: 1,
      forget_ms: 0,
    };
    const record = (name: string, state: BreakerRecord['state'], project_id = id) => ({
      field: uids.get(name)!,
      from: undefined,
      to: JSON.stringify({ ...times, project_id, state } satisfies BreakerRecord),
    });
    const records = [
      ...[
        record('open', 'open'),
        record('also open', 'open'),
        record('probed', 'half_open'),
        record('counting', 'closed'),
      ],
      { ...record('open', 'open', project.id), field: newId() },
    ];
    await api.kv.map('breakers').change(records);
    const listed = async (query: string) => {
      const { body } = await api.call('GET', `${path}/endpoints?sort=ASC&${query}`);
      return body.data.content.map((it: { name: string }) => it.name);
    };
    assert.equal(await listed('circuitBreaker=open'), ['open', 'also open']);
    assert.equal(await listed('circuitBreaker=half_open'), ['probed']);
    assert.equal(await listed('circuitBreaker=open&circuitBreaker=half_open'), [
      'open',
      'also open',
      'probed',
    ]);
    assert.equal(await listed('circuitBreaker=closed'), ['counting', 'healthy']);
    assert.equal(await listed('circuitBreaker=closed&circuitBreaker=half_open'), [
      'probed',
      'counting',
      'healthy',
    ]);
    assert.equal(await listed('circuitBreaker=open&q=also&status=active'), ['also open']);
    assert.equal(await listed('status=paused&circuitBreaker=open'), []);
    const first = (
      await api.call('GET', `${path}/endpoints?sort=ASC&perPage=1&circuitBreaker=open`)
    ).body.data.pagination;
    assert.equal(
      await listed(`perPage=1&circuitBreaker=open&next_page_cursor=${first.next_page_cursor}`),
      ['also open'],
    );
    await api.kv
      .map('breakers')
      .change(records.map(({ field, to }) => ({ field, from: to, to: undefined })));
    assert.equal(await listed('circuitBreaker=open'), []);
    const { map } = api.kv;
    try {
      api.kv.map = () => ({
        ...map.call(api.kv, 'breakers'),
        all: () => Promise.reject(new Error('away')),
        some: () => Promise.reject(new Error('away')),
      });
      const { status, body } = await api.call('GET', `${path}/endpoints?circuitBreaker=closed`);
      assert.equal([status, body.code], [503, 'kv_away']);
      assert.is(
        (await api.call('GET', `${path}/endpoints`)).body.data.content[0].circuit_breaker,
        null,
      );
    } finally {
      api.kv.map = map;
    }
  },
);

endpoints('of the breakers of all tenants, only those asked for are read', async () => {
  const { uid } = (await create()).body.data;
  const at = `${project.path}/endpoints/${uid}`;
  const { map } = api.kv;
  const read: string[] = [];
  try {
    api.kv.map = (name) => {
      const it = map.call(api.kv, name);
      return {
        ...it,
        all: () => it.all().finally(() => read.push('all')),
        some: (fields) => it.some(fields).finally(() => read.push(fields.join())),
      };
    };
    for (const [method, path, body] of [
      ['GET', at, undefined],
      ['PUT', at, { name: 'renamed' }],
      ['PUT', `${at}/pause`, undefined],
      ['POST', `${at}/activate`, undefined],
      ['POST', `${at}/reset_circuit_breaker`, undefined],
      ['GET', `${project.path}/endpoints?perPage=1`, undefined],
      ['GET', `${project.path}/endpoints?circuitBreaker=open`, undefined],
      ['GET', `${project.path}/health`, undefined],
    ] as const) {
      const { status } = await api.call(method, path, body);
      assert.equal([status, read.includes('all')], [200, false], `${method} ${path}`);
    }
    assert.ok(read.includes(uid));
  } finally {
    api.kv.map = map;
  }
});

endpoints('an endpoint that is not there is a 404 on every route of it', async () => {
  for (const id of [newId(), 'nonsense', '%00']) {
    for (const [method, rest, body] of [
      ['GET', '', undefined],
      ['PUT', '', { name: 'x' }],
      ['DELETE', '', undefined],
      ['PUT', '/pause', undefined],
      ['POST', '/activate', undefined],
      ['POST', '/reset_circuit_breaker', undefined],
      ['PUT', '/expire_secret', {}],
    ] as const) {
      const answer = await api.call(method, `${project.path}/endpoints/${id}${rest}`, body);
      assert.equal([answer.status, answer.body.code], [404, 'not_found'], `${method} ${id}${rest}`);
    }
  }
});

endpoints.run();
