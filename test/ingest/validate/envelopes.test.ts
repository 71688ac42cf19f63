import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseIngestMessage } from '#ingest/validate/parse-message';

const envelopes = suite('ingest/validate/envelopes');

const inner = JSON.stringify({ event_type: 'paid', data: {} });
const rows: Record<string, [message: unknown, what: RegExp]> = {
  SNS: [
    { Type: 'Notification', MessageId: '1', TopicArn: 'arn:aws:sns:eu-west-1:1:t', Message: inner },
    /SNS.*RawMessageDelivery.*JSON\.parse\(payload\.Message\)/,
  ],
  'SNS confirmation': [
    { Type: 'SubscriptionConfirmation', TopicArn: 'arn', SubscribeURL: 'https://x' },
    /confirmation.*SubscribeURL/,
  ],
  EventBridge: [
    { version: '0', 'detail-type': 'Paid', source: 'shop', detail: {} },
    /EventBridge.*payload\.detail/,
  ],
  'S3 pointer': [
    ['software.amazon.payloadoffloading.PayloadS3Pointer', { s3BucketName: 'b', s3Key: 'k' }],
    /Extended Client.*in S3/,
  ],
  'older S3 pointer': [['com.amazon.sqs.javamessaging.MessageS3Pointer', {}], /Extended Client/],
  'S3 notification': [
    { Records: [{ eventSource: 'aws:s3', eventName: 'ObjectCreated:Put' }] },
    /notification of S3/,
  ],
  'S3 test': [{ Service: 'Amazon S3', Event: 's3:TestEvent' }, /notification of S3/],
  CloudEvents: [
    { specversion: '1.0', type: 'a', id: '1', source: '/s', data: {} },
    /CloudEvent.*codec cloudevents/,
  ],
  Debezium: [{ before: null, after: {}, op: 'c', source: {} }, /Debezium/],
  'Debezium with a schema': [
    { schema: {}, payload: { after: {}, op: 'c', source: {} } },
    /Debezium.*ExtractNewRecordState/,
  ],
};
for (const [name, [message, what]] of Object.entries(rows))
  envelopes(`${name}: the reason names it and the way out`, () => {
    const { code, reason } = parseIngestMessage(JSON.stringify(message)) as {
      code: string;
      reason: string;
    };
    assert.is(code, 'invalid_message');
    assert.match(reason, what);
    assert.match(reason, /Then replay what is in quarantine\.$/);
    const wrapped = { ...(message as object), event_type: 'paid', data: {} };
    if (!Array.isArray(message))
      assert.not.ok(
        'code' in parseIngestMessage(JSON.stringify(wrapped)),
        'an ingest message with the same members',
      );
  });

envelopes('others are told what is missing, as before', () => {
  for (const [text, reason] of [
    ['{"Type":"Notification"}', /event_type is missing/],
    ['["x"]', /must be a JSON object/],
    ['{"Records":[]}', /event_type is missing/],
    ['7', /not a number/],
  ] as const)
    assert.match((parseIngestMessage(text) as { reason: string }).reason, reason);
});

envelopes('members that cannot become text are looked at like any others', () => {
  const hostile: unknown[] = [
    { toString: false },
    { toString: null, valueOf: 1 },
    [{ toString: 0 }],
  ];
  for (const [message] of Object.values(rows))
    for (const name of Object.keys(message as object))
      for (const value of hostile) {
        const text = JSON.stringify(
          Array.isArray(message) ? [value] : { ...(message as object), [name]: value },
        );
        assert.is((parseIngestMessage(text) as { code: string }).code, 'invalid_message', text);
      }
});

envelopes.run();
