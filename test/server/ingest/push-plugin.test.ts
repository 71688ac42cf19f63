import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { installation, manifestOf } from '../../core/plugin-packages.js';
import { until } from '../../support/until.js';
import { makeProject, mistakes, startApi, type Api } from '../api.js';
import { httpSource } from './http-source.js';

const push = suite('server/ingest/push-plugin');

/** A push source of a third party: each line is a message; broken as its connection says. */
const ACME = `import { PluginError } from '@gateway/plugin';
export default {
  check({ mode, ...connection }, { isNew, projectType }) {
    if (mode === 'unknown')
      throw new PluginError('The mode is wrong.', { fix: 'Correct it.', problems: [{ field: 'mode', sentence: 'is unknown' }] });
    return isNew ? { note: 'made for ' + projectType, mode, ...connection } : undefined;
  },
  open: ({ headers }, { mode }) => {
    if (mode === 'open-throws') throw new Error('secret of open');
    return mode === 'odd-credential' ? { credential: 7 } : { credential: headers['x-token'] ?? '' };
  },
  verify: ({ headers }, { token, mode }) =>
    mode === 'odd-verify' ? false : headers['x-token'] === token ? undefined : 'its x-token is wrong',
  receive: async ({ method, body }, { mode, note }, context) => {
    const text = Buffer.from(body).toString();
    const messages = () => text.split('\\n').map((line) => ({ body: Buffer.from(line), headers: { note }, idempotencyKey: line }));
    switch (mode) {
      case 'throws': throw new Error('secret of receive');
      case 'throws-null': throw null;
      case 'told': throw new PluginError('The key service does not answer.', { fix: 'Start it.' });
      case 'refuses': throw new PluginError('The body is no line.', { fix: 'Send lines.', status: 400 });
      case 'hangs': return new Promise(() => undefined);
      case 'exits': process.exit(1);
      case 'nothing': return undefined;
      case 'empty': return {};
      case 'many': return { messages: Array(1001).fill(messages()[0]) };
      case 'no-body': return { messages: [{ headers: {}, body: text }] };
      case 'odd-key': return { messages: [{ ...messages()[0], idempotencyKey: '' }] };
      case 'page': return { messages: messages(), answer: { contentType: 'text/html', body: '<script>' } };
      default:
        if (method !== 'POST') return {};
        context.log.info({}, 'Lines have arrived.');
        return { messages: messages(), answer: mode === 'answers' ? { status: 201, contentType: 'text/plain', body: 'thanks' } : undefined };
    }
  },
};`;
const SCHEMA = {
  type: 'object',
  required: ['token'],
  additionalProperties: false,
  properties: {
    token: { type: 'string', 'x-secret': true },
    host: { type: 'string', 'x-address': true },
    mode: { type: 'string' },
    note: { type: 'string' },
  },
};

const packages = installation({
  'gateway-source-acme': {
    gateway: manifestOf({
      ...{ kind: 'source', sourceKind: 'push', name: 'acme', connection: './connection.json' },
    }),
    files: { 'plugin.js': ACME, 'connection.json': JSON.stringify(SCHEMA) },
  },
});

let api: Api;
let project: Awaited<ReturnType<typeof makeProject>>;
push.before(async () => {
  api = await startApi({ pluginsDir: packages.root });
  project = await makeProject(api, { type: 'incoming' });
});
push.after(async () => {
  await api.close();
  packages.close();
});

const TOKEN = { 'x-token': 't0ken' };
const acme = (mode?: string) =>
  httpSource(api, project, {
    pub_sub: { type: 'acme', acme: { token: 't0ken', ...(mode && { mode }) } },
  });
const line = (n: number) => `{"event_type":"line","data":{"n":${n}}}`;

push('a source of it has a URL, and its connection is completed, sealed and masked', async () => {
  const { uid, url, view, path } = await acme();
  assert.match(url, /^\/ingest\/[\w-]{30}$/);
  assert.equal(
    [view.type, view.pub_sub, view.verifier, view.forward_headers],
    ['http', { type: 'acme', acme: { token: '********', note: 'made for incoming' } }, null, null],
  );
  const [row] = await api.db.rows<{ pub_sub: string; http: string }>(
    'select pub_sub::text as pub_sub, http::text as http from sources where id = $1',
    [uid],
  );
  assert.match(row!.pub_sub, '"sealed:');
  assert.is(row!.http, '{}');
  const { content } = (await api.call('GET', `${project.path}/sources/states`)).body.data;
  const [{ state }] = content as [{ state: string }];
  assert.is(state, 'active');
  const types = (await api.call('GET', `${project.path}/sources/types`)).body.data.content;
  assert.equal(
    (types as { name: string; kind: string }[]).map(({ name, kind }) => `${name} ${kind}`),
    ['acme push', 'kafka pull', 'sqs pull'],
  );

  const change = (fields: object) => api.call('PUT', path, fields);
  const renamed = await change({ name: 'b', pub_sub: { type: 'acme', acme: { mode: 'answers' } } });
  assert.equal(renamed.body.data.pub_sub.acme, { token: '********', mode: 'answers' });
  assert.equal(mistakes(await change({ verifier: { type: 'noop' } })), [
    'verifier does not belong to the type http',
  ]);
  assert.match(
    mistakes(await change({ pub_sub: { type: 'sqs', sqs: {} } })).join(),
    'pub_sub.type cannot be changed from acme',
  );
  assert.equal((await change({ name: 'c' })).body.data.pub_sub.acme.mode, 'answers');
});

push('what its check, its schema and the type of its sources refuse is told by field', async () => {
  const refused = async (fields: object) =>
    mistakes(await api.call('POST', `${project.path}/sources`, { name: 'x', ...fields }));
  const of = (connection: object) =>
    refused({ type: 'http', pub_sub: { type: 'acme', acme: connection } });
  assert.equal(await of({ token: 't', mode: 'unknown' }), ['pub_sub.acme.mode is unknown']);
  assert.equal(await of({}), ['pub_sub.acme.token is missing']);
  assert.match(
    (await refused({ type: 'pub_sub', pub_sub: { type: 'acme', acme: { token: 't' } } })).join(),
    'belong to outgoing projects',
  );
  const outgoing = await makeProject(api);
  const pulled = await api.call('POST', `${outgoing.path}/sources`, {
    ...{ name: 'x', type: 'pub_sub', pub_sub: { type: 'acme', acme: { token: 't' } } },
  });
  assert.match(mistakes(pulled).join(), 'give its source the type http');
  assert.equal(await refused({ type: 'http', pub_sub: { type: 'http', http: {} } }), [
    'pub_sub does not belong to the type http',
  ]);
});

push('its messages are committed, once per key, before it answers', async () => {
  const source = await acme();
  const body = `${line(1)}\n${line(2)}`;
  const first = await source.post(body, TOKEN);
  assert.equal(
    [first.status, first.body.data.outcome, first.body.data.events],
    [200, 'accepted', 2],
  );
  const rows = await api.db.rows(
    'select data, headers, idempotency_key as key from events where source_id = $1 order by data',
    [source.uid],
  );
  assert.equal(
    rows,
    [1, 2].map((n) => ({
      data: `{"n":${n}}`,
      headers: '{"note":"made for incoming"}',
      key: `${source.uid}:${line(n)}`,
    })),
  );
  assert.is((await source.post(body, TOKEN)).body.data.outcome, 'duplicate');
  const mixed = await source.post(`${line(1)}\n${line(3)}\nno line`, TOKEN);
  assert.equal(
    [mixed.status, mixed.body.data.outcome, mixed.body.data.events],
    [202, 'quarantined', 1],
  );
  const wrong = await source.post(body, { 'x-token': 'guessed' });
  assert.equal([wrong.status, wrong.body.code], [401, 'signature_invalid']);
  assert.match(wrong.body.message, 'its x-token is wrong');
  assert.is((await fetch(api.url + source.url, { headers: TOKEN })).status, 405);

  const answering = await acme('answers');
  const answered = await answering.post(line(4), TOKEN);
  assert.equal([answered.status, answered.text], [201, 'thanks']);
  const refusing = await (await acme('refuses')).post('x', TOKEN);
  assert.equal(
    [refusing.status, refusing.body.code, refusing.body.message, refusing.body.fix],
    [400, 'request_refused', 'The body is no line', 'Send lines.'],
  );
});

const broken: Readonly<Record<string, RegExp>> = {
  'open-throws': /its open threw an error$/,
  'odd-credential': /its open returns a number as credential$/,
  'odd-verify': /its verify returns a boolean instead of undefined or a reason$/,
  throws: /its receive threw an error$/,
  'throws-null': /The plugin threw null instead of an error with a message$/,
  told: /The key service does not answer$/,
  hangs: /its receive did not end within 10 s$/,
  exits: /The plugin calls process\.exit\(1\), which would end the gateway$/,
  nothing: /its receive returns undefined$/,
  empty: /its receive returns neither messages nor an answer$/,
  many: /its receive returns 1001 messages of a request with POST$/,
  'no-body': /its receive returns a message whose body is a string, not a Uint8Array/,
  'odd-key':
    /its receive returns a message whose idempotencyKey is not a text of 1 to 400 characters/,
  page: /its receive returns an answer whose contentType is neither/,
};

push('a broken one says so by its name, and others go on', async () => {
  const sound = await acme();
  const before = await api.db.rows('select from events');
  const posts = Object.entries(broken).map(async ([mode, reason]) => {
    const { post } = await acme(mode);
    const { status, body, text } = await post(line(5), TOKEN);
    assert.equal([status, body.code], [503, 'push_failed'], mode);
    assert.match(body.message, /^the source plugin acme failed: /, mode);
    assert.match(body.message, reason, mode);
    assert.not.match(text, 'secret of', mode);
  });
  const hanging = Promise.all(posts);
  await until('another source', async () => (await sound.post(line(6), TOKEN)).status === 200);
  await hanging;
  const after = await api.db.rows('select from events');
  assert.is(after.length, before.length + 1);
});

push.run();
