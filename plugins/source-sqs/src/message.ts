import type { Message as Received } from '@aws-sdk/client-sqs';
import type { Message } from '@gateway/plugin';

/** The message of a queue as the gateway knows messages. Attributes become headers; binary ones as base64. */
export function toMessage({ MessageId, Body = '', Attributes, MessageAttributes }: Received): Message {
  const headers: Record<string, string> = {};
  for (const [name, { StringValue, BinaryValue }] of Object.entries(MessageAttributes ?? {})) {
    if (StringValue !== undefined) headers[name] = StringValue;
    else if (BinaryValue !== undefined) headers[name] = Buffer.from(BinaryValue).toString('base64');
  }
  if (Attributes?.AWSTraceHeader !== undefined) headers['x-amzn-trace-id'] = Attributes.AWSTraceHeader;
  return { coordinates: MessageId ?? '', timestamp: Number(Attributes?.SentTimestamp) || 0, body: Buffer.from(Body), headers };
}
