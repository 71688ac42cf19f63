import fs from 'node:fs';
import { inspect } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import plugin, { type Auth } from '@gateway/source-kafka';
import { authority } from '../support/authority.js';
import { issued } from '../support/client-certificates.js';
import { kafka } from '../support/kafka.js';
import { until } from '../support/until.js';
import { failure, reading, validator } from './reading.js';

const certificates = suite('plugins/source-kafka-certificates');

const broker = await kafka();
const stranger = authority();
const { listeners, users, ca, identity } = broker;
certificates.after(async () => {
  stranger.close();
  await broker.close();
});

const schema = new URL('../../plugins/source-kafka/connection.json', import.meta.url);
const isValid = validator(JSON.parse(fs.readFileSync(schema, 'utf8')) as object);
const pem = ({ cert, key }: { cert: string; key: string }) => ({
  client_cert: cert,
  client_key: key,
});
const tls = { tls: true, ca };
const context = () => ({ signal: new AbortController().signal, settings: {} });
const login = { type: 'plain', ...users.plain } as const;

const ways: Readonly<Record<string, readonly [broker: string, auth: Auth]>> = {
  'with a certificate': [listeners.mutual, identity],
  'with a certificate and a login': [listeners.saslMutual, { ...identity, ...login }],
};
for (const [way, [address, auth]] of Object.entries(ways))
  certificates(`a cluster that requires client certificates is read ${way}`, async () => {
    const connection = {
      brokers: [address],
      topic_name: await broker.topic(),
      auth: { ...tls, ...auth },
    };
    assert.ok(isValid(connection));
    await plugin.check(connection, context());
    await broker.produce(connection.topic_name, ['hello']);
    const run = reading(plugin, connection);
    await until('the message', () => run.messages.length === 1);
    await run.stop();
    assert.equal(run.bodies(), ['hello']);
  });

const strange = pem(issued(stranger, 'stranger'));
const mistakes: Readonly<
  Record<string, readonly [broker: string, auth: Auth, message: RegExp, fix: RegExp]>
> = {
  'no certificate': [
    listeners.mutual,
    {},
    /^127\.0\.0\.1:\d+ asks for a client certificate, and the source has none\.$/,
    /auth\.client_cert/,
  ],
  'no certificate beside a login': [
    listeners.saslMutual,
    login,
    /asks for a client certificate/,
    /auth\.client_cert/,
  ],
  'one of another authority': [
    listeners.mutual,
    strange,
    /refused the certificate in auth\.client_cert/,
    /truststore/,
  ],
  'one that has expired': [
    listeners.mutual,
    pem(issued(stranger, 'expired', { expired: true })),
    /^auth\.client_cert expired at 2020-01-02T00:00:00\.000Z\.$/,
    /new certificate/,
  ],
  'the key of another': [
    listeners.mutual,
    { ...identity, client_key: strange.client_key },
    /^auth\.client_key is not the key of the first certificate/,
    /requested with/,
  ],
  'a key that is none': [
    listeners.mutual,
    { ...identity, client_key: 'no-key' },
    /^auth\.client_key is not a PEM private key\.$/,
    /BEGIN/,
  ],
  'a certificate that is none': [
    listeners.mutual,
    { ...identity, client_cert: '-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----' },
    /^auth\.client_cert is not a PEM certificate\.$/,
    /BEGIN/,
  ],
  'a certificate without TLS': [
    listeners.plaintext,
    { ...identity, tls: false },
    /auth\.tls is off/,
    /auth\.tls/,
  ],
};
for (const [what, [address, auth, message, fix]] of Object.entries(mistakes))
  certificates(`${what}: the check and the run name it, without the key`, async () => {
    const connection = { brokers: [address], topic_name: 'any', auth: { ...tls, ...auth } };
    for (const tried of [plugin.check(connection, context()), reading(plugin, connection).done]) {
      const error = await failure(tried);
      assert.match(error.message, message);
      assert.match(error.fix, fix);
      assert.not.match(inspect(error), /-----BEGIN|MII|no-key|plain-secret/);
    }
  });

certificates('the schema wants certificate, key and TLS together', () => {
  const valid = (auth: object) => isValid({ brokers: ['a:9093'], topic_name: 'orders', auth });
  assert.ok(valid({ ...identity, tls: true }));
  assert.not.ok(valid(identity));
  assert.not.ok(valid({ tls: true, client_cert: identity.client_cert }));
  assert.not.ok(valid({ tls: true, client_key: identity.client_key }));
});

certificates.run();
