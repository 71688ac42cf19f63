import { spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { answers, freePorts } from '../ports.js';
import { certificates } from './certificates.js';
import { KAFKA_VERSION, kafkaJars } from './kafka-jars.js';
import { tempFolder } from './keep.js';
import { ServerProcess } from './server-process.js';

/** The broker's listeners as `host:port`. */
export interface KafkaListeners {
  readonly plaintext: string;
  readonly saslPlaintext: string;
  readonly saslSsl: string;
  readonly ssl: string;
  /** TLS with a required client certificate of the authority. */
  readonly mutual: string;
  /** `mutual` with a login. */
  readonly saslMutual: string;
}

export interface KafkaServer extends ServerProcess {
  readonly listeners: KafkaListeners;
  /** The certificate of the broker's authority. */
  readonly caFile: string;
  /** Files of a signed client certificate and its key. */
  readonly client: { readonly certificate: string; readonly key: string };
}

/** Users of the SASL listeners; SCRAM with both hashes. */
export const kafkaUsers = {
  plain: { username: 'plain', password: 'plain-secret' },
  scram: { username: 'scram', password: 'scram-secret' },
} as const;

/**
 * Starts a real Kafka in KRaft mode on free ports, from its Maven artifacts. Topics are not created
 * automatically. Takes five to nine seconds.
 * @param options.compiler `full` for benchmarks: slower to start, faster under load
 * @param options.proxied an additional plain listener on this port that advertises another loopback
 * port, a proxy's
 * @throws `Unavailable` without Java or the artifacts
 */
export async function startKafka({
  compiler = 'quick',
  proxied,
  version = KAFKA_VERSION,
}: {
  compiler?: 'quick' | 'full';
  proxied?: { readonly port: number; readonly advertisedPort: number };
  version?: string;
} = {}): Promise<KafkaServer> {
  const jars = kafkaJars(version);
  const folder = tempFolder('kafka');
  const { ca, key, certificate } = certificates(path.join(folder, 'tls'));
  const keystore = path.join(folder, 'tls', 'keystore.pem');
  fs.writeFileSync(
    keystore,
    [key, certificate, ca].map((file) => fs.readFileSync(file, 'utf8')).join(''),
  );
  const ports = await freePorts(7);
  const [plaintext, controller, saslPlaintext, saslSsl, ssl, mutual, saslMutual] = ports.map(
    (port) => `127.0.0.1:${port}`,
  ) as [string, string, string, string, string, string, string];
  const listeners = { plaintext, saslPlaintext, saslSsl, ssl, mutual, saslMutual };
  const properties = path.join(folder, 'server.properties');
  fs.writeFileSync(
    properties,
    serverProperties({ folder, listeners, controller, ca, keystore, proxied }),
  );
  format(jars, properties);
  const server = new ServerProcess({
    name: 'Kafka',
    program: 'java',
    args: [...java(jars, '512m', compiler), 'kafka.Kafka', properties],
    folder,
    log: path.join(folder, 'kafka.log'),
    stopSignal: 'SIGTERM',
    ready: async () => (await answers(ports[0] as number)) && (await coordinates(plaintext)),
    startWithinMs: 90_000,
  });
  await server.start();
  return Object.assign(server, { listeners, caFile: ca, client: { certificate, key } });
}

/**
 * The JVM's arguments. The second compiler is off: it slows down the start, and a test broker does
 * not run long enough to benefit from it.
 */
function java(jars: string, heap: string, compiler: 'quick' | 'full' = 'quick'): string[] {
  const log = [
    '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
    '-Dorg.slf4j.simpleLogger.showDateTime=true',
  ];
  return [
    `-Xmx${heap}`,
    '-XX:+UseSerialGC',
    ...(compiler === 'quick' ? ['-XX:TieredStopAtLevel=1'] : []),
    ...log,
    '-cp',
    path.join(jars, '*'),
  ];
}

/**
 * Writes the cluster id and the SCRAM users into the data folder, the only way before a broker
 * runs.
 */
function format(jars: string, properties: string): void {
  const { username, password } = kafkaUsers.scram;
  const id = clusterId();
  const users = ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((hash) => [
    '--add-scram',
    `${hash}=[name=${username},password=${password}]`,
  ]);
  const args = [
    ...java(jars, '128m'),
    'kafka.tools.StorageTool',
    'format',
    '-t',
    id,
    '-c',
    properties,
    ...users,
  ];
  const { status, stdout, stderr, error } = spawnSync('java', args, { encoding: 'utf8' });
  if (status !== 0)
    throw new Error(`Kafka could not format its folder: ${error?.message ?? `${stdout}${stderr}`}`);
}

/**
 * 16 random bytes in base64url. The first bit is 0, so that the text never starts with `-`, which
 * the tool would parse as an option.
 */
function clusterId(): string {
  const bytes = crypto.randomBytes(16);
  bytes.writeUInt8(bytes.readUInt8(0) & 0x7f, 0);
  return bytes.toString('base64url');
}

/** https://kafka.apache.org/41/documentation.html#brokerconfigs */
function serverProperties(of: {
  folder: string;
  listeners: KafkaListeners;
  controller: string;
  ca: string;
  keystore: string;
  proxied: { readonly port: number; readonly advertisedPort: number } | undefined;
}): string {
  const { plaintext, saslPlaintext, saslSsl, ssl, mutual, saslMutual } = of.listeners;
  const usual = `PLAINTEXT://${plaintext},SASL_PLAINTEXT://${saslPlaintext},SASL_SSL://${saslSsl},SSL://${ssl},MUTUAL://${mutual},SASL_MUTUAL://${saslMutual}`;
  const proxiedAt = (port: number | undefined) =>
    port === undefined ? '' : `,PROXIED://127.0.0.1:${port}`;
  const bound = `${usual}${proxiedAt(of.proxied?.port)}`;
  const mechanisms = 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512';
  const login = 'org.apache.kafka.common.security';
  const { username, password } = kafkaUsers.plain;
  const sasl = (listener: string) => ({
    [`listener.name.${listener}.sasl.enabled.mechanisms`]: mechanisms,
    [`listener.name.${listener}.plain.sasl.jaas.config`]: `${login}.plain.PlainLoginModule required user_${username}="${password}";`,
    [`listener.name.${listener}.scram-sha-256.sasl.jaas.config`]: `${login}.scram.ScramLoginModule required;`,
    [`listener.name.${listener}.scram-sha-512.sasl.jaas.config`]: `${login}.scram.ScramLoginModule required;`,
  });
  // Unsigned tokens suffice for tests.
  const bearer = `${login}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`;
  const properties: Record<string, string | number | boolean> = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@${of.controller}`,
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAINTEXT',
    listeners: `${bound},CONTROLLER://${of.controller}`,
    'advertised.listeners': `${usual}${proxiedAt(of.proxied?.advertisedPort)}`,
    'listener.security.protocol.map':
      'PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL,MUTUAL:SSL,SASL_MUTUAL:SASL_SSL',
    'sasl.enabled.mechanisms': `${mechanisms},OAUTHBEARER`,
    ...sasl('sasl_plaintext'),
    'listener.name.sasl_plaintext.sasl.enabled.mechanisms': `${mechanisms},OAUTHBEARER`,
    'listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config': bearer,
    ...sasl('sasl_ssl'),
    ...sasl('sasl_mutual'),
    'listener.name.mutual.ssl.client.auth': 'required',
    'listener.name.sasl_mutual.ssl.client.auth': 'required',
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': of.keystore,
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': of.ca,
    'ssl.client.auth': 'none',
    'log.dirs': path.join(of.folder, 'data'),
    'auto.create.topics.enable': false,
    // For a single broker, every internal topic needs a replication factor of 1; otherwise the
    // first join of a group waits forever for a coordinator.
    'offsets.topic.replication.factor': 1,
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 4,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    // a group is usable immediately instead of after three seconds
    'group.initial.rebalance.delay.ms': 0,
    // for tests of kills, which cannot wait for the default session timeout
    'group.min.session.timeout.ms': 1000,
    'log.cleaner.dedupe.buffer.size': 16_777_216, // the default is a quarter of the heap
    'num.network.threads': 2,
    'num.io.threads': 4,
    'background.threads': 2,
  };
  return Object.entries(properties)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('');
}

/**
 * True once the broker has registered and can coordinate groups, which is after it opens its port.
 * The first call creates the topic of offsets; otherwise the first consumer of every run would wait
 * for it.
 */
async function coordinates(broker: string): Promise<boolean> {
  const kafka = new Kafka({
    brokers: [broker],
    logLevel: logLevel.NOTHING,
    retry: { retries: 0 },
    connectionTimeout: 2_000,
  });
  const admin = kafka.admin();
  try {
    await admin.connect();
    await admin.listTopics(); // kafkajs reads the list of brokers here; the next call does not
    await admin.fetchOffsets({ groupId: 'is-it-ready' });
    return true;
  } catch {
    return false;
  } finally {
    await admin.disconnect().catch(() => undefined);
  }
}
