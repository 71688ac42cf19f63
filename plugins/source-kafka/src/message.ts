import { isUtf8 } from 'node:buffer';
import type { Message } from '@gateway/plugin';
import type { IHeaders, KafkaMessage } from 'kafkajs';

const EMPTY = new Uint8Array(0);

/** A tombstone (null value) has an empty body. */
export function toMessage(topic: string, partition: number, record: KafkaMessage): Message {
  const timestamp = Number(record.timestamp);
  return {
    coordinates: `${topic}/${partition}/${record.offset}`,
    // Records of brokers before 0.10 have no timestamp: -1, or none.
    timestamp: timestamp > 0 ? timestamp : 0,
    body: record.value ?? EMPTY,
    headers: toHeaders(record.headers),
  };
}

/** Header values are bytes in Kafka: text is kept, anything else is omitted. Of a repeated header the last value counts. */
function toHeaders(headers: IHeaders | undefined): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const name in headers) {
    const given = headers[name];
    const value = Array.isArray(given) ? given.at(-1) : given;
    if (typeof value === 'string') texts[name] = value;
    else if (value && isUtf8(value)) texts[name] = value.toString('utf8');
  }
  return texts;
}
