import fs from 'node:fs';
import http from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import plugin, { type Connection } from '@gateway/source-sqs';
import { loopback } from '../support/ports.js';
import { sqs } from '../support/sqs.js';
import { keyOf, onlyThese, sts } from '../support/sts.js';
import { until } from '../support/until.js';
import { failure, reading, validator } from './reading.js';

/**
 * The identity that reads the queue. HTTP servers stand in for the AWS services (container
 * credentials, STS); requests to the queue show the identity.
 */
const credentials = suite('plugins/source-sqs-credentials');

const queues = await sqs();
/** Access keys and session tokens of requests to the queue. */
const seen: { key: string | undefined; token: string | undefined }[] = [];

const queue = http.createServer((request, response) => {
  seen.push({
    key: keyOf(request),
    token: request.headers['x-amz-security-token'] as string | undefined,
  });
  const { host: _host, ...headers } = request.headers;
  const forwarded = http.request(
    `${queues.endpoint}${request.url}`,
    { method: request.method ?? 'POST', headers },
    (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    },
  );
  forwarded.on('error', () => response.destroy());
  request.pipe(forwarded);
});
const container = http.createServer((_request, response) => {
  const lasting = new Date(Date.now() + 3_600_000).toISOString();
  const given = {
    AccessKeyId: 'CONTAINER',
    SecretAccessKey: 'container-secret',
    Token: 'container-token',
    Expiration: lasting,
  };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(given));
});
const [endpoint, containerUrl] = (
  await Promise.all([queue, container].map((server) => loopback(server)))
).map((port) => `http://127.0.0.1:${port}`);
const roles = await sts();
const { assumed } = roles;

const environment = { ...process.env };
credentials.before.each(() => {
  onlyThese({ AWS_ENDPOINT_URL_STS: roles.url });
  seen.length = assumed.length = 0;
  roles.refusal = undefined;
});
credentials.after(async () => {
  process.env = environment;
  for (const server of [queue, container]) {
    server.close();
    server.closeAllConnections();
  }
  roles.close();
  await queues.close();
});

const context = (settings = {}) => ({ signal: new AbortController().signal, settings });
function keyless(more: Partial<Connection> = {}): Connection {
  const {
    access_key_id: _key,
    secret_key: _secret,
    ...connection
  } = queues.connection(queues.queue().name);
  return { ...connection, endpoint: endpoint!, ...more };
}
const role = { role_arn: 'arn:aws:iam::123456789012:role/reader' };
const distinct = (values: readonly (string | undefined)[]) => [...new Set(values)];

credentials('without a key the environment of the process is asked first', async () => {
  Object.assign(process.env, {
    AWS_ACCESS_KEY_ID: 'ENVIRONMENT',
    AWS_SECRET_ACCESS_KEY: 'env-secret',
  });
  await plugin.check(keyless(), context());
  assert.equal(distinct(seen.map(({ key }) => key)), ['ENVIRONMENT']);
});

credentials('without a key the role of a container reads the queue', async () => {
  process.env['AWS_CONTAINER_CREDENTIALS_FULL_URI'] = containerUrl;
  const { name, url } = queues.queue();
  const run = reading(plugin, keyless({ queue_name: name }));
  await until('a poll', () => run.states.some(({ state }) => state === 'reading'));
  await queues.send({ url }, ['one']);
  await until('the message', () => run.messages.length === 1);
  await run.stop();
  assert.equal(distinct(seen.map(({ key }) => key)), ['CONTAINER']);
  assert.equal(distinct(seen.map(({ token }) => token)), ['container-token']);
});

credentials('a role is assumed by the key of the source, with its external id', async () => {
  const keys = { access_key_id: 'STATIC', secret_key: 'static-secret' };
  await plugin.check(keyless({ ...keys, ...role, external_id: 'order-7' }), context());
  assert.is(assumed.length, 1);
  assert.is(assumed[0]!.key, 'STATIC');
  const { Action, RoleArn, ExternalId } = assumed[0]!.params;
  assert.equal([Action, RoleArn, ExternalId], ['AssumeRole', role.role_arn, 'order-7']);
  assert.equal(distinct(seen.map(({ key, token }) => `${key} ${token}`)), ['ROLE role-token']);
});

credentials('a role is assumed by the process when the source has no key', async () => {
  process.env['AWS_CONTAINER_CREDENTIALS_FULL_URI'] = containerUrl;
  await plugin.check(keyless(role), context());
  assert.equal(
    assumed.map(({ key }) => key),
    ['CONTAINER'],
  );
  assert.equal(distinct(seen.map(({ key }) => key)), ['ROLE']);
});

credentials('a process without credentials says so, and what to do', async () => {
  const error = await failure(plugin.check(keyless(), context()));
  assert.match(error.message, /^This process has no AWS credentials\.$/);
  assert.match(error.fix, /^Set access_key_id and secret_key; or give the machines/);
  assert.equal(seen, []);
});

credentials('a role that may not be assumed is named with who asked', async () => {
  roles.refusal =
    'User: arn:aws:iam::1:user/x is not authorized to perform: sts:AssumeRole on resource: y';
  const keys = { access_key_id: 'STATIC', secret_key: 'static-secret' };
  const error = await failure(plugin.check(keyless({ ...keys, ...role }), context()));
  assert.is(error.message, `The access key STATIC may not assume the role ${role.role_arn}.`);
  assert.match(error.fix, /trust policy.*sts:AssumeRole.*external_id/);
  assert.not.match(`${error.message} ${error.fix}`, 'static-secret');
});

credentials('an operator keeps the credentials of the process from sources', async () => {
  process.env['AWS_CONTAINER_CREDENTIALS_FULL_URI'] = containerUrl;
  const error = await failure(plugin.check(keyless(role), context({ default_credentials: false })));
  assert.match(error.message, 'source.sqs.default_credentials');
  assert.match(error.fix, 'access_key_id');
  await plugin.check(
    { ...queues.connection(queues.queue().name), endpoint: endpoint! },
    context({ default_credentials: false }),
  );
  assert.equal(distinct(seen.map(({ key }) => key)), ['test-access-key']);
});

credentials(
  'the schema takes a connection without a key, and half of a key does not belong there',
  () => {
    const valid = validator(
      JSON.parse(
        fs.readFileSync(
          new URL('../../plugins/source-sqs/connection.json', import.meta.url),
          'utf8',
        ),
      ) as object,
    );
    assert.ok(valid(keyless()));
    assert.ok(valid(keyless({ ...role, external_id: 'order-7' })));
    assert.not.ok(valid(keyless({ access_key_id: 'STATIC' })));
    assert.not.ok(valid(keyless({ secret_key: 'static-secret' })));
    assert.not.ok(valid(keyless({ external_id: 'order-7' })));
    assert.not.ok(valid(keyless({ role_arn: 'reader' })));
  },
);

credentials.run();
