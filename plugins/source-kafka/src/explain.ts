import { PluginError } from '@gateway/plugin';
import { BATCH_MAX_BYTES, BatchTooLargeError } from './batch-too-large.js';
import { mechanismOf, type Connection } from './connection.js';

/** What is known of a failure: kafkajs wraps errors in errors, and each layer carries a part. */
interface Failure {
  readonly messages: string;
  /** Names of the error classes, outermost first. */
  readonly names: ReadonlySet<string>;
  /** Error codes of the Kafka protocol. */
  readonly types: ReadonlySet<string>;
  /** Error codes of Node's sockets and TLS. */
  readonly codes: ReadonlySet<string>;
  readonly broker: string | undefined;
  /** The consumer group that was used or asked for. */
  readonly group: string | undefined;
}

interface Explanation {
  readonly message: string;
  readonly fix: string;
}

/** One row per mistake: the first that recognises the failure says what happened. More particular rows come first. */
const ROWS: readonly ((failure: Failure, connection: Connection, broker: string) => Explanation | undefined)[] = [
  ({ messages, types }, { auth }, broker) =>
    types.has('UNSUPPORTED_SASL_MECHANISM') || /mechanism is not supported/.test(messages)
      ? {
          message: `${broker} does not offer the mechanism ${mechanismOf(auth)}.`,
          fix: 'Set auth.type and auth.hash to a mechanism that sasl.enabled.mechanisms of the cluster lists.',
        }
      : undefined,
  ({ types }, _connection, broker) =>
    types.has('ILLEGAL_SASL_STATE')
      ? {
          message: `${broker} does not ask for a user name on this port.`,
          fix: 'Leave auth.type, auth.username and auth.password out, or give the port of the SASL listener.',
        }
      : undefined,
  ({ names, types }, { auth }, broker) =>
    names.has('KafkaJSSASLAuthenticationError') || types.has('SASL_AUTHENTICATION_FAILED')
      ? {
          message: `${broker} refused the user "${auth?.username}" (${mechanismOf(auth)}).`,
          fix: 'Check auth.username and auth.password, and that auth.type and auth.hash are how this user was made on the cluster.',
        }
      : undefined,
  ({ messages, codes }, { auth }, broker) =>
    /self-signed certificate|unable to (verify|get)/i.test(messages) || [...codes].some((code) => /SELF_SIGNED|UNABLE_TO_/.test(code))
      ? {
          message: `The certificate of ${broker} is not signed by ${auth?.ca === undefined ? 'a public authority' : 'the authority in auth.ca'}.`,
          fix: 'Set auth.ca to the PEM certificate of the authority that signed the certificates of the brokers.',
        }
      : undefined,
  ({ messages, codes }, _connection, broker) =>
    codes.has('ERR_TLS_CERT_ALTNAME_INVALID') || /does not match certificate/.test(messages)
      ? {
          message: `The certificate of ${broker} was made for another host name.`,
          fix: 'Use a host name in brokers that the certificate names.',
        }
      : undefined,
  ({ messages, codes }, _connection, broker) =>
    codes.has('CERT_HAS_EXPIRED') || /certificate has expired/.test(messages)
      ? { message: `The certificate of ${broker} has expired.`, fix: 'Renew it on the cluster.' }
      : undefined,
  ({ messages, codes }, { auth }, broker) =>
    auth?.tls && (/before secure TLS connection|wrong version number|packet length too long/i.test(messages) || codes.has('EPROTO'))
      ? { message: `${broker} does not speak TLS on this port.`, fix: 'Set auth.tls to false, or give the port of the TLS listener.' }
      : undefined,
  ({ messages, codes }, _connection, broker) =>
    codes.has('ENOTFOUND') || codes.has('EAI_AGAIN') || /ENOTFOUND|EAI_AGAIN/.test(messages)
      ? { message: `The host name of ${broker} cannot be resolved.`, fix: 'Check brokers, and the name service of this machine.' }
      : undefined,
  ({ messages, codes }, _connection, broker) =>
    codes.has('ECONNREFUSED') || /ECONNREFUSED/.test(messages)
      ? { message: `Nothing listens on ${broker}.`, fix: 'Check the host and port in brokers, and that the broker runs.' }
      : undefined,
  ({ messages, codes }, _connection, broker) =>
    /Connection timeout|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH/.test(messages) || codes.has('ETIMEDOUT')
      ? { message: `${broker} does not answer.`, fix: 'Check brokers, and that a firewall lets this machine reach them.' }
      : undefined,
  ({ types }, { topic_name }) =>
    types.has('UNKNOWN_TOPIC_OR_PARTITION')
      ? { message: `The topic "${topic_name}" does not exist on the cluster.`, fix: 'Check topic_name, or create the topic.' }
      : undefined,
  ({ types }, { topic_name, auth }) =>
    types.has('TOPIC_AUTHORIZATION_FAILED')
      ? { message: `${userOf(auth?.username)} may not read the topic "${topic_name}".`, fix: 'Give it Describe and Read on the topic.' }
      : undefined,
  ({ types, group }, { auth }) =>
    types.has('GROUP_AUTHORIZATION_FAILED')
      ? {
          message: `${userOf(auth?.username)} may not use the consumer group "${group}".`,
          fix: 'Give it Describe and Read on the group, or set consumer_group_id to a group that it may use.',
        }
      : undefined,
  ({ types, group }) =>
    types.has('INCONSISTENT_GROUP_PROTOCOL')
      ? {
          message: `The consumer group "${group}" is in use by another program.`,
          fix: 'Set consumer_group_id to a name that only this source uses.',
        }
      : undefined,
  ({ types }) =>
    types.has('INVALID_SESSION_TIMEOUT')
      ? {
          message: 'The cluster refuses sessions of six seconds.',
          fix: 'Lower group.min.session.timeout.ms of the cluster to 6000, which is its default.',
        }
      : undefined,
  ({ names, messages }, { topic_name }) =>
    names.has('KafkaJSNotImplemented') || /compression not implemented/.test(messages)
      ? unreadable(topic_name, /^(\w+) compression/m.exec(messages)?.[1] ?? 'unknown')
      : undefined,
  ({ names }, { topic_name }) =>
    names.has(BatchTooLargeError.name)
      ? {
          message: `The topic "${topic_name}" has a batch that holds more than ${BATCH_MAX_BYTES / 1024 / 1024} MB when it is decompressed, which no producer means.`,
          fix: 'Find out who wrote it, then delete the records up to it (kafka-delete-records), or copy the rest of the topic to another one. Nothing is skipped meanwhile.',
        }
      : undefined,
  ({ names, types }, _connection, broker) =>
    names.has('KafkaJSRequestTimeoutError') || types.has('REQUEST_TIMED_OUT')
      ? { message: `${broker} is connected, but does not answer.`, fix: 'Look at the health and load of the cluster.' }
      : undefined,
  ({ names, types }, _connection, broker) =>
    names.has('KafkaJSNoBrokerAvailableError') ||
    names.has('KafkaJSGroupCoordinatorNotFound') ||
    types.has('GROUP_COORDINATOR_NOT_AVAILABLE')
      ? {
          message: `The cluster behind ${broker} has no broker for this consumer group at present.`,
          fix: 'Look at the health of the cluster (__consumer_offsets).',
        }
      : undefined,
  ({ names, messages }, { auth }, broker) =>
    names.has('KafkaJSConnectionClosedError') || /Closed connection|Connection closed|ECONNRESET|EPIPE/.test(messages)
      ? { message: `${broker} closed the connection.`, fix: closedFix(auth?.tls === true, auth?.type !== undefined) }
      : undefined,
];

function unreadable(topic: string, compression: string): Explanation {
  const newer = compression === 'ZSTD' ? 'run the agents on Node 22.15 or newer, which reads it; or ' : '';
  const fix = `${newer}set compression.type of the producers to lz4, gzip, snappy or none. Messages that are in the topic already stay as they are: copy them to another topic, or wait for their retention.`;
  return {
    message: `The topic "${topic}" holds messages in a compression that cannot be read here (${compression}).`,
    fix: fix.charAt(0).toUpperCase() + fix.slice(1),
  };
}

/** A broker that closes without a word most often wanted TLS or a login that it was not offered. */
function closedFix(tls: boolean, sasl: boolean): string {
  if (!tls && !sasl) return 'This port may want TLS or a login: set auth.tls, or auth.type with auth.username and auth.password.';
  if (!tls) return 'This port may want TLS: set auth.tls to true.';
  if (!sasl) return 'This port may want a login: set auth.type, auth.username and auth.password.';
  return 'Look at the log of the broker.';
}

const userOf = (name: string | undefined) => (name === undefined ? 'The anonymous user' : `The user "${name}"`);

/** The sentence for an error of kafkajs: what failed, at which broker, topic or consumer group, and which field to change. */
export function explain(error: unknown, connection: Connection, group: string | undefined): PluginError {
  if (error instanceof PluginError) return error;
  const failure = { ...unwrap(error), group };
  const broker = placeOf(failure.broker, connection);
  for (const row of ROWS) {
    const explanation = row(failure, connection, broker);
    if (explanation) return new PluginError(explanation.message, { fix: explanation.fix, cause: error });
  }
  return new PluginError(`Reading the topic "${connection.topic_name}" from ${broker} failed: ${failure.messages.split('\n')[0]}.`, {
    fix: 'Look at the health of the cluster and at the log of the broker.',
    cause: error,
  });
}

/** A broker whose address is not in the list was named by another one. */
function placeOf(broker: string | undefined, { brokers }: Connection): string {
  if (broker === undefined) return brokers.join(', ');
  return brokers.includes(broker) ? broker : `${broker} (an address that the cluster advertises)`;
}

/** What an error and its causes tell. */
export function unwrap(error: unknown): Omit<Failure, 'group'> {
  const messages: string[] = [];
  const [names, types, codes] = [new Set<string>(), new Set<string>(), new Set<string>()];
  let broker: string | undefined;
  const seen = new Set<unknown>();
  for (let at = error; at instanceof Error && !seen.has(at); at = at.cause) {
    seen.add(at);
    const layer = at as Error & { type?: unknown; code?: unknown; broker?: unknown };
    messages.push(layer.message);
    names.add(layer.name);
    if (typeof layer.type === 'string') types.add(layer.type);
    if (typeof layer.code === 'string') codes.add(layer.code);
    if (typeof layer.broker === 'string') broker = layer.broker;
  }
  return { messages: messages.length > 0 ? messages.join('\n') : String(error), names, types, codes, broker };
}
