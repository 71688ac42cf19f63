import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { bootstrapUser } from '#store/people/users';
import { makeEndpoint, makeEvents, makeDelivery } from '../../store/made.js';
import { makeProject, mistakes, startApi, type Api } from '../api.js';

const projects = suite('server/routes/projects');

let api: Api;
projects.before(async () => {
  api = await startApi();
});
projects.after(() => api.close());

projects('a created project has the defaults and a key of its own, shown this once', async () => {
  const { status, body } = await api.call('POST', '/projects', { name: 'orders' });
  assert.is(status, 201);
  assert.is(body.status, true);
  const { uid, api_key: key, ...rest } = body.data;
  assert.match(key.key, /^gw_/);
  assert.is(rest.type, 'outgoing');
  assert.is(rest.organisation_id, api.owner.organisation.id);
  assert.equal(rest.config, {
    strategy: { type: 'exponential', duration: 10, retry_count: 10, max_seconds: 7200 },
    signature: { header: 'X-Gateway-Signature', hash: 'SHA256', encoding: 'hex' },
  });
  const shown = await api.call('GET', `/projects/${uid}`, undefined, { key: key.key });
  assert.is(shown.status, 200);
  assert.equal(shown.body.data, { uid, ...rest });
  assert.not.match(shown.text, key.key);
});

projects('projects are listed in pages', async () => {
  const { organisation, api_key: apiKey } = await bootstrapUser(api.db.knex, {
    email: 'pages@example.com',
    firstName: 'a',
    lastName: 'b',
  });
  const key = apiKey.key;
  for (const name of ['a', 'b', 'c']) await api.call('POST', '/projects', { name }, { key });
  const list = async (query: string) =>
    (await api.call('GET', `/projects?${query}`, undefined, { key })).body.data;
  const one = await list('perPage=2&sort=ASC');
  assert.equal(
    one.content.map((it: { name: string }) => it.name),
    ['a', 'b'],
  );
  assert.equal(
    [one.pagination.per_page, one.pagination.has_next_page, one.pagination.has_prev_page],
    [2, true, false],
  );
  const two = await list(
    `perPage=2&sort=ASC&direction=next&next_page_cursor=${one.pagination.next_page_cursor}`,
  );
  assert.equal(
    two.content.map((it: { name: string }) => it.name),
    ['c'],
  );
  const back = await list(
    `perPage=2&sort=ASC&direction=prev&prev_page_cursor=${two.pagination.prev_page_cursor}`,
  );
  assert.equal(back.content, one.content);
  assert.is((await list(`orgID=${organisation.id}`)).content.length, 3);
  assert.is((await list(`orgID=${api.owner.organisation.id}`)).content.length, 0);
});

projects('a change keeps what is not given', async () => {
  const { path } = await makeProject(api);
  const { body } = await api.call('PUT', path, { config: { signature: { hash: 'SHA512' } } });
  assert.is(body.data.name, 'orders');
  assert.equal(body.data.config.signature, {
    header: 'X-Gateway-Signature',
    hash: 'SHA512',
    encoding: 'hex',
  });
  const linear = { type: 'linear', duration: 5, retry_count: 3 };
  const again = await api.call('PUT', path, { name: 'refunds', config: { strategy: linear } });
  assert.equal(
    [again.body.data.name, again.body.data.config.strategy, again.body.data.config.signature.hash],
    ['refunds', linear, 'SHA512'],
  );
});

projects('every mistake is listed with its place', async () => {
  const wrong = {
    nmae: 'x',
    type: 'both',
    config: {
      strategy: { type: 'linear', duration: '5', retry_count: -1 },
      signature: { hash: 'MD5' },
    },
  };
  const answer = await api.call('POST', '/projects', wrong);
  assert.is(answer.status, 422);
  assert.is(answer.body.code, 'invalid_request');
  assert.equal(mistakes(answer).sort(), [
    'config.signature.hash must be one of SHA256, SHA512',
    'config.strategy.duration must be an integer',
    'config.strategy.retry_count must be at least 0',
    'name is missing',
    'nmae is not a field here; did you mean name?',
    'type must be one of outgoing, incoming',
  ]);
});

projects(
  'a project says how many days it keeps what is finished, or leaves it to the settings',
  async () => {
    const { path } = await makeProject(api);
    const put = (retention: unknown) => api.call('PUT', path, { config: { retention } });
    assert.equal((await put({ days: 7 })).body.data.config.retention, { days: 7 });
    await api.call('PUT', path, { config: { signature: { hash: 'SHA512' } } });
    assert.equal((await api.call('GET', path)).body.data.config.retention, { days: 7 });
    assert.equal(Object.keys((await put(null)).body.data.config).sort(), ['signature', 'strategy']);
    assert.equal(mistakes(await put({ days: 0 })), ['config.retention.days must be at least 1']);
    assert.equal(mistakes(await put({ days: 36_501 })), [
      'config.retention.days must be at most 36500',
    ]);
    assert.equal(mistakes(await put({ days: 1.5 })), ['config.retention.days must be an integer']);
    assert.equal(mistakes(await put({ weeks: 1 })).sort(), [
      'config.retention.days is missing',
      'config.retention.weeks is not a field here',
    ]);
    assert.equal((await api.call('GET', path)).body.data.config.retention, undefined);
  },
);

projects(
  'a project says what limit and what circuit breaker its endpoints have, or leaves it to the settings',
  async () => {
    const { path } = await makeProject(api);
    const config = async () => (await api.call('GET', path)).body.data.config;
    assert.equal(Object.keys(await config()).sort(), ['signature', 'strategy']);
    await api.call('PUT', path, {
      config: {
        ratelimit: { count: 1000, duration: 60 },
        circuit_breaker: { failure_threshold: 50 },
      },
    });
    await api.call('PUT', path, { config: { circuit_breaker: { error_timeout: 5 } } });
    const { ratelimit, circuit_breaker: breaker } = await config();
    assert.equal(
      [ratelimit, breaker],
      [
        { count: 1000, duration: 60 },
        { failure_threshold: 50, error_timeout: 5 },
      ],
    );
    await api.call('PUT', path, { config: { ratelimit: null, circuit_breaker: null } });
    assert.equal(Object.keys(await config()).sort(), ['signature', 'strategy']);
    const wrong = {
      ratelimit: { count: 1 },
      circuit_breaker: { failure_threshold: 101, sample_rate: 30 },
    };
    assert.equal(mistakes(await api.call('PUT', path, { config: wrong })).sort(), [
      'config.circuit_breaker.failure_threshold must be at most 100',
      'config.circuit_breaker.sample_rate is not a field here',
      'config.ratelimit.duration is missing',
    ]);
    const useless = { failure_threshold: 91, minimum_request_count: 51 };
    for (const [name, value] of Object.entries({ ...useless, off: 0 })) {
      const answer = await api.call('PUT', path, {
        config: { circuit_breaker: { [name === 'off' ? 'failure_threshold' : name]: value } },
      });
      assert.is(answer.status, 422);
      const expected =
        name === 'off'
          ? 'failure_threshold must be at least 1'
          : `${name} must be at most ${value - 1}, by the setting limits.${name}`;
      assert.equal(mistakes(answer), [`config.circuit_breaker.${expected}`]);
    }
  },
);

projects('the signature header must be a header that is free', async () => {
  for (const header of ['webhook-signature', 'Content-Type', 'with space']) {
    const answer = await api.call('POST', '/projects', {
      name: 'x',
      config: { signature: { header } },
    });
    assert.is(answer.status, 422, header);
    assert.match(mistakes(answer).join(), 'config.signature.header');
  }
});

projects(
  'a deleted project is gone, its key is revoked, and what waited is discarded',
  async () => {
    const { path, id, key } = await makeProject(api);
    const { id: endpointId } = await makeEndpoint(api.db, id);
    const [eventId] = await makeEvents(api.db, id, [{ atMs: Date.now() }]);
    await makeDelivery(api.db, { projectId: id, eventId: eventId!, endpointId, status: 'retry' });
    assert.is((await api.call('DELETE', path, undefined, { key })).status, 403);
    assert.is((await api.call('DELETE', path)).status, 200);
    assert.is((await api.call('GET', path)).status, 404);
    const refused = await api.call('GET', path, undefined, { key });
    assert.is(refused.status, 401);
    assert.match(refused.body.message, 'revoked');
    assert.equal(
      await api.db.rows('select status::text, reason from event_deliveries where project_id = $1', [
        id,
      ]),
      [{ status: 'discarded', reason: 'The project was deleted.' }],
    );
  },
);

projects.run();
