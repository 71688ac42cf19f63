import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeProject, startApi } from '../server/api.js';

const dialect = suite('convoy/dialect');

const api = await startApi({ file: { root_path: '/hooks' } });
dialect.after(() => api.close());
const project = await makeProject({
  ...api,
  call: (method, path, body) => api.call(method, `/hooks/api/v1${path}`, body),
});
const call = (method: string, path: string, body?: unknown) =>
  api.call(method, `/hooks/convoy/api/v1${path}`, body);
const own = (method: string, path: string, body?: unknown) =>
  api.call(method, `/hooks/api/v1${project.path}${path}`, body);
const url = 'https://example.com/hooks';

dialect(
  'durations as text, an empty member and another name of basic authentication are understood, and answered in the same words',
  async () => {
    const authentication = {
      type: 'basic_auth',
      basic_auth: { username: 'ada', password: 'hunter2' },
      api_key: null,
    };
    const given = {
      url,
      http_timeout: '1m30s',
      rate_limit: 5,
      rate_limit_duration: '10s',
      owner_id: '',
      authentication,
      events: ['*'],
    };
    const { status, body } = await call('POST', `${project.path}/endpoints`, given);
    assert.is(status, 201);
    assert.match(body.message, /; ignored: events$/);
    const { data } = body;
    assert.equal(
      [data.name, data.http_timeout, data.rate_limit_duration, data.owner_id],
      ['example.com', 90, 10, null],
    );
    assert.equal(data.authentication, {
      type: 'basic_auth',
      basic_auth: { username: 'ada', password: '********' },
    });
    assert.is((await own('GET', `/endpoints/${data.uid}`)).body.data.authentication.type, 'basic');
  },
);

dialect('what cannot be honoured is refused by 400, and named', async () => {
  for (const [fields, field] of [
    [{ events: ['order.paid'] }, 'events'],
    [{ is_disabled: true }, 'is_disabled'],
    [{ content_type: 'application/x-www-form-urlencoded' }, 'content_type'],
  ] as const) {
    const { status, body } = await call('POST', `${project.path}/endpoints`, {
      name: 'x',
      url,
      ...fields,
    });
    assert.equal(
      [status, body.code, body.errors!.map((it) => it.field)],
      [400, 'invalid_request', [field]],
    );
  }
  assert.is(
    (
      await call('POST', `${project.path}/subscriptions`, {
        name: 'x',
        delivery_mode: 'at_most_once',
      })
    ).status,
    400,
  );
  assert.is((await call('GET', `${project.path}/events?endpointId=x`)).status, 400);
  for (const word of ['constructor', 'toString', '__proto__']) {
    assert.is((await call('GET', `${project.path}/events?status=${word}`)).status, 400, word);
    assert.is(
      (await call('POST', `${project.path}/endpoints?${word}=x`, { name: 'x', url })).status,
      400,
      word,
    );
  }
});

dialect('the API itself stays as it is', async () => {
  for (const query of ['status=Success', 'eventType=x', 'next_page_cursor='])
    assert.is((await own('GET', `/eventdeliveries?${query}`)).status, 422, query);
  assert.is((await own('POST', '/endpoints', { name: 'x', url, events: ['*'] })).status, 422);
});

dialect('groups are projects, with and without the project in the base URL', async () => {
  const { body } = await call('POST', '/groups', {
    name: 'shop',
    logo_url: 'https://example.com/logo.png',
    config: {
      disable_endpoint: true,
      strategy: { type: 'default', default: { intervalSeconds: 7, retryLimit: 3 } },
    },
  });
  assert.equal(body.data.config.strategy, { type: 'linear', duration: 7, retry_count: 3 });
  assert.match(body.message, 'ignored: logo_url, config.disable_endpoint');
  assert.is((await call('GET', `${project.path}/groups/${body.data.uid}`)).body.data.name, 'shop');
  assert.equal((await call('GET', '/groups?page=1')).body.data.length, 2);
  assert.is((await call('GET', '/groupings')).status, 404);
});

dialect('a duplicate is created as well, and its data keeps its digits', async () => {
  const event =
    '{"event_type":"order.paid","idempotency_key":"once","data":{"price":1.10,"id":9007199254740993},"custom_headers":{"X-A":"b"}}';
  const [first, second] = [
    await call('POST', `${project.path}/events`, event),
    await call('POST', `${project.path}/events`, event),
  ];
  assert.equal([first.status, second.status], [201, 201]);
  assert.equal(
    [first.body.data.uid, second.body.data.is_duplicate_event],
    [second.body.data.uid, true],
  );
  const shown = await call('GET', `${project.path}/events/${first.body.data.uid}`);
  assert.match(shown.text, '"data":{"price":1.10,"id":9007199254740993}');
  assert.equal([shown.body.data.status, shown.body.data.headers], ['Pending', { 'x-a': ['b'] }]);
});

dialect(
  'a source of the type http is made with a verifier that is spelled out beside a provider',
  async () => {
    const hmac = {
      header: 'X-Hub-Signature-256',
      hash: 'SHA256',
      encoding: 'hex',
      secret: 's3cret',
    };
    const verifier = {
      type: 'hmac',
      hmac,
      basic_auth: null,
      api_key: { header_name: '', header_value: '' },
    };
    const given = {
      name: 'hooks',
      type: 'http',
      provider: 'github',
      verifier,
      custom_response: { body: '', content_type: '' },
      pub_sub: {},
    };
    const { status, body } = await call('POST', `${project.path}/sources`, given);
    assert.equal(
      [status, body.data.type, body.data.verifier],
      [201, 'http', { type: 'hmac', hmac: { ...hmac, secret: '********' } }],
    );
    assert.match(body.data.url, `/ingest/${body.data.mask_id}`);
  },
);

dialect.run();
