import { ErrorChain, explainNetwork, PluginError } from '@gateway/plugin';
import type { Connection } from './queue.js';

/** States what failed, at which queue, and which field to change. */
export function explain(error: unknown, connection: Connection): PluginError {
  if (error instanceof PluginError) return error;
  const {
    access_key_id: key,
    role_arn: role,
    queue_name: queue,
    default_region: region,
    endpoint,
  } = connection;
  const chain = new ErrorChain(error);
  const is = chain.has.bind(chain);
  const because = (message: string, fix: string) => new PluginError(message, { fix, cause: error });
  const place = placeOf(connection);
  const keys = key === undefined ? 'The credentials of this process' : `The access key ${key}`;
  const identity = role === undefined ? keys : `The role ${role}`;
  const field = endpoint === undefined ? 'default_region' : 'endpoint';

  if (is('CredentialsProviderError')) {
    const fix =
      'Set access_key_id and secret_key; or give the machines of server and agents credentials: environment, profile, web identity, or a role.';
    return because('This process has no AWS credentials.', fix);
  }
  if (is(/sts:AssumeRole/)) {
    const fix =
      'Name its identity in the trust policy of the role, let it use sts:AssumeRole on the role, and check role_arn and external_id.';
    return because(`${keys} may not assume the role ${role}.`, fix);
  }
  if (is('InvalidClientTokenId', 'UnrecognizedClientException', 'InvalidAccessKeyId')) {
    const fix =
      key === undefined
        ? 'Check where this process has them from'
        : 'Check access_key_id and that the key is active';
    return because(
      `${keys} ${key === undefined ? 'are' : 'is'} not known.`,
      `${fix}; a compatible server may need endpoint.`,
    );
  }
  if (is('RequestExpired', 'RequestTimeTooSkewed', /signature (expired|not yet current)/i)) {
    return because(`${place} refused the time of the request.`, 'Set the clock of this machine.');
  }
  if (is('SignatureDoesNotMatch', 'InvalidSignatureException')) {
    if (key === undefined)
      return because(
        'The secret key of this process does not belong to its access key.',
        'Check where this process has them from.',
      );
    return because(`The secret key does not belong to the access key ${key}.`, 'Check secret_key.');
  }
  if (is('AccessDenied', 'AccessDeniedException', 'OptInRequired', 'InvalidSecurity')) {
    const actions =
      'sqs:GetQueueUrl, GetQueueAttributes, ReceiveMessage, DeleteMessage and ChangeMessageVisibility';
    return because(
      `${identity} may not use the queue "${queue}".`,
      `Give its identity ${actions} on the queue.`,
    );
  }
  if (is(/^Kms/m)) {
    const message = `${identity} may not use the key that the queue "${queue}" is encrypted with.`;
    return because(message, 'Give its identity kms:Decrypt on that key.');
  }
  if (
    is(
      'QueueDoesNotExist',
      'AWS.SimpleQueueService.NonExistentQueue',
      'ResourceNotFoundException',
      'InvalidAddress',
    )
  ) {
    const message = `There is no queue "${queue}" in ${region}${endpoint ? ` at ${endpoint}` : ''}.`;
    return because(message, 'Check queue_name and default_region, or create the queue.');
  }
  const certificate =
    'Give the server a certificate that this machine trusts (NODE_EXTRA_CA_CERTS names further authorities).';
  const network = explainNetwork(chain, {
    place,
    authority: 'a known authority',
    fixes: {
      wrongHost: certificate,
      expired: certificate,
      untrusted: certificate,
      noTls: `Check ${field}: http:// and https://.`,
      unresolved: `Check ${field}, and the name service of this machine.`,
      refused: `Check ${field}, and that the server runs.`,
      silent: `Check ${field}, and that a firewall lets this machine reach it.`,
    },
  });
  if (network) return network;
  if (is('RequestThrottled', 'ThrottlingException', 'Throttling', 'OverLimit')) {
    return because(
      `${place} answers fewer requests than this source makes.`,
      'Lower the workers of the source, or raise the quota.',
    );
  }
  const fix = `Check ${field} and the health of the service.`;
  const message = `Reading the queue "${queue}" from ${place} failed.`;
  return new PluginError(message, { fix, cause: error, said: chain.messages.split('\n')[0] });
}

/** As users know the service. */
export const placeOf = ({ endpoint, default_region }: Connection) =>
  endpoint ?? `SQS in ${default_region}`;
