import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SQSClient,
  type BatchResultErrorEntry,
  type Message as Received,
} from '@aws-sdk/client-sqs';
import { fromNodeProviderChain, fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import { asProcess, PluginError, type Advice } from '@gateway/plugin';

/** `connection.json` documents the fields. */
export interface Connection {
  readonly access_key_id?: string;
  readonly secret_key?: string;
  readonly role_arn?: string;
  readonly external_id?: string;
  readonly default_region: string;
  readonly queue_name: string;
  readonly endpoint?: string;
}

/**
 * Per request:
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
 */
export const BATCH_SIZE = 10;

const LONGEST_POLL_SECONDS = 20;
const CONNECTION_TIMEOUT_MS = 3_000;
const REQUEST_TIMEOUT_MS = 8_000;
const POLL_TIMEOUT_MS = (LONGEST_POLL_SECONDS + 10) * 1000;

/**
 * How long a dead agent's messages stay hidden at most. A live agent extends its messages' timeout.
 */
const VISIBILITY_MAX_SECONDS = 30;

/** Its functions reject with SDK errors. */
export type Queue = Awaited<ReturnType<typeof openQueue>>;

export interface Failed {
  readonly index: number;
  readonly code: string;
  /** A retry is useless. */
  readonly isFinal: boolean;
}

/** Documented in `settings.json`. */
export type Settings = { readonly default_credentials?: boolean };

/**
 * Logs nothing. `attempts` are those per request, including the first.
 * @throws PluginError if there is no access key and the settings forbid using the credentials of
 *   the process
 */
export function openClient(
  connection: Connection,
  settings: Settings,
  { attempts }: { attempts: number },
): SQSClient {
  // Disable the SDK's warning about Node.js versions it will stop supporting: the gateway chooses
  // the version.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
  // The plugin limits its requests: one per worker, and a few that delete or hide messages. These must
  // not wait until a poll ends and frees a connection.
  const agent = { keepAlive: true, maxSockets: Infinity };
  return new SQSClient({
    region: connection.default_region,
    ...credentialsOf(connection, settings),
    maxAttempts: attempts,
    // Use the endpoint instead of the queue URL, because queue URLs of a compatible server may
    // resolve only inside its network.
    ...(connection.endpoint !== undefined && {
      endpoint: connection.endpoint,
      useQueueUrlAsEndpoint: false,
    }),
    requestHandler: {
      httpAgent: agent,
      httpsAgent: agent,
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      throwOnRequestTimeout: true,
    },
  });
}

/**
 * From the connection or, without any, from the process: environment, profile, web identity,
 * container or instance. With a role, they are used to assume it.
 * @throws PluginError if there is no access key and the settings forbid using the credentials of
 *   the process
 */
function credentialsOf(
  {
    access_key_id: key,
    secret_key: secret,
    role_arn: role,
    external_id: externalId,
    default_region: region,
  }: Connection,
  settings: Settings,
) {
  const keys =
    key !== undefined && secret !== undefined
      ? { accessKeyId: key, secretAccessKey: secret }
      : undefined;
  if (keys === undefined && settings.default_credentials === false) {
    throw new PluginError(
      'The source has no access key, and source.sqs.default_credentials keeps it from the credentials of the process.',
      { fix: 'Set access_key_id and secret_key.' },
    );
  }
  const ofProcess = fromNodeProviderChain({ clientConfig: { region } });
  const credentials = keys ?? (() => asProcess(ofProcess));
  if (role === undefined) return { credentials };
  const params = {
    RoleArn: role,
    RoleSessionName: 'gateway',
    ...(externalId !== undefined && { ExternalId: externalId }),
  };
  return { credentials: fromTemporaryCredentials({ params, masterCredentials: credentials }) };
}

const REGIONS = [
  /(?:^|\.)sqs(?:-fips)?\.([a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?$/,
  /^([a-z0-9-]+)\.queue\.amazonaws\.com(?:\.cn)?$/,
];

/**
 * Replaces a queue URL or ARN with the queue's name, and adds its owner's account.
 * @throws PluginError if it names a region other than `default_region`, or is the URL of a
 *   compatible server and there is no `endpoint`
 */
export function named(connection: Connection): Connection & { readonly owner?: string } {
  const { queue_name: given, default_region: region } = connection;
  const [, ofArn, ofAccount, ofQueue] = /^arn:[^:]+:sqs:([^:]*):(\d*):(.+)$/.exec(given) ?? [];
  // A regular expression, because URL parsers reject some hosts of compatible servers.
  const [, origin, host = '', path] = /^(https?:\/\/([^/:]+)(?::\d+)?)\/(.+)$/.exec(given) ?? [];
  const [name = given, account] =
    ofQueue === undefined ? (path?.split('/').reverse() ?? []) : [ofQueue, ofAccount];
  const isAt =
    ofArn ?? REGIONS.map((pattern) => pattern.exec(host)?.[1]).find((it) => it !== undefined);
  if (isAt !== undefined && isAt !== region) {
    throw new PluginError(`The queue ${given} is in ${isAt}, but default_region is ${region}.`, {
      fix: 'Set default_region to the region of the queue.',
    });
  }
  if (
    origin !== undefined &&
    connection.endpoint === undefined &&
    !/(^|\.)amazonaws\.com(\.cn)?$/.test(host)
  ) {
    const fix = `Set endpoint to ${origin}, or give the URL that AWS shows for the queue.`;
    throw new PluginError(
      `The URL of the queue is one of ${host}, which is not SQS, and the source has no endpoint.`,
      { fix },
    );
  }
  return {
    ...connection,
    queue_name: name,
    ...(isAt !== undefined && account && { owner: account }),
  };
}

/** Reads the visibility timeout and redrive policy. */
export async function openQueue(
  client: SQSClient,
  { queue_name: name, owner }: ReturnType<typeof named>,
  abortSignal: AbortSignal,
) {
  const lookUp = new GetQueueUrlCommand({
    QueueName: name,
    ...(owner !== undefined && { QueueOwnerAWSAccountId: owner }),
  });
  const { QueueUrl } = await client.send(lookUp, { abortSignal });
  const { Attributes } = await client.send(
    new GetQueueAttributesCommand({
      QueueUrl,
      AttributeNames: ['VisibilityTimeout', 'RedrivePolicy'],
    }),
    { abortSignal },
  );
  const visibilitySeconds = Math.min(
    Number(Attributes?.['VisibilityTimeout']) || VISIBILITY_MAX_SECONDS,
    VISIBILITY_MAX_SECONDS,
  );
  return {
    advice: redriveAdvice(name, Attributes?.['RedrivePolicy']),
    /** A received message is hidden for this time unless extended. */
    visibilitySeconds,
    /** Approximate, excluding delayed and received messages. */
    async waiting(signal: AbortSignal): Promise<number> {
      const command = new GetQueueAttributesCommand({
        QueueUrl,
        AttributeNames: ['ApproximateNumberOfMessages'],
      });
      const { Attributes: counted } = await client.send(command, { abortSignal: signal });
      return Number(counted?.['ApproximateNumberOfMessages'] ?? 0);
    },
    /** At most ten. Waits up to 20 seconds for the first. */
    async receive(most: number, signal: AbortSignal): Promise<Received[]> {
      const command = new ReceiveMessageCommand({
        QueueUrl,
        MaxNumberOfMessages: Math.min(most, BATCH_SIZE),
        WaitTimeSeconds: LONGEST_POLL_SECONDS,
        VisibilityTimeout: visibilitySeconds,
        MessageSystemAttributeNames: [
          'SentTimestamp',
          'AWSTraceHeader',
          'MessageGroupId',
          'ApproximateReceiveCount',
        ],
        MessageAttributeNames: ['All'],
      });
      const { Messages = [] } = await client.send(command, {
        abortSignal: signal,
        requestTimeout: POLL_TIMEOUT_MS,
      });
      return Messages;
    },
    /** Up to ten. Returns the failures. */
    async delete(receiptHandles: readonly string[]): Promise<Failed[]> {
      const entries = receiptHandles.map((ReceiptHandle, index) => ({
        Id: String(index),
        ReceiptHandle,
      }));
      return failures(
        (await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries: entries }))).Failed,
      );
    },
    /**
     * Up to ten messages, for a number of seconds from now; 0 releases a message. Returns the
     * failures.
     */
    async hide(
      messages: readonly { readonly receiptHandle: string; readonly seconds: number }[],
    ): Promise<Failed[]> {
      const entries = messages.map(
        ({ receiptHandle: ReceiptHandle, seconds: VisibilityTimeout }, index) => {
          return { Id: String(index), ReceiptHandle, VisibilityTimeout };
        },
      );
      return failures(
        (await client.send(new ChangeMessageVisibilityBatchCommand({ QueueUrl, Entries: entries })))
          .Failed,
      );
    },
  };
}

/**
 * If the queue moves messages to its dead-letter queue after a single receipt:
 * docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
 */
function redriveAdvice(queue: string, policy: string | undefined): Advice | undefined {
  let count = NaN;
  try {
    count = Number((JSON.parse(policy ?? '{}') as { maxReceiveCount?: unknown }).maxReceiveCount);
  } catch {
    // A compatible server may send invalid JSON. Treat it as no policy.
  }
  if (!(count <= 1)) return undefined;
  return {
    message: `The queue "${queue}" moves a message to its dead-letter queue after one receipt (maxReceiveCount ${count}): those that an agent has when it restarts or dies go there, and become no events.`,
    fix: 'Set maxReceiveCount of its redrive policy to 5 or more, and move what is in the dead-letter queue back.',
  };
}

function failures(failed: BatchResultErrorEntry[] = []): Failed[] {
  return failed.map(({ Id, Code, SenderFault }) => ({
    index: Number(Id),
    code: Code ?? 'unknown',
    isFinal: SenderFault === true,
  }));
}
