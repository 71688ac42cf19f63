import { ErrorChain, explainNetwork, PluginError, type Advice } from '@gateway/plugin';
import { CrowdedClusterError } from './client.js';
import { BatchTooLargeError } from './codecs.js';
import { type Auth, type Connection, mechanismOf, nameOf } from './connection.js';
import { SOURCE_MAX_BYTES } from './memory.js';

const NETWORK_FIXES = {
  wrongHost: 'Use a host name in brokers that the certificate names.',
  expired: 'Renew it on the cluster.',
  untrusted:
    'Set auth.ca to the PEM certificate of the authority that signed the certificates of the brokers.',
  noTls: 'Set auth.tls to false, or give the port of the TLS listener.',
  unresolved: 'Check brokers, and the name service of this machine.',
  refused: 'Check the host and port in brokers, and that the broker runs.',
  silent: 'Check brokers, and that a firewall lets this machine reach them.',
};

/** States what failed, where, and which field to change. */
export function explain(
  error: unknown,
  connection: Connection,
  group: string | undefined,
): PluginError {
  const { topic_name: topic = connection.topic_pattern, auth = {} } = connection;
  const chain = new ErrorChain(error);
  const known = chain.errors.find((it) => it instanceof PluginError);
  if (known) return known;
  const is = chain.has.bind(chain);
  const because = (message: string, fix: string) => new PluginError(message, { fix, cause: error });
  const broker = brokerOf(chain, connection);
  const user = userOf(auth).replace(/^t/, 'T');
  const isIam = auth.type === 'aws_msk_iam';

  if (is('UNSUPPORTED_SASL_MECHANISM', /mechanism is not supported/)) {
    const fix = isIam
      ? 'Turn on IAM access control of the cluster, and give the port of its IAM listener: 9098, or 9198 for public access.'
      : 'Set auth.type and auth.hash to a mechanism that sasl.enabled.mechanisms of the cluster lists.';
    return because(`${broker} does not offer the mechanism ${mechanismOf(auth)}.`, fix);
  }
  if (is('ILLEGAL_SASL_STATE')) {
    const fix =
      'Omit auth.type, auth.username and auth.password, or give the port of the SASL listener.';
    return because(`${broker} does not ask for a user name on this port.`, fix);
  }
  if (is('KafkaJSSASLAuthenticationError', 'SASL_AUTHENTICATION_FAILED')) {
    if (isIam) {
      const fix =
        'Check auth.secret_key, auth.region and the clock of this machine, and let the identity use kafka-cluster:Connect on the cluster.';
      return because(
        `${broker} refused ${userOf(auth)} (IAM).`,
        auth.access_key_id ? fix : fix.replace('auth.secret_key, ', ''),
      );
    }
    if (auth.type === 'oauthbearer') {
      const settings = 'sasl.oauthbearer.jwks.endpoint.url, expected.issuer and expected.audience';
      const fix = `Check that the cluster trusts tokens of auth.token_endpoint (${settings}), and that auth.scope asks for what it requires.`;
      return because(`${broker} refused the token of ${userOf(auth)} (OAUTHBEARER).`, fix);
    }
    const fix =
      'Check user name and password, and that the mechanism (auth.type, auth.hash) matches how this user was created on the cluster.';
    return because(`${broker} refused the user "${auth.username}" (${mechanismOf(auth)}).`, fix);
  }
  // A broker that uses TLS 1.3 verifies the client certificate only after the client has connected,
  // so its refusal arrives as an alert.
  if (
    is(
      /alert (certificate required|bad certificate|unknown ca|certificate (unknown|expired|revoked)|unsupported certificate)/i,
    )
  ) {
    if (auth.client_cert === undefined) {
      const fix =
        'Set auth.client_cert and auth.client_key, or give the port of a listener without ssl.client.auth.';
      return because(`${broker} asks for a client certificate, and the source has none.`, fix);
    }
    const fix =
      'Add the authority that signed it to the truststore of the cluster, or give another certificate and key.';
    return because(`${broker} refused the certificate in auth.client_cert.`, fix);
  }
  const authority = auth.ca === undefined ? 'a public authority' : 'the authority in auth.ca';
  const network = explainNetwork(chain, { place: broker, authority, fixes: NETWORK_FIXES });
  if (network) return network;
  if (is('UNKNOWN_TOPIC_OR_PARTITION')) {
    return because(
      `The topic "${topic}" does not exist on the cluster.`,
      'Check topic_name, or create the topic.',
    );
  }
  if (is('TOPIC_AUTHORIZATION_FAILED')) {
    const rights = isIam
      ? 'kafka-cluster:DescribeTopic and kafka-cluster:ReadData'
      : 'Describe and Read';
    return because(`${user} may not read the topic "${topic}".`, `Give it ${rights} on the topic.`);
  }
  if (is('GROUP_AUTHORIZATION_FAILED')) {
    const rights = isIam
      ? 'kafka-cluster:DescribeGroup and kafka-cluster:AlterGroup'
      : 'Describe and Read';
    const fix = `Give it ${rights} on the group, or set consumer_group_id to a group that it may use.`;
    return because(`${user} may not use the consumer group "${group}".`, fix);
  }
  if (is('INCONSISTENT_GROUP_PROTOCOL')) {
    const fix = 'Set consumer_group_id to a name that only this source uses.';
    return because(`The consumer group "${group}" is in use by another program.`, fix);
  }
  if (is('INVALID_SESSION_TIMEOUT')) {
    const fix = 'Lower group.min.session.timeout.ms of the cluster to 6000, which is its default.';
    return because('The cluster rejects sessions of six seconds.', fix);
  }
  if (is('KafkaJSNotImplemented', /compression not implemented/)) {
    const compression = /^(\w+) compression/m.exec(chain.messages)?.[1] ?? 'unknown';
    return because(
      `The topic "${topic}" holds messages in a compression that cannot be read here (${compression}).`,
      'Set compression.type of the producers to zstd, lz4, gzip, snappy or none. Messages that are already in the topic do not change: copy them to another topic, or wait for their retention.',
    );
  }
  if (is(BatchTooLargeError.name)) {
    return because(
      `The topic "${topic}" has a batch that holds more than ${SOURCE_MAX_BYTES / 1024 / 1024} MB when decompressed, which no producer means to send.`,
      'Find out who wrote it, then delete the records up to it (kafka-delete-records), or copy the rest of the topic to another one. Nothing is skipped meanwhile.',
    );
  }
  const crowded = chain.errors.find((it) => it instanceof CrowdedClusterError);
  if (crowded) {
    return because(
      `The cluster behind ${broker} names ${crowded.message}.`,
      'Check brokers: no cluster in use has so many.',
    );
  }
  if (is('KafkaJSRequestTimeoutError', 'REQUEST_TIMED_OUT')) {
    return because(
      `${broker} is connected, but does not answer.`,
      'Check the health and load of the cluster.',
    );
  }
  if (
    is(
      'KafkaJSNoBrokerAvailableError',
      'KafkaJSGroupCoordinatorNotFound',
      'GROUP_COORDINATOR_NOT_AVAILABLE',
    )
  ) {
    const message = `The cluster behind ${broker} has no broker for this consumer group at present.`;
    return because(message, 'Check the health of the cluster (__consumer_offsets).');
  }
  // Usually, the peer is not a Kafka broker. A TLS alert, for example, does not begin with a valid
  // length.
  if (is(/answer of the broker has/))
    return because(`${broker} does not answer as a Kafka broker does.`, closedFix(auth));
  if (is('KafkaJSConnectionClosedError', /Closed connection|Connection closed|ECONNRESET|EPIPE/)) {
    return because(`${broker} closed the connection.`, closedFix(auth));
  }
  const [message] = chain.messages.split('\n');
  const fix = 'Check the health of the cluster and the log of the broker.';
  return new PluginError(`Reading the topic "${topic}" from ${broker} failed.`, {
    fix,
    cause: error,
    said: message,
  });
}

export function silentBrokers({ brokers }: Connection, withinMs: number): PluginError {
  return new PluginError(
    `${brokers.join(', ')} did not answer within ${withinMs / 1000} seconds.`,
    {
      fix: 'Check brokers, and that a firewall lets this machine reach them and the addresses that they advertise.',
    },
  );
}

/** For a source with more workers than its topic has partitions. */
export function idleMembers(
  connection: Connection,
  partitions: number,
  workers = 1,
): Advice | undefined {
  if (workers === 1 || workers <= partitions) return undefined;
  const [has, idle] = [
    `${connection.topic_pattern === undefined ? 'has' : 'have'} ${partitions} ${partitions === 1 ? 'partition' : 'partitions'}`,
    workers - partitions,
  ];
  return {
    message: `The source asks for ${workers} workers, but ${nameOf(connection)} ${has}: ${idle} of them ${idle === 1 ? 'is' : 'are'} idle.`,
    fix: `Lower workers to ${partitions}, or give the topic ${workers} partitions.`,
  };
}

/** A phrase for the identity with which the source logs in. */
export function userOf({
  type,
  username,
  client_id: client,
  access_key_id: key,
  role_arn: role,
  client_cert: cert,
}: Auth): string {
  if (role !== undefined) return `the role ${role}`;
  if (type === 'aws_msk_iam')
    return key === undefined ? 'the credentials of this process' : `the access key ${key}`;
  if (client !== undefined) return `the client "${client}"`;
  if (username !== undefined) return `the user "${username}"`;
  return cert === undefined ? 'the anonymous user' : 'the owner of the client certificate';
}

/** A broker that closes a connection without an error usually expects TLS or a login. */
function closedFix({ tls, type }: Auth): string {
  if (!tls && !type)
    return 'This port may want TLS or a login: set auth.tls, or auth.type with auth.username and auth.password.';
  if (!tls) return 'This port may want TLS: set auth.tls to true.';
  if (!type) return 'This port may want a login: set auth.type, auth.username and auth.password.';
  return 'Check the log of the broker.';
}

/** An advertised broker address may be any string. */
const HOST_MAX = 260;

/**
 * The broker named by the innermost error, marked as advertised by the cluster unless it is
 * configured. If no error names one, all configured brokers.
 */
function brokerOf({ errors }: ErrorChain, { brokers }: Connection): string {
  const broker = errors
    .map((error) => (error as { broker?: unknown }).broker)
    .findLast((it) => typeof it === 'string');
  if (broker === undefined) return brokers.join(', ');
  return brokers.includes(broker)
    ? broker
    : `${broker.slice(0, HOST_MAX)} (an address that the cluster advertises)`;
}
