import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealer } from '#core/crypto/sealing';
import { deleteOldRequests } from '#store/people/idempotent-requests';
import { createsOnce } from '#server/api/idempotency';
import { routes } from '#server/routes/index';
import { resealSecrets } from '#store/config/secrets';
import { makeProject, mistakes, startApi, type Api } from '../api.js';

const idempotency = suite('server/api/idempotency');

let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
let owner: typeof project;
idempotency.before(async () => {
  api = await startApi({
    file: { limits: { idempotency_keys_per_credential: 3, event_types_per_project: 2 } },
  });
  project = await makeProject(api);
  owner = { ...project, key: api.owner.api_key.key };
});
idempotency.after(() => api.close());

const create = (key: string | undefined, path: string, body: object, as = project) =>
  api.call('POST', `${as.path}${path}`, body, {
    key: as.key,
    headers: key === undefined ? {} : { 'idempotency-key': key },
  });
const count = async (table: string) =>
  Number((await api.db.rows<{ n: string }>(`select count(*) as n from ${table}`))[0]!.n);
const ENDPOINT = { name: 'shop', url: 'https://example.com/hooks' };

idempotency('every route that creates takes the key, but events, whose keys are their own', () => {
  const creating = routes.filter(
    ({ method, status, reach }) => method === 'post' && status === 201 && reach !== 'open',
  );
  const others = creating.filter((route) => !createsOnce(route)).map(({ path }) => path);
  assert.equal(others, ['/events', '/events/fanout', '/events/broadcast']);
  assert.ok(creating.length > 10);
});

idempotency(
  'a create that is repeated with its key gets the first answer, with its secret, and creates nothing',
  async () => {
    const before = await count('endpoints');
    const first = await create('order 17', '/endpoints', ENDPOINT);
    assert.equal([first.status, first.headers.get('idempotent-replayed')], [201, null]);
    assert.match(first.body.data.secrets[0].value, /^whsec_/);
    const again = await create('order 17', '/endpoints', ENDPOINT);
    assert.equal(
      [again.status, again.headers.get('idempotent-replayed'), again.text],
      [201, 'true', first.text],
    );
    assert.is(again.headers.get('location'), first.headers.get('location'));
    assert.is(await count('endpoints'), before + 1);
    assert.is(await count(`audit_log where resource_id = '${first.body.data.uid}'`), 1);
    const [row] = await api.db.rows<{ answer: string }>(
      `select answer from idempotent_requests where key = 'order 17'`,
    );
    assert.match(row!.answer, /^sealed:v2:/);
    const key = async () =>
      (await create('a key', '/api-keys', { name: 'ci' }, owner)).body.data.key as string;
    const made = await key();
    assert.match(made, /^gw_/);
    assert.is(await key(), made);
  },
);

idempotency(
  'of equal requests at the same time one creates, and the others are told that it runs',
  async () => {
    const before = await count('endpoints');
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => create('race', '/endpoints', ENDPOINT)),
    );
    const made = answers.filter(({ status }) => status === 201);
    assert.is(new Set(made.map(({ body }) => body.data.uid)).size, 1);
    assert.is(made.filter(({ headers }) => headers.get('idempotent-replayed') === null).length, 1);
    for (const { status, body, headers } of answers)
      if (status !== 201)
        assert.equal(
          [status, body.code, headers.get('retry-after')],
          [409, 'request_in_progress', '1'],
        );
    assert.is(await count('endpoints'), before + 1);
  },
);

idempotency(
  'another request with the key is refused, and another credential has keys of its own',
  async () => {
    await create('shared', '/endpoints', ENDPOINT);
    for (const [path, body] of [
      ['/endpoints', { ...ENDPOINT, name: 'other' }],
      ['/event-types', { name: 'shared' }],
    ] as const) {
      const answer = await create('shared', path, body);
      assert.equal([answer.status, answer.body.code], [422, 'idempotency_key_reused']);
    }
    const other = await makeProject(api);
    const theirs = await create('shared', '/endpoints', ENDPOINT, other);
    assert.equal([theirs.status, theirs.headers.get('idempotent-replayed')], [201, null]);
    assert.is(
      (await create('shared', '/endpoints', ENDPOINT, { ...other, path: project.path })).status,
      403,
      'no answer for who may not reach it',
    );
  },
);

idempotency('a request that failed runs again, one that was interrupted does not', async () => {
  for (const name of ['a', 'b']) await create(undefined, '/event-types', { name });
  assert.is((await create('full', '/event-types', { name: 'c' })).body.code, 'project_full');
  await api.db.rows(`delete from event_types where name = 'a'`);
  assert.is((await create('full', '/event-types', { name: 'c' })).status, 201);
  assert.equal(mistakes(await create('ü', '/event-types', { name: 'd' })), [
    'Idempotency-Key must be 1 to 512 characters of ASCII',
  ]);
  await api.db.rows(`update idempotent_requests set answer = null where key = 'full'`);
  assert.is((await create('full', '/event-types', { name: 'c' })).body.code, 'request_in_progress');
  await api.db.rows(
    `update idempotent_requests set created_at = now() - interval '2 minutes' where key = 'full'`,
  );
  const unknown = await create('full', '/event-types', { name: 'c' });
  assert.equal([unknown.status, unknown.body.code], [409, 'outcome_unknown']);
});

idempotency('limits.idempotency_keys_per_credential: the oldest answers are dropped', async () => {
  const mine = await makeProject(api);
  const uid = async (key: string) =>
    (await create(key, '/endpoints', ENDPOINT, mine)).body.data.uid as string;
  const made = [];
  for (const key of ['1', '2', '3', '4']) made.push(await uid(key));
  assert.is(await uid('2'), made[1]);
  assert.is.not(await uid('1'), made[0]);
  assert.is(
    await count(
      `idempotent_requests where caller_id = (select caller_id from idempotent_requests where key = '4')`,
    ),
    3,
  );
});

idempotency('after 24 hours a key is as new, and maintenance deletes its answer', async () => {
  const mine = await makeProject(api);
  const { uid } = (await create('day', '/endpoints', ENDPOINT, mine)).body.data;
  const age = (hours: number) =>
    api.db.rows(
      `update idempotent_requests set created_at = now() - $1 * interval '1 hour' where key = 'day'`,
      [hours],
    );
  await age(23);
  await deleteOldRequests(api.db.pool);
  assert.is((await create('day', '/endpoints', ENDPOINT, mine)).body.data.uid, uid);
  await age(25);
  assert.is.not((await create('day', '/endpoints', ENDPOINT, mine)).body.data.uid, uid);
  await age(25);
  await deleteOldRequests(api.db.pool);
  assert.is(await count(`idempotent_requests where key = 'day'`), 0);
});

idempotency('answers that are sealed with a key that goes are deleted', async () => {
  await create('rotated', '/endpoints', ENDPOINT);
  const from = sealer(api.config.encryption_key);
  await resealSecrets(api.db.knex, {
    from,
    to: from,
    connectionSchema: () => undefined,
    dataPlanes: [api.db.pool],
    dryRun: false,
  });
  assert.is(await count('idempotent_requests'), 0);
});

idempotency.run();
