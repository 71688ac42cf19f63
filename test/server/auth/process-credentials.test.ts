import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { silentLog } from '#core/logging/log';
import { bootstrapUser } from '#store/people/users';
import { startServer } from '@gateway/server';
import { activated, configOf, makeProject, refusal, startApi, type Api } from '../api.js';

const credentials = suite('server/auth/process-credentials');

const KEY = 'a-key-of-the-process-0123';
const OTHER = 'another-key-of-the-process';
const PAIR = 'ops:correct horse: battery';
const basic = (pair: string) => ({
  authorization: `Basic ${Buffer.from(pair).toString('base64')}`,
});

let api: Api;
credentials.before(async () => {
  api = await startApi({
    file: auth({ api_keys: [OTHER, KEY], basic: [PAIR, 'second:another password'] }),
  });
});
credentials.after(() => api.close());

function auth(settings: { api_keys?: string[]; basic?: string[]; native?: boolean }) {
  return { server: { http: { port: 0, bind: '127.0.0.1' }, auth: settings } };
}

credentials(
  'a key and a username with password of the process reach every organisation and every project',
  async () => {
    const stranger = await bootstrapUser(api.db.knex, {
      email: 'stranger@example.com',
      firstName: 's',
      lastName: 't',
    });
    const mine = await makeProject(api);
    const theirs = await api.call(
      'POST',
      '/projects',
      { name: 'theirs' },
      { key: stranger.api_key.key },
    );
    for (const options of [{ key: KEY }, { key: OTHER }, { key: null, headers: basic(PAIR) }]) {
      const get = async (path: string) =>
        (await api.call('GET', path, undefined, options)).body.data;
      const organisations = await get('/organisations');
      assert.equal(
        organisations.content.map(({ uid }: { uid: string }) => uid).sort(),
        [api.owner.organisation.id, stranger.organisation.id].sort(),
      );
      const uids = (await get('/projects')).content.map(({ uid }: { uid: string }) => uid);
      assert.ok(uids.includes(mine.id) && uids.includes(theirs.body.data.uid));
      assert.is((await get(mine.path)).uid, mine.id);
      assert.is((await get(`/projects/${theirs.body.data.uid}/endpoints`)).content.length, 0);
    }
  },
);

credentials(
  'the process creates a project in the organisation that it names, and deletes it',
  async () => {
    const create = (body: object) =>
      api.call('POST', '/projects', { name: 'made by the process', ...body }, { key: KEY });
    const unnamed = await create({});
    assert.equal(
      [unnamed.status, unnamed.body.message],
      [422, 'organisation_id: is missing: there are several organisations'],
    );
    assert.is((await create({ organisation_id: newId() })).status, 404);
    const made = await create({ organisation_id: api.owner.organisation.id });
    assert.equal([made.status, made.body.data.organisation_id], [201, api.owner.organisation.id]);
    const path = `/projects/${made.body.data.uid}`;
    assert.is((await api.call('PUT', path, { name: 'renamed' }, { key: KEY })).status, 200);
    assert.is((await api.call('DELETE', path, undefined, { key: KEY })).status, 200);
    assert.is((await api.call('GET', path, undefined, { key: KEY })).status, 404);
  },
);

credentials('what is wrong is refused, and the answer names every way that is open', async () => {
  const cases: [headers: Record<string, string>, sentence: RegExp][] = [
    [{}, /no credentials/],
    [basic('ops:wrong'), /username or the password is wrong/],
    [basic('nobody'), /username or the password is wrong/],
    [{ authorization: 'Basic %%%' }, /not of the form Bearer or Basic/],
    [{ authorization: `Bearer ${KEY}x` }, /contains no API key of this gateway/],
    [
      { authorization: `Bearer ${PAIR.replaceAll(' ', '')}` },
      /contains no API key of this gateway/,
    ],
    [basic(KEY), /username or the password is wrong/],
  ];
  for (const [headers, sentence] of cases) {
    const {
      status,
      body,
      headers: answered,
      text,
    } = await api.call('GET', '/projects', undefined, { key: null, headers });
    assert.is(status, 401);
    assert.match(body.message, sentence);
    assert.match(body.fix ?? '', /Bearer.*gateway bootstrap.*--api-auth.*Basic.*--basic-auth/);
    assert.is(answered.get('www-authenticate'), 'Bearer, Basic realm="gateway", charset="UTF-8"');
    for (const secret of [KEY, OTHER, 'correct horse']) assert.not.match(text, secret);
  }
  assert.is(
    (await api.call('GET', '/projects')).status,
    200,
    'stored keys are accepted beside them',
  );
});

credentials('with the stored keys off, they are refused with a sentence of their own', async () => {
  const config = configOf(api.db, auth({ api_keys: [KEY], native: false }));
  const server = await startServer({
    config,
    plugins: await activated(),
    log: silentLog,
    kv: api.kv,
  });
  const get = (key: string) =>
    fetch(`http://127.0.0.1:${server.port}/api/v1/organisations`, {
      headers: { authorization: `Bearer ${key}` },
    });
  try {
    assert.is((await get(KEY)).status, 200);
    const refused = await get(api.owner.api_key.key);
    assert.is(refused.status, 401);
    const { message, fix } = (await refused.json()) as { message: string; fix: string };
    assert.match(message, 'server.auth.native is off');
    assert.not.match(fix, /bootstrap|Basic/);
    assert.match(
      ((await (await get('some-other-key-of-nobody')).json()) as { message: string }).message,
      'is unknown',
    );
  } finally {
    await server.close();
  }
});

credentials('nobody could reach the API: that is told at the start', async () => {
  const { fix } = await refusal(configOf(api.db, auth({ native: false })), 'no_credentials');
  for (const flag of ['--api-auth', '--basic-auth', '--native']) assert.match(fix, flag);
});

credentials(
  'a credential that is too short or cannot be sent is told by its number and setting, without repeating it',
  async () => {
    const cases: [settings: Parameters<typeof auth>[0], sentence: RegExp, fix: RegExp][] = [
      [
        { api_keys: [KEY, 'hunter2'] },
        /entry 2 of server\.auth\.api_keys has 7 characters; .* at least 16/,
        /openssl.*--api-auth.*GATEWAY_API_AUTH/,
      ],
      [
        { api_keys: ['hunter2 hunter2 hunter2'] },
        /entry 1 of server\.auth\.api_keys contains spaces/,
        /--api-auth/,
      ],
      [
        { basic: ['hunter2'] },
        /entry 1 of server\.auth\.basic has no colon/,
        /<username>:<password>.*--basic-auth.*GATEWAY_BASIC_AUTH/,
      ],
      [{ basic: [':hunter2'] }, /has no username/, /--basic-auth/],
      [{ basic: ['hunter2:'] }, /has no password/, /--basic-auth/],
    ];
    for (const [settings, sentence, fix] of cases) {
      const error = await refusal(configOf(api.db, auth(settings)), 'credential_invalid');
      assert.match(error.message, sentence);
      assert.match(error.fix, fix);
      assert.not.match(`${error.message}${error.fix}`, 'hunter2');
    }
  },
);

credentials.run();
