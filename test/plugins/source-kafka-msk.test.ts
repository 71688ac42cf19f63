import { createHash, createHmac } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import tls from 'node:tls';
import { SignatureV4 } from '@smithy/signature-v4';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import plugin, { type Auth } from '@gateway/source-kafka';
import { clusterConfig } from '#source-kafka/connection';
import { authority } from '../support/authority.js';
import { kafka, randomName, readdressed } from '../support/kafka.js';
import { loopback } from '../support/ports.js';
import { onlyThese, sts } from '../support/sts.js';
import { until } from '../support/until.js';
import { failure, reading, validator } from './reading.js';

/**
 * MSK with IAM. A fake broker requires tokens over TLS, verifies them with the AWS signer, and
 * forwards all other requests to a real broker.
 */
const msk = suite('plugins/source-kafka-msk');

const broker = await kafka();
const roles = await sts();
const trusted = authority();
const issued = trusted.issue('msk', ['IP:127.0.0.1']);
const plain = Number(broker.listeners.plaintext.split(':')[1]);
const REGION = 'eu-west-1';

/** Secrets and session tokens by access key. */
const identities: Readonly<
  Record<string, { readonly secretAccessKey: string; readonly sessionToken?: string }>
> = {
  STATIC: { secretAccessKey: 's3cret/+é' },
  ENVIRONMENT: { secretAccessKey: 'env-secret', sessionToken: 'env+token/==' },
  ROLE: { secretAccessKey: 'role-secret', sessionToken: 'role-token' },
};
const accepted: string[] = [];

const sockets = new Set<net.Socket>();
const listener = tls.createServer(
  { cert: fs.readFileSync(issued.certificate), key: fs.readFileSync(issued.key) },
  (client) => {
    const upstream = net.connect(plain, '127.0.0.1');
    for (const [socket, other] of [[client, upstream] as const, [upstream, client] as const]) {
      sockets.add(socket);
      socket.on('error', () => other.destroy()).on('close', () => other.destroy());
    }
    upstream.on('data', (bytes: Buffer) =>
      client.write(readdressed(bytes, plain, (listener.address() as net.AddressInfo).port)),
    );
    let [received, login]: [Buffer, 'none' | 'refused' | 'accepted'] = [Buffer.alloc(0), 'none'];
    const answer = (correlation: Buffer, ...parts: Buffer[]) =>
      client.write(framed(Buffer.concat([correlation, ...parts])));
    const take = async (request: Buffer) => {
      const [api, version, correlation] = [
        request.readInt16BE(0),
        request.readInt16BE(2),
        request.subarray(4, 8),
      ];
      const body = request.subarray(10 + Math.max(0, request.readInt16BE(8)));
      const lifetime = Buffer.alloc(version === 0 ? 0 : 8);
      if (api === HANDSHAKE) return answer(correlation, int16(0), int32(1), text('OAUTHBEARER'));
      if (api === AUTHENTICATE && login === 'refused')
        return answer(correlation, int16(REFUSED), text('Access denied'), int32(0), lifetime);
      if (api === AUTHENTICATE) {
        login = (await isValid(body.subarray(4).toString())) ? 'accepted' : 'refused';
        return answer(
          correlation,
          int16(0),
          int16(-1),
          framed(Buffer.from(login === 'refused' ? '{"status":"invalid_token"}' : '')),
          lifetime,
        );
      }
      return login === 'accepted' || api === API_VERSIONS
        ? upstream.write(framed(request))
        : client.destroy();
    };
    client.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      while (received.length >= 4 && received.length >= 4 + received.readInt32BE(0)) {
        const end = 4 + received.readInt32BE(0);
        void take(received.subarray(4, end));
        received = received.subarray(end);
      }
    });
  },
);
const brokers = [`127.0.0.1:${await loopback(listener)}`];

/** https://kafka.apache.org/protocol */
const [HANDSHAKE, API_VERSIONS, AUTHENTICATE, REFUSED] = [17, 18, 36, 58];
const int16 = (value: number) => Buffer.from(new Int16Array([value]).buffer).swap16();
const int32 = (value: number) => Buffer.from(new Int32Array([value]).buffer).swap32();
const text = (value: string) => Buffer.concat([int16(value.length), Buffer.from(value)]);
const framed = (bytes: Buffer) => Buffer.concat([int32(bytes.length), bytes]);

/** The interface that the AWS signer requires. */
class Sha256 {
  readonly #hash;
  constructor(secret?: string | Uint8Array | ArrayBuffer | ArrayBufferView) {
    this.#hash =
      secret === undefined
        ? createHash('sha256')
        : createHmac('sha256', Buffer.from(secret as Uint8Array));
  }
  update(part: string | Uint8Array): void {
    this.#hash.update(part);
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
  reset(): void {}
}

/** True if the AWS signer creates the same URL for the login. */
async function isValid(login: string): Promise<boolean> {
  const [start, token = '', ...end] = login.replace('auth=Bearer ', '').split('\u0001');
  assert.equal([start, ...end], ['n,,', '', '']);
  assert.match(token, /^[\w-]+$/);
  const url = new URL(Buffer.from(token, 'base64url').toString());
  const { 'User-Agent': agent, ...query } = Object.fromEntries(url.searchParams);
  assert.is(agent, 'gateway');
  const [accessKeyId = '', day = ''] = query['X-Amz-Credential']!.split('/');
  const time = query['X-Amz-Date']!.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z');
  assert.ok(
    Math.abs(Date.parse(time) - Date.now()) < 60_000 && time.replaceAll('-', '').startsWith(day),
  );
  const credentials = { accessKeyId, secretAccessKey: '', ...identities[accessKeyId] };
  const signer = new SignatureV4({
    service: 'kafka-cluster',
    region: REGION,
    credentials,
    sha256: Sha256,
  });
  const hostname = `kafka.${REGION}.amazonaws.com`;
  const request = {
    method: 'GET',
    protocol: 'https:',
    hostname,
    path: '/',
    query: { Action: 'kafka-cluster:Connect' },
    headers: { host: hostname },
  };
  const { query: expected = {} } = await signer.presign(request, {
    expiresIn: 900,
    signingDate: new Date(time),
  });
  const isSame =
    `${url.origin}${url.pathname}` === `https://${hostname}/` &&
    JSON.stringify(sorted(query)) === JSON.stringify(sorted(expected));
  if (isSame) accepted.push(accessKeyId);
  return isSame;
}

const sorted = (query: object) => Object.entries(query).sort(([a], [b]) => (a < b ? -1 : 1));

const environment = { ...process.env };
msk.before.each(() => {
  onlyThese({ AWS_ENDPOINT_URL_STS: roles.url });
  roles.refusal = undefined;
  roles.assumed.length = accepted.length = 0;
});
msk.after(async () => {
  process.env = environment;
  listener.close();
  for (const socket of sockets) socket.destroy();
  roles.close();
  trusted.close();
  await broker.close();
});

const iam: Auth = {
  type: 'aws_msk_iam',
  region: REGION,
  tls: true,
  ca: fs.readFileSync(trusted.file, 'utf8'),
};
const keys = { access_key_id: 'STATIC', secret_key: 's3cret/+é' };
const role = { role_arn: 'arn:aws:iam::123456789012:role/reader', external_id: 'order-7' };
const connectionOf = (topic_name: string, auth: Auth = {}) => ({
  brokers,
  topic_name,
  auth: { ...iam, ...auth },
});
const context = (settings = {}) => ({ signal: new AbortController().signal, settings });
const distinct = (values: readonly string[]) => [...new Set(values)];

msk('a topic is read with an access key', async () => {
  const topic = await broker.topic();
  await broker.produce(topic, ['one']);
  await plugin.check(connectionOf(topic, keys), context());
  const run = reading(plugin, connectionOf(topic, keys), { wantsLag: true });
  await until('the message', () => run.messages.length === 1);
  await until('the lag', () => run.lags['0'] === 0);
  await run.stop();
  assert.equal(distinct(accepted), ['STATIC']);
});

msk(
  'without a key the credentials of the process log in, unless its operator forbids it',
  async () => {
    Object.assign(process.env, {
      AWS_ACCESS_KEY_ID: 'ENVIRONMENT',
      AWS_SECRET_ACCESS_KEY: 'env-secret',
      AWS_SESSION_TOKEN: 'env+token/==',
    });
    const connection = connectionOf(await broker.topic());
    await plugin.check(connection, context());
    assert.equal(distinct(accepted), ['ENVIRONMENT']);
    accepted.length = 0;
    const { signal, settings } = context({ default_credentials: false });
    const none = () => {};
    const log = { debug: none, info: none, warn: none, error: none };
    const about = { signal, settings, sourceId: 's', clientId: randomName('c'), log };
    for (const attempt of [
      plugin.check(connection, about),
      plugin.run(connection, () => Promise.resolve('accepted'), {
        ...about,
        window: 1,
        workers: 1,
        report: none,
      }),
      plugin.watch!(connection, { ...about, lag: none, advise: none }),
      plugin.check({ ...connection, auth: { ...connection.auth, ...role } }, about),
    ]) {
      const error = await failure(attempt);
      assert.is(
        error.message,
        'The source has no access key, and source.kafka.default_credentials keeps it from the credentials of the process.',
      );
    }
    assert.equal([accepted, roles.assumed], [[], []]);
  },
);

msk('a role is assumed by the key of the source, with its external id', async () => {
  const topic = await broker.topic();
  await plugin.check(connectionOf(topic, { ...keys, ...role }), context());
  assert.equal(
    roles.assumed.map(({ params, key }) => [params['RoleArn'], params['ExternalId'], key]),
    [[role.role_arn, 'order-7', 'STATIC']],
  );
  assert.equal(distinct(accepted), ['ROLE']);
});

msk('the region is that of the host name of a broker', async () => {
  const hosts = [
    'b-2.orders.a1b2c3.c2.kafka.ap-south-1.amazonaws.com',
    'boot-x.c1.kafka-serverless.us-east-1.amazonaws.com',
  ];
  for (const [at, region] of ['ap-south-1', 'us-east-1'].entries()) {
    const { region: _region, ...auth } = connectionOf('t', keys).auth;
    const { sasl } = clusterConfig({
      brokers: ['10.0.0.1:9098', `${hosts[at]}:9098`],
      topic_name: 't',
      auth,
    });
    let sent = '';
    const saslAuthenticate = ({ request }: { request: { encode(): Buffer } }) => {
      sent = request.encode().toString();
      return Promise.resolve('');
    };
    assert.ok(sasl && 'authenticationProvider' in sasl);
    await sasl.authenticationProvider({ saslAuthenticate } as never).authenticate();
    const url = Buffer.from(/Bearer ([\w-]+)/.exec(sent)![1]!, 'base64url').toString();
    assert.match(url, `https://kafka.${region}.amazonaws.com/?Action=kafka-cluster%3AConnect&`);
    assert.match(url, `%2F${region}%2Fkafka-cluster%2Faws4_request&`);
  }
});

/** Mistakes of a login: the fields, the response of STS, and the expected sentence and fix. */
const mistakes: Readonly<
  Record<string, readonly [auth: Auth, refusal: string | undefined, message: string, fix: RegExp]>
> = {
  'a wrong secret': [
    { ...keys, secret_key: 'an0ther' },
    undefined,
    `${brokers[0]} refused the access key STATIC (IAM).`,
    /auth\.secret_key, auth\.region and the clock .*kafka-cluster:Connect/,
  ],
  'the region of another cluster': [
    { ...keys, region: 'us-east-1' },
    undefined,
    `${brokers[0]} refused the access key STATIC (IAM).`,
    /auth\.region/,
  ],
  'a process without credentials': [
    {},
    undefined,
    'This process has no AWS credentials.',
    /^Set auth\.access_key_id and auth\.secret_key; or give the machines/,
  ],
  'a role that may not be assumed': [
    { ...keys, ...role },
    'User: x is not authorized to perform: sts:AssumeRole on resource: y',
    `The access key STATIC may not assume the role ${role.role_arn}.`,
    /trust policy.*auth\.external_id/,
  ],
  'a key that is not known': [
    { ...keys, ...role },
    'The security token included in the request is invalid.',
    'The access key STATIC cannot be used.',
    /auth\.access_key_id/,
  ],
  'no region': [
    { ...keys, region: undefined as never },
    undefined,
    'auth.type is "aws_msk_iam", but auth.region is missing, and no host name in brokers names a region.',
    /auth\.region/,
  ],
  'no TLS': [
    { ...keys, tls: false, ca: undefined as never },
    undefined,
    'auth.type is "aws_msk_iam", but auth.tls is off. MSK offers IAM only over TLS.',
    /auth\.tls/,
  ],
};
for (const [what, [auth, refusal, message, fix]] of Object.entries(mistakes)) {
  msk(`${what} is told, by the check and by the run, without the secret`, async () => {
    roles.refusal = refusal;
    const connection = connectionOf('any', auth);
    const error = await failure(plugin.check(connection, context()));
    assert.is(error.message, message);
    assert.match(error.fix, fix);
    const run = reading(plugin, connection);
    const told = await failure(run.done);
    assert.is(told.message, message);
    assert.not.match(`${told.message} ${told.fix} ${JSON.stringify(run.logs)}`, /s3cret|an0ther/);
  });
}

msk('a cluster without IAM is told with where to turn it on', async () => {
  const connection = {
    ...connectionOf('any', { ...keys, ca: broker.ca }),
    brokers: [broker.listeners.saslSsl],
  };
  const error = await failure(plugin.check(connection, context()));
  assert.is(error.message, `${broker.listeners.saslSsl} does not offer the mechanism OAUTHBEARER.`);
  assert.match(error.fix, /^Turn on IAM access control .*9098/);
});

msk('the schema takes the fields of IAM over TLS and no others', () => {
  const valid = validator(
    JSON.parse(
      fs.readFileSync(
        new URL('../../plugins/source-kafka/connection.json', import.meta.url),
        'utf8',
      ),
    ) as object,
  );
  for (const right of [{}, keys, role, { ...keys, ...role }])
    assert.ok(valid(connectionOf('orders', right)));
  const wrong: Auth[] = [
    { tls: false, ca: undefined as never },
    { access_key_id: 'STATIC' },
    { external_id: 'order-7' },
    { role_arn: 'reader' },
    { username: 'x' },
    { type: 'plain', username: 'x', password: 'x' },
  ];
  for (const auth of wrong)
    assert.not.ok(valid(connectionOf('orders', auth)), JSON.stringify(auth));
});

msk.run();
