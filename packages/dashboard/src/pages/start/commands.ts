import type { Source } from '@gateway/client';
import { root } from '../../router/location.js';
import { shellQuoted } from '../event-types/event-command.js';

export const SAMPLE = {
  event_type: 'order.created',
  data: { number: 'A-1001', total: 120.5 },
} as const;

export function keyLine(key: string): string {
  return `export GATEWAY_KEY='${key}'`;
}

export function postLine(origin: string, projectId: string): string {
  return `curl ${origin}${root}/api/v1/projects/${projectId}/events \\
  -H "authorization: Bearer $GATEWAY_KEY" \\
  -H 'content-type: application/json' \\
  -d '${JSON.stringify(SAMPLE)}'`;
}

export function firstMessage({ url, pub_sub: pubSub }: Source): string {
  const body = JSON.stringify(SAMPLE);
  if (url !== null)
    return `curl ${new URL(url, location.origin).href} -H 'content-type: application/json' -d '${body}'`;
  const connection = pubSub?.[pubSub.type as 'kafka'] ?? {};
  return pubSub?.type === 'sqs'
    ? sqsCommand(connection as SqsConnection, body)
    : kafkaCommand(connection as KafkaConnection, body);
}

interface KafkaConnection {
  readonly brokers: readonly string[];
  /** Undefined for a source that reads topics by a pattern. */
  readonly topic_name?: string;
  readonly auth?: object;
}

function kafkaCommand(
  { brokers, topic_name: topic = 'TOPIC', auth }: KafkaConnection,
  body: string,
): string {
  const login = auth ? ' --producer.config client.properties' : '';
  return `echo '${body}' | kafka-console-producer.sh --bootstrap-server ${brokers.join(',')} --topic ${topic}${login}`;
}

interface SqsConnection {
  /** The name, URL or ARN. */
  readonly queue_name: string;
  readonly default_region?: string;
  readonly endpoint?: string;
}

function sqsCommand(
  { queue_name: queue, default_region: region, endpoint }: SqsConnection,
  body: string,
): string {
  const place = [
    region ? ` --region ${region}` : '',
    endpoint ? ` --endpoint-url ${shellQuoted(endpoint)}` : '',
  ].join('');
  const name = queue.slice(queue.lastIndexOf(':') + 1);
  const url = /^https?:/.test(queue)
    ? shellQuoted(queue)
    : `"$(aws sqs get-queue-url${place} --queue-name ${name} --query QueueUrl --output text)"`;
  const group = queue.endsWith('.fifo') ? ' --message-group-id first' : '';
  return `aws sqs send-message${place} --queue-url ${url}${group} --message-body '${body}'`;
}

export function receiverLine(secret: string | undefined): string {
  return `WEBHOOK_SECRET='${secret ?? 'whsec_…'}' node receiver.mjs`;
}

export const RECEIVER = `import http from 'node:http';
import { verify } from '@gateway/client';

const secret = process.env.WEBHOOK_SECRET;
http
  .createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    try {
      console.log(await verify(Buffer.concat(chunks), request.headers, secret));
      response.writeHead(204).end();
    } catch (error) {
      console.error(error.message);
      response.writeHead(400).end();
    }
  })
  .listen(process.env.PORT ?? 8080);`;
