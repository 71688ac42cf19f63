import { isObject } from '@gateway/core/json';

/** A service wraps it around messages. The first match is reported. */
interface Envelope {
  readonly is: (value: unknown) => boolean;
  readonly what: string;
  readonly fix: string;
}

/** A message stored in S3, by version of the Extended Client Library for SQS. */
const S3_POINTERS: readonly unknown[] = [
  'software.amazon.payloadoffloading.PayloadS3Pointer',
  'com.amazon.sqs.javamessaging.MessageS3Pointer',
];

const taken = (expression: string) =>
  `give the source a transform function, such as function transform(payload) { return ${expression}; }`;
const given =
  (...names: string[]) =>
  (value: unknown) =>
    isObject(value) && names.every((name) => value[name] !== undefined);
/** Never converts the value to a string, which would throw if its `toString` is not a function. */
const isOf =
  (name: string, ...texts: unknown[]) =>
  (value: unknown) =>
    isObject(value) && texts.includes(value[name]);
const first = (value: unknown, name: string): unknown =>
  isObject(value) && Array.isArray(value[name]) ? (value[name] as unknown[])[0] : undefined;

const ENVELOPES: readonly Envelope[] = [
  {
    is: (value) => isOf('Type', 'Notification')(value) && given('Message', 'TopicArn')(value),
    what: 'a notification of SNS, with the message as text in its Message',
    fix: `Turn on raw message delivery of the subscription (RawMessageDelivery), or ${taken('JSON.parse(payload.Message)')}`,
  },
  {
    is: (value) =>
      isOf('Type', 'SubscriptionConfirmation', 'UnsubscribeConfirmation')(value) &&
      given('SubscribeURL', 'TopicArn')(value),
    what: 'the confirmation of a subscription of SNS, not a message',
    fix: 'Open its SubscribeURL if the subscription is meant, and delete the message from quarantine',
  },
  {
    is: given('detail-type', 'detail', 'source'),
    what: 'an event of EventBridge, with the data in its detail',
    fix: `Give the target of the rule an input transformer, or ${taken("{ event_type: payload['detail-type'], data: payload.detail }")}`,
  },
  {
    is: (value) => Array.isArray(value) && S3_POINTERS.includes(value[0]),
    what: 'a pointer of the Extended Client Library for SQS: the message itself is in S3, which the gateway does not read',
    fix: `Let the producer send messages of up to 1 MiB without the library, or events that refer to the object: ${taken("{ event_type: 'stored', data: payload[1] }")}`,
  },
  {
    is: (value) =>
      isOf('eventSource', 'aws:s3')(first(value, 'Records')) ||
      isOf('Event', 's3:TestEvent')(value),
    what: 'a notification of S3 on objects that changed',
    fix: `Send what it says as an event: ${taken('payload.Records?.map((data) => ({ event_type: data.eventName, data })) ?? null')}`,
  },
  {
    is: given('specversion', 'type', 'id', 'source'),
    what: 'a CloudEvent in JSON',
    fix: 'Give the source of a broker the codec cloudevents, or one of type http the format cloudevents',
  },
  {
    is: (value) => isChange(value) || (isObject(value) && isChange(value['payload'])),
    what: 'a change event of Debezium',
    fix: `Unwrap it in the connector (ExtractNewRecordState, Outbox Event Router), or ${taken("{ event_type: 'changed', data: payload.payload ?? payload }")}`,
  },
];

function isChange(value: unknown): boolean {
  return given('op', 'source')(value) && isObject(value) && ('before' in value || 'after' in value);
}

/** Undefined for an ingest message or an unknown envelope. */
export function envelopeReason(value: unknown): string | undefined {
  if (given('event_type')(value)) return undefined;
  const envelope = ENVELOPES.find(({ is }) => is(value));
  return (
    envelope &&
    `The message is not an ingest message: it is ${envelope.what}. ${envelope.fix}. Then replay what is in quarantine.`
  );
}
