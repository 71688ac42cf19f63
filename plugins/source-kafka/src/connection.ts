import { X509Certificate } from 'node:crypto';
import { PluginError } from '@gateway/plugin';
import type { Mechanism, SASLOptions } from 'kafkajs';
import { clientCredentials, oauthBearer, type ClientCredentials } from './oauth-bearer.js';

/** The connection of a source record of kind `kafka`; `connection.json` describes each field to its user. */
export interface Connection {
  readonly brokers: readonly string[];
  readonly topic_name: string;
  readonly consumer_group_id?: string;
  readonly auth?: Auth;
}

export interface Auth extends Partial<ClientCredentials> {
  readonly type?: 'plain' | 'scram' | 'oauthbearer';
  readonly hash?: 'SHA256' | 'SHA512';
  readonly username?: string;
  readonly password?: string;
  readonly tls?: boolean;
  readonly ca?: string;
}

/** The consumer group: the same in every agent, and different for two sources of one topic, so that each gets every message. */
export function groupOf(connection: Connection, sourceId: string): string {
  return connection.consumer_group_id || `gateway-${sourceId}`;
}

/** The kafkajs settings to reach the cluster. Throws a `PluginError` when fields contradict each other. */
export function clusterConfig({ brokers, auth = {} }: Connection) {
  const sasl = saslOf(auth);
  if (auth.ca !== undefined) checkAuthority(auth.ca, auth.tls);
  return {
    brokers: [...brokers],
    ...(auth.tls && { ssl: auth.ca === undefined ? {} : { ca: [auth.ca] } }),
    ...(sasl && { sasl }),
  };
}

/** Node accepts a broken certificate without an error and then trusts no server. */
function checkAuthority(ca: string, tls: boolean | undefined): void {
  if (!tls) {
    throw new PluginError('auth.ca is given, but auth.tls is off, so the certificate authority would not be used.', {
      fix: 'Set auth.tls to true, or omit auth.ca.',
    });
  }
  try {
    new X509Certificate(ca);
  } catch (cause) {
    throw new PluginError('auth.ca is not a PEM certificate.', {
      fix: 'Paste the whole file, from BEGIN CERTIFICATE to END CERTIFICATE.',
      cause,
    });
  }
}

function saslOf(auth: Auth): SASLOptions | Mechanism | undefined {
  const { type, hash, username, password } = auth;
  if (type === undefined) {
    if (username === undefined && password === undefined && hash === undefined) return undefined;
    throw new PluginError('auth has a user name, password or hash, but no auth.type.', {
      fix: 'Set auth.type to "plain" or "scram" as the cluster requires, or omit the others.',
    });
  }
  if (type === 'oauthbearer') {
    const { token_endpoint, client_id, client_secret, scope } = auth;
    if (token_endpoint && client_id && client_secret) {
      return oauthBearer(clientCredentials({ token_endpoint, client_id, client_secret, ...(scope !== undefined && { scope }) }));
    }
    throw new PluginError('auth.type is "oauthbearer", but auth.token_endpoint, auth.client_id or auth.client_secret is missing.', {
      fix: 'Give all three.',
    });
  }
  if (!username || !password) {
    throw new PluginError(`auth.type is "${type}", but auth.username or auth.password is missing.`, { fix: 'Give both.' });
  }
  if (type === 'plain') return { mechanism: 'plain', username, password };
  if (hash === undefined) {
    throw new PluginError('auth.type is "scram", but auth.hash is missing.', {
      fix: 'Set auth.hash to "SHA256" or "SHA512", as the user was created on the cluster.',
    });
  }
  const login = { username, password };
  return hash === 'SHA256' ? { mechanism: 'scram-sha-256', ...login } : { mechanism: 'scram-sha-512', ...login };
}

/** The mechanism as Kafka names it. */
export function mechanismOf({ type, hash }: Auth): string | undefined {
  if (type === 'plain') return 'PLAIN';
  if (type === 'oauthbearer') return 'OAUTHBEARER';
  return type && (hash === 'SHA256' ? 'SCRAM-SHA-256' : 'SCRAM-SHA-512');
}
