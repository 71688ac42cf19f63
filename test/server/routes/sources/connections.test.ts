import { connectionValidator } from '#server/http/schema';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PluginError } from '@gateway/plugin';
import { makeProject, mistakes, sourceOf, startApi, type Api } from '../../api.js';
import { read } from '../../../meta/house.js';

const connections = suite('server/routes/sources/connections');

const SCHEMA = {
  title: 'Spool',
  type: 'object',
  required: ['folder', 'token'],
  properties: {
    folder: { title: 'Folder', type: 'string' },
    token: { title: 'Token', type: 'string', 'x-secret': true },
    host: { title: 'Host', type: 'string', 'x-address': true },
  },
  additionalProperties: false,
};

let api: Api;
let path: string;
let tested: Record<string, unknown>[] = [];
connections.before(async () => {
  const spool = sourceOf(SCHEMA, (connection) => {
    tested.push(connection);
    if (connection['folder'] === 'full')
      return Promise.resolve({ message: 'The folder is nearly full.', fix: 'Empty it.' });
    if (connection['folder'] === 'gone')
      return Promise.reject(new PluginError('There is no such folder.', { fix: 'Set folder.' }));
    return Promise.resolve();
  });
  api = await startApi({ sources: { spool } });
  ({ path } = await makeProject(api));
});
connections.before.each(() => {
  tested = [];
});
connections.after(() => api.close());

const test = (body: Record<string, unknown>) =>
  api.call('POST', `${path}/sources/test_connection`, body);
const pubSub = (spool: Record<string, unknown>) => ({ pub_sub: { type: 'spool', spool } });

connections(
  'the schema of each active plugin is shown, so that a form can be made of it',
  async () => {
    const { content } = (await api.call('GET', `${path}/sources/types`)).body.data as {
      content: { name: string; connection: unknown }[];
    };
    const names = content.map(({ name }) => name);
    assert.equal([names.includes('kafka'), names.includes('spool')], [true, true]);
    assert.equal(content.find(({ name }) => name === 'spool')?.connection, SCHEMA);
  },
);

connections(
  'a connection is tested without a source, with the advice or the reason of its plugin',
  async () => {
    assert.equal((await test(pubSub({ folder: 'in', token: 't' }))).body.data, { advice: null });
    assert.equal((await test(pubSub({ folder: 'full', token: 't' }))).body.data, {
      advice: 'The folder is nearly full. Empty it.',
    });
    const { status, body } = await test(pubSub({ folder: 'gone', token: 't' }));
    assert.equal([status, body.code, body.fix], [422, 'source_check_failed', 'Set folder.']);
    assert.match(body.message, 'There is no such folder.');
    assert.equal(mistakes(await test(pubSub({ folder: 'in' }))), [
      'pub_sub.spool.token is missing',
    ]);
    assert.equal(mistakes(await test({})), ['pub_sub is missing; give pub_sub or source_id']);
    assert.equal((await api.call('GET', `${path}/sources`)).body.data.content, []);
  },
);

connections(
  'a stored source is tested with its secret, which is not sent to another address',
  async () => {
    const created = await api.call('POST', `${path}/sources`, {
      name: 'in',
      type: 'pub_sub',
      ...pubSub({ folder: 'in', token: 'opensesame' }),
    });
    const source_id = created.body.data.uid as string;
    tested = [];
    assert.is((await test({ source_id })).status, 200);
    assert.is((await test({ source_id, ...pubSub({ folder: 'out' }) })).status, 200);
    assert.equal(
      tested.map(({ folder, token }) => [folder, token]),
      [
        ['in', 'opensesame'],
        ['out', 'opensesame'],
      ],
    );
    const moved = await test({ source_id, ...pubSub({ folder: 'in', host: 'evil.example.com' }) });
    assert.match(mistakes(moved)[0]!, 'is not sent to another address');
    const http = await api.call('POST', `${path}/sources`, { name: 'hooks', type: 'http' });
    assert.is((await test({ source_id: http.body.data.uid })).status, 422);
  },
);

connections(
  'an address of a built-in source with a login is refused, without a word of the login',
  () => {
    const login = 'shop:hunter2@';
    const cases: [plugin: string, connection: object, field: string, sentence: string][] = [
      [
        'sqs',
        { endpoint: `http://${login}127.0.0.1:4566` },
        'endpoint',
        'must be a URL like http://127.0.0.1:4566, without a login or a path',
      ],
      [
        'sqs',
        { queue_name: `https://${login}sqs.eu-west-1.amazonaws.com/1/q` },
        'queue_name',
        'must be a name, or the URL or ARN of a queue, without a login',
      ],
      [
        'kafka',
        { brokers: [`${login}kafka:9092`] },
        'brokers.0',
        'must be host:port, without a login, which belongs in auth',
      ],
      [
        'kafka',
        { brokers: ['hunter2@kafka:9092'] },
        'brokers.0',
        'must be host:port, without a login, which belongs in auth',
      ],
      [
        'kafka',
        { auth: { type: 'oauthbearer', token_endpoint: `https://${login}id.example.com/token` } },
        'auth.token_endpoint',
        'must be a URL without a login, which belongs in client_id and client_secret',
      ],
    ];
    for (const [plugin, given, field, sentence] of cases) {
      const validate = connectionValidator(
        JSON.parse(read(`plugins/source-${plugin}/connection.json`)) as Record<string, unknown>,
        '',
      );
      const problems = validate({
        default_region: 'eu-west-1',
        queue_name: 'q',
        topic_name: 't',
        brokers: ['kafka:9092'],
        ...given,
      });
      assert.equal(
        problems.find((it) => it.field === field),
        { field, sentence },
      );
      assert.not.match(JSON.stringify(problems), 'hunter2');
    }
  },
);

connections.run();
