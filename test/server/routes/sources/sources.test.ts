import { type Advice, PluginError } from '@gateway/plugin';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealer } from '#core/crypto/sealing';
import { GatewayError } from '#core/errors/errors';
import { findSource, pauseSource, type SourceRow } from '#store/config/sources';
import { freePort } from '../../../support/ports.js';
import { pluginState } from '#core/plugins/plugin-table';
import { readPubSub } from '#server/routes/sources/pub-sub';
import { encryptionKey, makeProject, mistakes, sourceOf, startApi, type Api } from '../../api.js';

const sources = suite('server/routes/sources/sources');

const ON_LOOPBACK = { source: { allowed_networks: ['127.0.0.0/8', '::1/128'] } };

const schema = {
  type: 'object',
  additionalProperties: false,
  required: ['host', 'login'],
  properties: {
    host: { type: 'string', minLength: 1 },
    login: {
      type: 'object',
      additionalProperties: false,
      required: ['user', 'password'],
      properties: {
        user: { type: 'string' },
        password: { type: 'string', minLength: 4, 'x-secret': true },
        token: { type: 'string', 'x-secret': true },
      },
    },
  },
};
/** Connections checked by the plugin, and its verdict. */
const asked: unknown[] = [];
let verdict: Error | Advice | undefined;
let imports: GatewayError | undefined;
const working = sourceOf(schema, (connection) => {
  asked.push(connection);
  return verdict instanceof Error ? Promise.reject(verdict) : Promise.resolve(verdict);
});
const broker: typeof working = {
  ...working,
  load: () => (imports ? Promise.reject(imports) : working.load()),
};

let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
sources.before(async () => {
  api = await startApi({ file: { server: { connection_tests: 0 } }, sources: { broker } });
  project = await makeProject(api);
});
sources.after(() => api.close());
sources.before.each(() => {
  asked.length = 0;
  verdict = imports = undefined;
});

const { open } = sealer(encryptionKey);
const login = { user: 'ada', password: 'hunter2' };
const pubSub = (
  connection: unknown = { host: 'h', login },
  more: Record<string, unknown> = {},
) => ({
  type: 'broker',
  workers: 2,
  broker: connection,
  ...more,
});
const create = (fields: Record<string, unknown> = {}, query = '') =>
  api.call('POST', `${project.path}/sources${query}`, {
    name: 'orders',
    type: 'pub_sub',
    pub_sub: pubSub(),
    ...fields,
  });
const change = (id: string, fields: Record<string, unknown>, query = '') =>
  api.call('PUT', `${project.path}/sources/${id}${query}`, fields);
const stored = async (id: string) =>
  (await findSource(api.db.knex, project.id, id)) as SourceRow & {
    pub_sub: { broker: { host: string; login: typeof login } };
  };

sources(
  'a source is tested with its open secrets, sealed at rest, and masked in answers',
  async () => {
    const made = await create({ body_function: 'function transform(payload) { return payload; }' });
    assert.is(made.status, 201);
    assert.equal(asked, [{ host: 'h', login }]);
    assert.equal(made.body.data.pub_sub, {
      type: 'broker',
      workers: 2,
      broker: { host: 'h', login: { user: 'ada', password: '********' } },
    });
    const row = await stored(made.body.data.uid);
    assert.is(
      open(row.pub_sub.broker.login.password, ['sources', row.id, 'login', 'password']),
      'hunter2',
    );
    for (const path of [
      `${project.path}/sources`,
      `${project.path}/sources/${made.body.data.uid}`,
    ]) {
      const { text } = await api.call('GET', path);
      assert.not.match(text, /hunter2|sealed:/);
      assert.match(text, '"password":"********"');
    }
  },
);

sources(
  'a connection that does not work is refused with the words and the remedy of the plugin',
  async () => {
    verdict = new PluginError('There is no topic "orders" on h.', {
      fix: 'Create it, or check topic_name.',
    });
    const answer = await create();
    assert.equal(
      [answer.status, answer.body.code, answer.body.message, answer.body.fix],
      [
        422,
        'source_check_failed',
        'the broker connection does not work: There is no topic "orders" on h.',
        'Create it, or check topic_name.',
      ],
    );
    assert.is((await create({}, '?skip_check=true')).status, 201);
    assert.is((await create({ is_disabled: true })).status, 201);
  },
);

sources(
  'headers of a new source travel when they are named, and all of one that was made before that',
  async () => {
    const { uid, forward_headers: none } = (await create()).body.data;
    assert.equal(none, []);
    const at = async (id: string) => (await stored(id)).pub_sub.forward_headers;
    assert.equal(await at(uid), []);
    const named = await change(uid, { forward_headers: ['X-Shop'] });
    assert.equal(named.body.data.forward_headers, ['X-Shop']);
    assert.equal(asked.length, 1, 'the connection is not tested again');
    await change(uid, { pub_sub: pubSub({ host: 'other', login }) });
    await change(uid, { name: 'renamed' });
    assert.equal(await at(uid), ['X-Shop']);
    const given = await create({ forward_headers: ['a', 'b'] });
    assert.equal(given.body.data.forward_headers, ['a', 'b']);

    await api.db.rows(`update sources set pub_sub = pub_sub - 'forward_headers' where id = $1`, [
      uid,
    ]);
    const before = await api.call('GET', `${project.path}/sources/${uid}`);
    assert.is(before.body.data.forward_headers, null);
    await change(uid, { pub_sub: pubSub() });
    assert.is(await at(uid), undefined, 'it keeps all until a list is given');
    const wrong = await create({ forward_headers: ['a b'] });
    assert.equal([wrong.status, mistakes(wrong).length], [422, 1]);
  },
);

sources(
  'what the plugin advises although the source can be read is told in the answer',
  async () => {
    verdict = { message: 'Two of five workers are idle.', fix: 'Lower workers to 3.' };
    const made = await create();
    assert.equal(
      [made.status, made.body.message],
      [201, 'source created. Two of five workers are idle. Lower workers to 3.'],
    );
    const changed = await change(made.body.data.uid, {
      pub_sub: pubSub(undefined, { workers: 7 }),
    });
    assert.equal(
      [changed.status, changed.body.message],
      [200, 'source updated. Two of five workers are idle. Lower workers to 3.'],
    );
    assert.is((await change(made.body.data.uid, { name: 'other' })).body.message, 'source updated');
  },
);

sources(
  'the enabled sources of a project have so many workers as they may together, also when requests come at once',
  async () => {
    const few = await startApi({
      file: { limits: { workers_per_project: 5 } },
      sources: { broker },
    });
    try {
      const { path } = await makeProject(few);
      const post = (fields: object = {}) =>
        few.call('POST', `${path}/sources`, {
          name: 'o',
          type: 'pub_sub',
          pub_sub: pubSub(),
          ...fields,
        });
      const answers = await Promise.all(Array.from({ length: 6 }, () => post()));
      const made = answers.filter(({ status }) => status === 201);
      const refused = answers.filter(({ status }) => status === 422);
      assert.equal([made.length, refused.length], [2, 4]);
      const sentence =
        'would give the enabled sources of the project 6 workers, and limits.workers_per_project allows 5';
      assert.match(mistakes(refused[0]!).join(), sentence);
      const { uid } = made[0]!.body.data;
      const put = async (fields: object, id = uid) =>
        (await few.call('PUT', `${path}/sources/${id}`, fields)).status;
      const workers = (count: number) => ({ pub_sub: pubSub(undefined, { workers: count }) });
      assert.equal(
        [await put(workers(4)), await put(workers(3)), await put({ name: 'renamed' })],
        [422, 200, 200],
      );
      const { uid: disabled } = (await post({ is_disabled: true })).body.data;
      assert.equal(
        [await put({ is_disabled: false }, disabled), await put({ is_disabled: true })],
        [422, 200],
      );
      assert.is(await put({ is_disabled: false }, disabled), 200, 'a disabled source makes room');
      const other = await makeProject(few);
      const answer = await few.call('POST', `${other.path}/sources`, {
        name: 'o',
        type: 'pub_sub',
        ...workers(5),
      });
      assert.is(answer.status, 201, 'another project has a bound of its own');
    } finally {
      await few.close();
    }
  },
);

sources(
  'server.connection_tests: a project tests so many connections a second after twenty, and sources without a test are not counted',
  async () => {
    const few = await startApi({ sources: { broker } });
    try {
      const [{ path }, other] = [await makeProject(few), await makeProject(few)];
      const post = (of: string, query = '') =>
        few.call('POST', `${of}/sources${query}`, {
          name: 'o',
          type: 'pub_sub',
          pub_sub: pubSub(),
        });
      verdict = new PluginError('There is no topic.', { fix: 'Create it.' });
      const answers: Awaited<ReturnType<typeof post>>[] = [];
      for (let n = 0; n < 30; n++) answers.push(await post(path));
      const [tested, refused] = [422, 429].map((wanted) =>
        answers.filter(({ status }) => status === wanted),
      );
      assert.ok(tested!.length >= 20 && refused!.length > 0, `${tested!.length} were tested`);
      assert.is(asked.length, tested!.length);
      const { body, headers } = refused![0]!;
      assert.equal([body.code, headers.get('retry-after')], ['too_many_tests', '1']);
      assert.is((await post(path, '?skip_check=true')).status, 201);
      assert.is((await post(other.path)).status, 422, 'another project has a share of its own');
    } finally {
      await few.close();
    }
  },
);

sources('a plugin that cannot be imported is the reason, not an internal error', async () => {
  imports = new GatewayError('plugin_import', {
    module: 'gateway-nats/index.js',
    reason: 'no such library',
  });
  const { status, body } = await create();
  assert.equal(
    [status, body.code, body.message, body.fix],
    [
      422,
      'source_check_failed',
      'the broker connection does not work: importing gateway-nats/index.js failed: no such library',
      'reinstall the plugin; if the error persists, report it to its author',
    ],
  );
});

sources('the Kafka plugin of the gateway names an address where nobody listens', async () => {
  const address = `127.0.0.1:${await freePort()}`;
  const loopback = await startApi({ file: ON_LOOPBACK });
  try {
    const { path } = await makeProject(loopback);
    const pub_sub = { type: 'kafka', kafka: { brokers: [address], topic_name: 'orders' } };
    const answer = await loopback.call('POST', `${path}/sources`, {
      name: 'orders',
      type: 'pub_sub',
      pub_sub,
    });
    assert.equal([answer.status, answer.body.code], [422, 'source_check_failed']);
    assert.match(answer.body.message, `Nothing listens on ${address}.`);
    assert.ok(answer.body.fix);
  } finally {
    await loopback.close();
  }
});

sources(
  'a source reaches no loopback address unless allowed, and an answer from there is repeated to nobody',
  async () => {
    let connections = 0;
    const inside = createServer((request, response) => {
      request.resume();
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({
          __type: 'inside',
          message: 'words from inside',
          error: 'words-from-inside',
        }),
      );
    }).on('connection', () => connections++);
    await once(inside.listen(0, '127.0.0.1'), 'listening');
    const { port } = inside.address() as AddressInfo;
    const kafka = { brokers: [`127.0.0.1:${port}`], topic_name: 'orders' };
    const sqs = {
      access_key_id: 'AKIA',
      secret_key: 'hunter2',
      default_region: 'eu-west-1',
      queue_name: 'orders',
    };
    const attempts = (host: string, at = port) => [
      { type: 'sqs', sqs: { ...sqs, endpoint: `http://${host}:${at}` } },
      { type: 'kafka', kafka: { ...kafka, brokers: [`${host}:${at}`] } },
    ];
    const closed = await freePort();
    const post = async (to: Api, pub_sub: object) => {
      const { path } = await makeProject(to);
      return to.call('POST', `${path}/sources`, { name: 'orders', type: 'pub_sub', pub_sub });
    };
    const loopback = await startApi({ file: ON_LOOPBACK });
    try {
      for (const pub_sub of [
        ...attempts('127.0.0.1'),
        ...attempts('localhost'),
        attempts('2130706433')[0]!,
      ]) {
        const answer = await post(api, pub_sub);
        assert.is(answer.status, 422, JSON.stringify(pub_sub));
        assert.match(answer.text, 'is in a network that sources may not reach');
        assert.match(answer.body.fix!, 'source.allowed_networks');
      }
      for (const [n, pub_sub] of attempts('127.0.0.1', closed).entries()) {
        const [nobody, somebody] = [
          await post(api, pub_sub),
          await post(api, attempts('127.0.0.1')[n]!),
        ];
        assert.is(
          nobody.text,
          somebody.text.replaceAll(String(port), String(closed)),
          'whether or not something listens',
        );
      }
      // In a URL the number is an address; elsewhere it is a name.
      assert.is((await post(api, attempts('2130706433')[1]!)).status, 422);
      assert.is(connections, 0);

      const answer = await post(loopback, attempts('127.0.0.1')[0]!);
      assert.is(answer.status, 422);
      assert.ok(connections > 0);
      assert.not.match(answer.text, /words.from.inside/);
    } finally {
      await loopback.close();
      inside.close();
    }
  },
);

sources('a Kafka source is taken as the specification writes it, in any case', async () => {
  const auth = {
    type: 'SCRAM',
    hash: 'sha512',
    username: 'ada',
    password: 'hunter2',
    tls: 'Enabled',
  };
  const kafka = { brokers: ['127.0.0.1:1'], topic_name: 'orders', auth };
  const made = await create({ pub_sub: { type: 'kafka', kafka } }, '?skip_check=true');
  assert.is(made.status, 201, made.text);
  assert.equal(made.body.data.pub_sub.kafka.auth, {
    ...auth,
    type: 'scram',
    hash: 'SHA512',
    tls: true,
    password: '********',
  });
  const plain = { type: 'PLAIN', username: 'ada', password: 'hunter2', tls: 'disabled' };
  const changed = await change(
    made.body.data.uid,
    { pub_sub: { type: 'kafka', kafka: { ...kafka, auth: plain } } },
    '?skip_check=true',
  );
  assert.equal(changed.body.data.pub_sub.kafka.auth, {
    ...plain,
    type: 'plain',
    tls: false,
    password: '********',
  });
});

sources(
  'a secret is kept when its mask comes back or it is left out, and its sealed text does not change',
  async () => {
    const made = (await create()).body.data;
    const before = await stored(made.uid);
    asked.length = 0;
    for (const connection of [
      made.pub_sub.broker,
      { host: 'h', login: { user: 'ada' } },
      { host: 'h', login },
    ]) {
      const answer = await change(made.uid, { pub_sub: pubSub(connection) });
      assert.is(answer.status, 200);
      assert.equal((await stored(made.uid)).pub_sub, before.pub_sub);
    }
    assert.equal(asked, [], 'an unchanged connection is not tested again');

    await change(made.uid, {
      pub_sub: pubSub({ host: 'h', login: { user: 'ada', password: 'new-one' } }),
    });
    assert.is(
      open((await stored(made.uid)).pub_sub.broker.login.password, [
        'sources',
        made.uid,
        'login',
        'password',
      ]),
      'new-one',
    );
  },
);

sources(
  'a connection that moves asks for its secrets again, and the test does not send them either',
  async () => {
    const { uid } = (await create()).body.data;
    const before = await stored(uid);
    asked.length = 0;
    const put = (connection: unknown, query = '') =>
      change(uid, { pub_sub: pubSub(connection) }, query);
    const sentence = (field: string) =>
      `pub_sub.broker.login.password is not sent to another address: pub_sub.broker.${field} changes; give the secret again, or null to remove it`;
    for (const kept of [{ password: '********' }, {}]) {
      for (const query of ['', '?skip_check=true'])
        assert.equal(
          mistakes(await put({ host: 'other', login: { user: 'ada', ...kept } }, query)),
          [sentence('host')],
        );
      // The schema marks no address, so every field except secrets is part of it.
      assert.equal(mistakes(await put({ host: 'h', login: { user: 'eve', ...kept } })), [
        sentence('login.user'),
      ]);
    }
    assert.equal(asked, []);
    assert.equal((await stored(uid)).pub_sub, before.pub_sub);
    assert.is((await put({ host: 'other', login })).status, 200);
    assert.equal(asked, [{ host: 'other', login }]);
  },
);

sources(
  'what is marked as the address of a connection asks for its secrets again, and nothing else does',
  async () => {
    const auth = { type: 'plain', username: 'ada', tls: true };
    const kafka = { brokers: ['127.0.0.1:1'], topic_name: 'orders', auth };
    const made = await create(
      { pub_sub: { type: 'kafka', kafka: { ...kafka, auth: { ...auth, password: 'hunter2' } } } },
      '?skip_check=true',
    );
    const put = (connection: object) =>
      change(
        made.body.data.uid,
        { pub_sub: { type: 'kafka', kafka: { ...kafka, ...connection } } },
        '?skip_check=true',
      );
    for (const [connection, field] of [
      [{ brokers: ['127.0.0.1:2'] }, 'brokers'],
      [{ auth: { ...auth, tls: false } }, 'auth.tls'],
      [{ auth: { type: 'plain', username: 'ada' } }, 'auth.tls'],
      [{ auth: { ...auth, ca: '-----BEGIN CERTIFICATE-----' } }, 'auth.ca'],
    ] as const)
      assert.match(
        mistakes(await put(connection)).join(),
        `pub_sub.kafka.auth.password is not sent to another address: pub_sub.kafka.${field}`,
      );
    assert.is(
      (await put({ topic_name: 'invoices', auth: { ...auth, username: 'eve' } })).status,
      200,
    );

    const keys = {
      access_key_id: 'AKIA',
      secret_key: 'hunter2',
      default_region: 'eu-west-1',
      queue_name: 'orders',
    };
    const queue = await create({ pub_sub: { type: 'sqs', sqs: keys } }, '?skip_check=true');
    const sqs = { ...keys, secret_key: '********', endpoint: 'http://127.0.0.1:1' };
    const answer = await change(
      queue.body.data.uid,
      { pub_sub: { type: 'sqs', sqs } },
      '?skip_check=true',
    );
    assert.match(
      mistakes(answer).join(),
      'pub_sub.sqs.secret_key is not sent to another address: pub_sub.sqs.endpoint',
    );
  },
);

sources('null takes a stored secret away, where leaving it out keeps it', async () => {
  const keys = { access_key_id: 'AKIA', secret_key: 'hunter2' };
  const queue = { default_region: 'eu-west-1', queue_name: 'orders' };
  const made = await create(
    { pub_sub: { type: 'sqs', sqs: { ...keys, ...queue } } },
    '?skip_check=true',
  );
  const put = (connection: object) =>
    change(made.body.data.uid, { pub_sub: { type: 'sqs', sqs: connection } }, '?skip_check=true');
  assert.is((await put(queue)).status, 422, 'its key would be half gone');
  const without = await put({ ...queue, secret_key: null });
  assert.is(without.status, 200, without.text);
  assert.equal(without.body.data.pub_sub.sqs, queue);
});

sources('a mask for which nothing is stored is no secret', async () => {
  const answer = await create({
    pub_sub: pubSub({ host: 'h', login: { user: 'ada', password: '********' } }),
  });
  assert.equal(mistakes(answer), [
    'pub_sub.broker.login.password is the mask of a secret, but none is stored; give the secret itself',
  ]);
});

sources(
  'a broken source may be disabled and renamed without a test, and is tested when it is switched on',
  async () => {
    const { uid } = (await create()).body.data;
    verdict = new PluginError('It is away.', { fix: 'Start it.' });
    asked.length = 0;
    assert.is((await change(uid, { is_disabled: true, name: 'off' })).body.data.is_disabled, true);
    assert.is((await change(uid, { pub_sub: pubSub({ host: 'elsewhere', login }) })).status, 200);
    assert.equal(asked, []);
    assert.is((await change(uid, { is_disabled: false })).status, 422);
    assert.equal(asked, [{ host: 'elsewhere', login }]);
    assert.is((await change(uid, { is_disabled: false }, '?skip_check=true')).status, 200);
  },
);

sources(
  'a connection is checked against the schema of its plugin, and no value of it is repeated',
  async () => {
    const answer = await create({
      pub_sub: pubSub({ hots: 'h', login: { user: 'ada', password: 'abc' } }),
    });
    assert.is(answer.status, 422);
    assert.equal(mistakes(answer).sort(), [
      'pub_sub.broker.host is missing',
      'pub_sub.broker.hots is not a field here; did you mean host?',
      'pub_sub.broker.login.password must have at least 4 characters',
    ]);
    assert.not.match(answer.text, 'abc');
    assert.equal(asked, []);
  },
);

sources('a type that is not active is refused with those that are', async () => {
  const answer = await create({ pub_sub: { type: 'kafak', kafak: {} } });
  assert.is(answer.status, 422);
  assert.match(
    mistakes(answer).join(),
    /pub_sub\.type is not an active source plugin; active plugins: broker, kafka.*; did you mean kafka\?/,
  );
});

sources('a type whose plugin is inactive is refused with the reason and the fix', () => {
  const plugin = { name: 'rabbit', kind: 'source', version: '1.0.0', from: 'a' } as const;
  const table = [pluginState(plugin, new GatewayError('plugin_flag_off', { flag: 'rabbit' }))];
  const plugins = { sources: new Map(), pushSources: new Map(), table };
  const call = { plugins, id: '', sealer: sealer(encryptionKey) };
  try {
    readPubSub({ type: 'rabbit', rabbit: {} }, undefined, call as never);
    assert.unreachable();
  } catch (error) {
    assert.match(
      JSON.stringify((error as GatewayError).details),
      /names a source plugin that is inactive: the feature flag rabbit is off; .*--enable-feature-flag=rabbit/,
    );
  }
});

sources('the connection stands under the name of its type and nothing else does', async () => {
  assert.equal(mistakes(await create({ pub_sub: { type: 'broker' } })), [
    'pub_sub.broker is missing',
  ]);
  assert.equal(mistakes(await create({ pub_sub: pubSub([]) })), [
    'pub_sub.broker must be an object',
  ]);
  assert.equal(mistakes(await create({ pub_sub: pubSub(undefined, { kafka: {} }) })), [
    'pub_sub.kafka does not belong to the type broker',
  ]);
  assert.equal(mistakes(await create({ pub_sub: pubSub(undefined, { workers: 0 }) })), [
    'pub_sub.workers must be at least 1',
  ]);
});

sources(
  'a function that does not compile or has no transform is refused with its line',
  async () => {
    const wrong = await create({
      body_function: 'function transform(payload) {\n  return payload +;\n}',
    });
    assert.match(mistakes(wrong).join(), /body_function does not compile: .* on line 2/);
    assert.match(
      mistakes(
        await create({ body_function: 'function change(payload) { return payload; }' }),
      ).join(),
      'body_function has no function named transform',
    );
    assert.is((await create({ body_function: null })).body.data.body_function, null);
    assert.is(
      (await create({ body_function: 'globalThis.ran = true; const transform = (p) => p;' }))
        .status,
      201,
    );
    assert.is(
      (globalThis as { ran?: boolean }).ran,
      undefined,
      'the text must not run in the server',
    );
  },
);

sources(
  'a source that agents have paused tells why, and is resumed by a corrected function, by switching it on, or as it is',
  async () => {
    const loop = 'function transform() { for (;;); }';
    const { uid } = (await create({ body_function: loop })).body.data;
    const path = `${project.path}/sources/${uid}`;
    const pause = async () => {
      const paused = { reason: 'It loops.', by: 'host:1', seconds: 600, facts: null };
      assert.ok(await pauseSource(api.db.pool, project.id, uid, paused));
      return (await api.call('GET', path)).body.data;
    };
    const age = () =>
      api.db.rows(`update sources set paused_at = paused_at - interval '1 minute' where id = $1`, [
        uid,
      ]);
    const lastsMs = (row: { paused_at: string; resumes_at: string }) =>
      Date.parse(row.resumes_at) - Date.parse(row.paused_at);
    const shown = await pause();
    assert.equal([shown.pause_reason, shown.paused_by, shown.pauses], ['It loops.', 'host:1', 1]);
    assert.is(lastsMs(shown), 600_000);
    assert.ok(
      (await change(uid, { name: 'another', body_function: loop })).body.data.paused_at,
      'the same function is no correction',
    );

    const good = 'function transform(payload) { return payload; }';
    assert.is(
      lastsMs((await change(uid, { body_function: good })).body.data),
      60_000,
      'a change does not end it at once',
    );
    const early = await api.call('POST', `${path}/resume`);
    assert.match(early.body.message, /^source resumes at 20.*Z$/);
    assert.is(lastsMs(early.body.data), 60_000);
    await age();
    const corrected = (await change(uid, { body_function: loop })).body.data;
    assert.equal(
      [corrected.paused_at, corrected.resumes_at, corrected.pause_reason, corrected.pauses],
      [null, null, null, 0],
    );
    await pause();
    await age();
    await change(uid, { is_disabled: true });
    assert.is((await change(uid, { is_disabled: false })).body.data.paused_at, null);
    await pause();
    await age();
    const resumed = await api.call('POST', `${path}/resume`);
    assert.equal(
      [resumed.status, resumed.body.message, resumed.body.data.paused_at],
      [200, 'source resumed', null],
    );
    assert.is((await api.call('POST', `${project.path}/sources/${project.id}/resume`)).status, 404);
  },
);

sources(
  'a person pauses a source until somebody resumes it; a changed function and switching it off and on do not',
  async () => {
    const { uid } = (await create()).body.data;
    const path = `${project.path}/sources/${uid}`;
    const paused = await api.call('POST', `${path}/pause`);
    assert.equal([paused.status, paused.body.message], [200, 'source paused']);
    const { paused_at: at, resumes_at, pause_reason, paused_by, pauses } = paused.body.data;
    assert.equal(
      [resumes_at, pause_reason, pauses],
      [null, 'The source was paused over the management API.', 0],
    );
    assert.is(paused_by, `user ${api.owner.user.id}`);
    assert.is(
      (await api.call('POST', `${path}/pause`)).body.data.paused_at,
      at,
      'the pause is the same',
    );
    await change(uid, { body_function: 'function transform(payload) { return payload; }' });
    await change(uid, { is_disabled: true });
    assert.is((await change(uid, { is_disabled: false })).body.data.paused_at, at);
    const resumed = await api.call('POST', `${path}/resume`);
    assert.equal(
      [resumed.body.message, resumed.body.data.paused_at, resumed.body.data.paused_by],
      ['source resumed', null, null],
    );
    const byKey = await api.call('POST', `${path}/pause`, undefined, { key: project.key });
    assert.match(byKey.body.data.paused_by, /^API key gw_[A-Za-z0-9]+_…$/);
    assert.not.match(byKey.text, project.key);
    const other = await makeProject(api, { name: 'other' });
    assert.is((await api.call('POST', `${other.path}/sources/${uid}/pause`)).status, 404);
  },
);

sources('pub_sub sources belong to outgoing projects', async () => {
  const incoming = await makeProject(api, { type: 'incoming' });
  const answer = await api.call('POST', `${incoming.path}/sources`, {
    name: 'x',
    type: 'pub_sub',
    pub_sub: pubSub(),
  });
  assert.is(answer.status, 422);
  assert.match(mistakes(answer).join(), 'outgoing');
});

sources('a deleted source is gone', async () => {
  const { uid } = (await create()).body.data;
  assert.is((await api.call('DELETE', `${project.path}/sources/${uid}`)).status, 200);
  for (const method of ['GET', 'DELETE'])
    assert.is((await api.call(method, `${project.path}/sources/${uid}`)).status, 404);
  assert.is((await change(uid, { name: 'x' })).status, 404);
});

sources.run();
