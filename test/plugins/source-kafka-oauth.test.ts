import fs from 'node:fs';
import http from 'node:http';
import { inspect } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import plugin, { type Auth } from '@gateway/source-kafka';
import { proxyProcess } from '#core/http/process-proxy';
import { sourceGuard } from '#core/http/ssrf-guard';
import { clientCredentials, oauthBearer } from '#source-kafka/oauth-bearer';
import { httpProxy } from '../support/http-proxy.js';
import { kafka } from '../support/kafka.js';
import { freePort, loopback } from '../support/ports.js';
import { until } from '../support/until.js';
import { failure, reading, validator } from './reading.js';

const oauth = suite('plugins/source-kafka-oauth');

const broker = await kafka();
const asked: {
  readonly authorization: string | undefined;
  readonly form: Record<string, string>;
}[] = [];
let answer: { status: number; body: string };
const provider = http.createServer((request, response) => {
  void request.toArray().then((parts) => {
    const form = Object.fromEntries(new URLSearchParams(Buffer.concat(parts).toString()));
    asked.push({ authorization: request.headers.authorization, form });
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
  });
});
const token_endpoint = `http://127.0.0.1:${await loopback(provider)}/token`;

const schema = new URL('../../plugins/source-kafka/connection.json', import.meta.url);
const isValid = validator(JSON.parse(fs.readFileSync(schema, 'utf8')) as object);

/** An unsigned token, which the broker accepts until it expires. */
function jwt(secondsLeft: number): string {
  const part = (content: object) => Buffer.from(JSON.stringify(content)).toString('base64url');
  const now = Math.floor(Date.now() / 1000);
  return `${part({ alg: 'none' })}.${part({ sub: 'gateway', iat: now - 7200, exp: now + secondsLeft })}.`;
}
const giving = (token: string, expiresIn = 3600) => ({
  status: 200,
  body: JSON.stringify({ access_token: token, expires_in: expiresIn }),
});

oauth.before.each(() => {
  asked.length = 0;
  answer = giving(jwt(3600));
});
oauth.after(async () => {
  provider.close();
  provider.closeAllConnections();
  await broker.close();
});

const client = { token_endpoint, client_id: 'gate:way', client_secret: 's3cret/é' };
const auth: Auth = { type: 'oauthbearer', ...client };
const connectionOf = (topic_name: string, more: Auth = {}) => ({
  brokers: [broker.listeners.saslPlaintext],
  topic_name,
  auth: { ...auth, ...more },
});
const context = () => ({ signal: new AbortController().signal, settings: {} });

oauth('a topic is read with tokens for client credentials', async () => {
  const topic = await broker.topic();
  await broker.produce(topic, ['one']);
  const connection = connectionOf(topic, { scope: 'kafka' });
  await plugin.check(connection, context());
  assert.equal(asked[0]?.form, { grant_type: 'client_credentials', scope: 'kafka' });
  const [id, secret] = Buffer.from(asked[0]!.authorization!.replace('Basic ', ''), 'base64')
    .toString()
    .split(':');
  assert.equal(
    [id, secret].map((part) => decodeURIComponent(part!)),
    ['gate:way', 's3cret/é'],
    'encoded as RFC 6749 says',
  );
  const run = reading(plugin, connection);
  await until('the message', () => run.messages.length === 1);
  await run.stop();
  assert.equal(run.bodies(), ['one']);
});

oauth('the client id and secret are sent in the form if the token server wants that', async () => {
  const connection = connectionOf(await broker.topic(), { client_auth: 'post' });
  await plugin.check(connection, context());
  const { token_endpoint: _, ...credentials } = client;
  assert.equal(asked, [
    { authorization: undefined, form: { grant_type: 'client_credentials', ...credentials } },
  ]);
  assert.ok(isValid(connection));
  assert.not.ok(isValid(connectionOf('orders', { client_auth: 'body' as 'post' })));
});

oauth(
  'extensions are sent with the token, as RFC 7628 frames them, and the broker takes the login',
  async () => {
    const extensions = { logicalCluster: 'lkc-1', identityPoolId: 'pool-a b' };
    await plugin.check(connectionOf(await broker.topic(), { extensions }), context());
    const sent: string[] = [];
    const saslAuthenticate = ({ request }: { request: { encode: () => Buffer } }) => {
      sent.push(request.encode().subarray(4).toString());
      return Promise.resolve('');
    };
    const login = oauthBearer(() => Promise.resolve('t'), extensions).authenticationProvider({
      saslAuthenticate,
    } as never);
    await login.authenticate();
    assert.equal(sent, [
      'n,,\u0001auth=Bearer t\u0001logicalCluster=lkc-1\u0001identityPoolId=pool-a b\u0001\u0001',
    ]);
    const valid = (given: object) =>
      isValid({ ...connectionOf('orders'), auth: { ...auth, extensions: given } });
    assert.ok(valid(extensions));
    for (const wrong of [
      { auth: 'x' },
      { 'a-b': 'x' },
      { a: 'x\u0001auth=Bearer u' },
      { a: '' },
      { a: 1 },
    ])
      assert.not.ok(valid(wrong), inspect(wrong));
    assert.not.ok(
      isValid({
        ...connectionOf('orders'),
        auth: { type: 'plain', username: 'a', password: 'b', extensions },
      }),
    );
  },
);

oauth(
  'the token is asked for through the proxy of the process, and a proxy that is away is what the error names',
  async () => {
    const connection = connectionOf(await broker.topic());
    const proxy = await httpProxy();
    const check = async (url: string) => {
      const stop = proxyProcess({ proxy: url });
      await plugin.check(connection, context()).finally(stop);
    };
    try {
      await check(proxy.url);
      const stop = proxyProcess({ proxy: proxy.url });
      const refused = await failure(
        sourceGuard([])(1_000, clientCredentials(client)).finally(stop),
      );
      assert.is(refused.message, `${token_endpoint} is in a network that sources may not reach.`);
      assert.equal([proxy.asked, asked.length], [[`POST ${token_endpoint}`], 1]);
    } finally {
      await proxy.close();
    }
    const error = await failure(check(proxy.url));
    assert.is(
      error.message,
      `The proxy 127.0.0.1:${proxy.port} cannot be reached: nothing listens there.`,
    );
    assert.match(error.fix, 'delivery.proxy');
  },
);

oauth('a token is used until it nears its end, and callers at once share a request', async () => {
  const tokenOf = clientCredentials(client);
  answer = giving('shared');
  assert.equal(await Promise.all([tokenOf(), tokenOf()]), ['shared', 'shared']);
  answer = giving('another');
  assert.is(await tokenOf(), 'shared');
  assert.is(asked.length, 1);
  const short = clientCredentials(client);
  answer = giving('first', 0);
  assert.is(await short(), 'first');
  answer = giving('second');
  assert.is(await short(), 'second');
});

oauth(
  'a broker that refuses the token says so, although kafkajs took its answer for an acceptance',
  async () => {
    answer = giving(jwt(-3600));
    const error = await failure(plugin.check(connectionOf(await broker.topic()), context()));
    assert.is(
      error.message,
      `${broker.listeners.saslPlaintext} refused the token of the client "gate:way" (OAUTHBEARER).`,
    );
    assert.match(error.fix, /auth\.token_endpoint.*auth\.scope/);
  },
);

oauth('a broker without the mechanism is named', async () => {
  const connection = {
    ...connectionOf('any', { tls: true, ca: broker.ca }),
    brokers: [broker.listeners.saslSsl],
  };
  const error = await failure(plugin.check(connection, context()));
  assert.is(error.message, `${broker.listeners.saslSsl} does not offer the mechanism OAUTHBEARER.`);
});

/** Mistakes of a token endpoint: its response or address, and the expected sentence. */
const mistakes: Readonly<
  Record<
    string,
    readonly [set: { status: number; body: string }, more: Auth, message: RegExp, fix: RegExp]
  >
> = {
  'an unknown client': [
    { status: 401, body: '{"error":"invalid_client","error_description":"s3cret/é is wrong"}' },
    {},
    /^The token endpoint http:\S+\/token refused the client "gate:way": invalid_client\.$/,
    /auth\.client_secret/,
  ],
  'a page instead of a token': [
    { status: 200, body: '<html>' },
    {},
    /refused the client "gate:way": status 200 without a token\.$/,
    /token endpoint/,
  ],
  'a provider in trouble': [
    { status: 503, body: '' },
    {},
    /gave no token: status 503 without a token\.$/,
    /health/,
  ],
  'a port where nothing listens': [
    { status: 200, body: '' },
    { token_endpoint: `http://127.0.0.1:${await freePort()}/token` },
    /^Nothing listens on http:\/\/127\.0\.0\.1:\d+\/token\.$/,
    /auth\.token_endpoint/,
  ],
};
for (const [what, [given, more, message, fix]] of Object.entries(mistakes)) {
  oauth(`${what} is told, by the check and by the run, without the secret`, async () => {
    answer = given;
    const connection = connectionOf('any', more);
    const error = await failure(plugin.check(connection, context()));
    assert.match(error.message, message);
    assert.match(error.fix, fix);
    const run = reading(plugin, connection);
    const told = await failure(run.done);
    assert.match(told.message, message);
    assert.not.match(
      `${error.message} ${error.fix} ${told.message} ${JSON.stringify(run.logs)}`,
      /s3cret/,
    );
  });
}

oauth('the schema takes the fields of its mechanism and no others', () => {
  const valid = isValid;
  assert.ok(valid(connectionOf('orders')));
  assert.ok(valid(connectionOf('orders', { scope: 'kafka', tls: true })));
  for (const field of ['token_endpoint', 'client_id', 'client_secret']) {
    assert.not.ok(valid(connectionOf('orders', { [field]: undefined })), field);
  }
  assert.not.ok(valid(connectionOf('orders', { password: 'x' })));
  assert.not.ok(valid(connectionOf('orders', { type: 'plain', username: 'x', password: 'x' })));
  assert.not.ok(valid(connectionOf('orders', { token_endpoint: 'id.example.com' })));
});

oauth.run();
