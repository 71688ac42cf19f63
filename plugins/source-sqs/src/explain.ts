import { PluginError } from '@gateway/plugin';
import type { Connection } from './connection.js';

interface Explanation {
  readonly message: string;
  readonly fix: string;
}

interface Failure {
  /** Names and codes of the error and of its causes. */
  readonly names: ReadonlySet<string>;
  readonly message: string;
}

const any = (of: ReadonlySet<string>, ...names: string[]) => names.some((name) => of.has(name));

/** One row per mistake: the first that recognises the failure says what happened. */
const ROWS: readonly ((failure: Failure, connection: Connection) => Explanation | undefined)[] = [
  ({ names }, { access_key_id }) =>
    any(names, 'InvalidClientTokenId', 'UnrecognizedClientException', 'InvalidAccessKeyId')
      ? {
          message: `The access key ${access_key_id} is not known.`,
          fix: 'Check access_key_id and that the key is active; a compatible server may want endpoint.',
        }
      : undefined,
  ({ names, message }, connection) =>
    any(names, 'RequestExpired', 'RequestTimeTooSkewed') || /signature (expired|not yet current)/i.test(message)
      ? { message: `${placeOf(connection)} refused the time of the request.`, fix: 'Set the clock of this machine.' }
      : undefined,
  ({ names }, { access_key_id }) =>
    any(names, 'SignatureDoesNotMatch', 'InvalidSignatureException')
      ? { message: `The secret key does not belong to the access key ${access_key_id}.`, fix: 'Check secret_key.' }
      : undefined,
  ({ names }, { access_key_id, queue_name }) =>
    any(names, 'AccessDenied', 'AccessDeniedException', 'OptInRequired', 'InvalidSecurity')
      ? {
          message: `The access key ${access_key_id} may not use the queue "${queue_name}".`,
          fix: 'Give its identity sqs:GetQueueUrl, GetQueueAttributes, ReceiveMessage, DeleteMessage and ChangeMessageVisibility on the queue.',
        }
      : undefined,
  ({ names }, { access_key_id, queue_name }) =>
    [...names].some((name) => name.startsWith('Kms'))
      ? {
          message: `The access key ${access_key_id} may not use the key that the queue "${queue_name}" is encrypted with.`,
          fix: 'Give its identity kms:Decrypt on that key.',
        }
      : undefined,
  ({ names }, connection) =>
    any(names, 'QueueDoesNotExist', 'AWS.SimpleQueueService.NonExistentQueue', 'ResourceNotFoundException', 'InvalidAddress')
      ? {
          message: `There is no queue "${connection.queue_name}" in ${connection.default_region}${connection.endpoint ? ` at ${connection.endpoint}` : ''}.`,
          fix: 'Check queue_name and default_region, or create the queue.',
        }
      : undefined,
  ({ names }, connection) =>
    any(names, 'ENOTFOUND', 'EAI_AGAIN')
      ? {
          message: `The host name of ${placeOf(connection)} cannot be resolved.`,
          fix: `Check ${placeField(connection)}, and the name service of this machine.`,
        }
      : undefined,
  ({ names }, connection) =>
    any(names, 'ECONNREFUSED')
      ? { message: `Nothing listens at ${placeOf(connection)}.`, fix: `Check ${placeField(connection)}, and that the server runs.` }
      : undefined,
  ({ names, message }, connection) =>
    any(names, 'EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER') || /before secure TLS connection|wrong version number/i.test(message)
      ? { message: `${placeOf(connection)} does not speak TLS.`, fix: `Check ${placeField(connection)}: http:// and https://.` }
      : undefined,
  ({ names }, connection) =>
    [...names].some((name) => /SELF_SIGNED|UNABLE_TO_|CERT_/.test(name))
      ? {
          message: `The certificate of ${placeOf(connection)} is not signed by a known authority or does not name this host.`,
          fix: 'Give the server a certificate that this machine trusts (NODE_EXTRA_CA_CERTS names further authorities).',
        }
      : undefined,
  ({ names }, connection) =>
    any(names, 'TimeoutError', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH')
      ? {
          message: `${placeOf(connection)} does not answer.`,
          fix: `Check ${placeField(connection)}, and that a firewall lets this machine reach it.`,
        }
      : undefined,
  ({ names }, connection) =>
    any(names, 'RequestThrottled', 'ThrottlingException', 'Throttling', 'OverLimit')
      ? {
          message: `${placeOf(connection)} answers fewer requests than this source makes.`,
          fix: 'Lower the workers of the source, or raise the quota.',
        }
      : undefined,
];

/** The sentence for an error of the SDK: what failed, at which queue, and which field to change. */
export function explain(error: unknown, connection: Connection): PluginError {
  if (error instanceof PluginError) return error;
  const failure = unwrap(error);
  for (const row of ROWS) {
    const explanation = row(failure, connection);
    if (explanation) return new PluginError(explanation.message, { fix: explanation.fix, cause: error });
  }
  return new PluginError(`Reading the queue "${connection.queue_name}" from ${placeOf(connection)} failed: ${failure.message}`, {
    fix: `Check ${placeField(connection)} and the health of the service.`,
    cause: error,
  });
}

/** What a person calls the service. */
export const placeOf = ({ endpoint, default_region }: Connection) => endpoint ?? `SQS in ${default_region}`;
const placeField = ({ endpoint }: Connection) => (endpoint === undefined ? 'default_region' : 'endpoint');

function unwrap(error: unknown): Failure {
  const names = new Set<string>();
  const seen = new Set<unknown>();
  for (let at = error; at instanceof Error && !seen.has(at); at = at.cause) {
    seen.add(at);
    const { name, code, Code } = at as Error & { code?: unknown; Code?: unknown };
    for (const it of [name, code, Code]) if (typeof it === 'string') names.add(it);
  }
  return { names, message: error instanceof Error ? error.message : String(error) };
}
