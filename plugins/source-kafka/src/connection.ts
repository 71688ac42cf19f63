import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { PluginError } from '@gateway/plugin';
import type { Mechanism, SASLOptions } from 'kafkajs';
import type { MskIam } from './msk-iam.js';
import { clientCredentials, oauthBearer, renewed, type ClientCredentials } from './oauth-bearer.js';

/** `connection.json` documents the fields. */
export interface Connection {
  readonly brokers: readonly string[];
  /** Either this or a pattern. */
  readonly topic_name?: string;
  readonly topic_pattern?: string;
  readonly consumer_group_id?: string;
  readonly start_from?: string;
  readonly start_offsets?: Readonly<Record<string, number>>;
  readonly on_lost_offset?: 'resume' | 'earliest' | 'latest' | 'stop';
  readonly client_rack?: string;
  readonly auth?: Auth;
}

export interface Auth extends Partial<ClientCredentials & MskIam> {
  readonly type?: 'plain' | 'scram' | 'oauthbearer' | 'aws_msk_iam';
  readonly hash?: 'SHA256' | 'SHA512';
  readonly username?: string;
  readonly password?: string;
  readonly tls?: boolean;
  readonly ca?: string;
  readonly client_cert?: string;
  readonly client_key?: string;
  readonly extensions?: Readonly<Record<string, string>>;
}

/** Documented in `settings.json`. */
export type Settings = { readonly default_credentials?: boolean };

/**
 * With AWS IAM, a source needs an access key or permission to use the credentials of the process.
 * @throws PluginError
 */
export function mayLogIn({ auth = {} }: Connection, settings: Settings): void {
  if (
    auth.type !== 'aws_msk_iam' ||
    auth.access_key_id !== undefined ||
    settings.default_credentials !== false
  )
    return;
  throw new PluginError(
    'The source has no access key, and source.kafka.default_credentials keeps it from the credentials of the process.',
    { fix: 'Set auth.access_key_id and auth.secret_key.' },
  );
}

/**
 * By default, the group is the same in every agent but different for two sources of a topic, so
 * that each source gets every message.
 */
export function groupOf(connection: Connection, sourceId: string): string {
  return connection.consumer_group_id || `gateway-${sourceId}`;
}

export type PartitionKey = `${string}/${number}`;

export function keyOf(topic: string, partition: number): PartitionKey {
  return `${topic}/${partition}`;
}

/** The partition's name in lags and metrics: its number, with the topic if there may be several. */
export function labelOf(connection: Connection, topic: string, partition: number): string {
  return connection.topic_pattern === undefined ? String(partition) : keyOf(topic, partition);
}

/** A phrase, such as `the topic "orders"`. */
export function nameOf({ topic_name: topic, topic_pattern: pattern }: Connection): string {
  return pattern === undefined ? `the topic "${topic}"` : `topics that match "${pattern}"`;
}

/** @throws PluginError if fields of the connection contradict each other */
export function clusterConfig({ brokers, auth = {} }: Connection) {
  const sasl = saslOf(auth, brokers);
  const { ca, client_cert: cert, client_key: key, tls } = auth;
  if (ca !== undefined) checkAuthority(ca, tls);
  if (cert !== undefined || key !== undefined) checkIdentity(auth);
  return {
    brokers: [...brokers],
    ...(tls && {
      ssl: { ...(ca !== undefined && { ca: [ca] }), ...(cert !== undefined && { cert, key }) },
    }),
    ...(sasl && { sasl }),
  };
}

/**
 * Node.js accepts a broken certificate authority and then trusts no server.
 * @throws PluginError
 */
function checkAuthority(ca: string, tls: boolean | undefined): void {
  if (!tls)
    throw new PluginError(
      'auth.ca is given, but auth.tls is off, so the certificate authority would not be used.',
      { fix: 'Set auth.tls to true, or omit auth.ca.' },
    );
  certificateIn(ca, 'auth.ca');
}

function certificateIn(text: string, field: string): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch (cause) {
    throw new PluginError(`${field} is not a PEM certificate.`, {
      fix: 'Paste the whole file, from BEGIN CERTIFICATE to END CERTIFICATE.',
      cause,
    });
  }
}

function privateKeyIn(text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    throw text.includes('ENCRYPTED')
      ? new PluginError('auth.client_key is locked with a passphrase.', {
          fix: 'Give it without one: openssl pkey -in client.key',
        })
      : new PluginError('auth.client_key is not a PEM private key.', {
          fix: 'Paste the whole file, from BEGIN PRIVATE KEY to END PRIVATE KEY.',
        });
  }
}

/**
 * Node.js would report an unusable certificate or key only when connecting, without naming the
 * field.
 * @throws PluginError
 */
function checkIdentity({ client_cert: cert = '', client_key: key = '', tls }: Auth): void {
  const refuse = (message: string, fix: string, cause?: unknown) =>
    new PluginError(message, { fix, cause });
  if (!tls)
    throw refuse(
      'auth.client_cert is given, but auth.tls is off, so it would not be shown.',
      'Set auth.tls to true.',
    );
  const own = certificateIn(cert, 'auth.client_cert');
  if (!own.checkPrivateKey(privateKeyIn(key)))
    throw refuse(
      'auth.client_key is not the key of the first certificate in auth.client_cert.',
      'Give the key that the certificate was requested with, and the own certificate first in auth.client_cert.',
    );
  const expiresAt = new Date(own.validTo);
  if (expiresAt <= new Date())
    throw refuse(
      `auth.client_cert expired at ${expiresAt.toISOString()}.`,
      'Give a new certificate, and its key, in auth.client_key.',
    );
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    const { reason = 'OpenSSL refuses it' } = cause as { reason?: string };
    throw refuse(
      `auth.client_cert cannot be used for TLS: ${reason}.`,
      'Give another certificate.',
      cause,
    );
  }
}

/** Captures the region, as in `b-1.orders.a1b2c3.c2.kafka.eu-west-1.amazonaws.com:9098`. */
const MSK_BROKER = /\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?:\d+$/;

function mskIam({ region, tls, ...auth }: Auth, brokers: readonly string[]): MskIam {
  const named =
    region ??
    brokers.map((broker) => MSK_BROKER.exec(broker)?.[1]).find((found) => found !== undefined);
  if (named === undefined) {
    throw new PluginError(
      'auth.type is "aws_msk_iam", but auth.region is missing, and no host name in brokers names a region.',
      { fix: 'Set auth.region to the region of the cluster, such as eu-west-1.' },
    );
  }
  if (!tls) {
    throw new PluginError(
      'auth.type is "aws_msk_iam", but auth.tls is off. MSK offers IAM only over TLS.',
      { fix: 'Set auth.tls to true.' },
    );
  }
  return { ...auth, region: named };
}

function saslOf(auth: Auth, brokers: readonly string[]): SASLOptions | Mechanism | undefined {
  const { type, hash, username, password } = auth;
  if (type === undefined) {
    if (username === undefined && password === undefined && hash === undefined) return undefined;
    throw new PluginError('auth has a user name, password or hash, but no auth.type.', {
      fix: 'Set auth.type to "plain" or "scram" as the cluster requires, or omit the others.',
    });
  }
  if (type === 'aws_msk_iam') {
    const iam = mskIam(auth, brokers);
    // Loaded on demand: the AWS SDK takes memory and time, and few clusters need it.
    return oauthBearer(renewed(async () => (await import('./msk-iam.js')).mskToken(iam)));
  }
  if (type === 'oauthbearer') {
    const { token_endpoint, client_id, client_secret, extensions } = auth;
    if (token_endpoint && client_id && client_secret) {
      const client = { ...auth, token_endpoint, client_id, client_secret };
      return oauthBearer(clientCredentials(client), extensions);
    }
    throw new PluginError(
      'auth.type is "oauthbearer", but auth.token_endpoint, auth.client_id or auth.client_secret is missing.',
      { fix: 'Give all three.' },
    );
  }
  if (!username || !password) {
    throw new PluginError(
      `auth.type is "${type}", but auth.username or auth.password is missing.`,
      { fix: 'Give both.' },
    );
  }
  if (type === 'plain') return { mechanism: 'plain', username, password };
  if (hash === undefined) {
    throw new PluginError('auth.type is "scram", but auth.hash is missing.', {
      fix: 'Set auth.hash to "SHA256" or "SHA512", as the user was created on the cluster.',
    });
  }
  const login = { username, password };
  return hash === 'SHA256'
    ? { mechanism: 'scram-sha-256', ...login }
    : { mechanism: 'scram-sha-512', ...login };
}

/** Kafka's name; undefined without a mechanism. */
export function mechanismOf({ type, hash }: Auth): string | undefined {
  if (type === 'plain') return 'PLAIN';
  if (type === 'oauthbearer' || type === 'aws_msk_iam') return 'OAUTHBEARER';
  return type && (hash === 'SHA256' ? 'SCRAM-SHA-256' : 'SCRAM-SHA-512');
}
