import type { Source } from '@gateway/client';
import { root } from '../../router/location.js';

export const SAMPLE = {
  event_type: 'order.created',
  data: { number: 'A-1001', total: 120.5 },
} as const;

/** Returns the command that sets the key for the other commands. */
export function keyLine(key: string): string {
  return `export GATEWAY_KEY='${key}'`;
}

export function postLine(origin: string, projectId: string): string {
  return `curl ${origin}${root}/api/v1/projects/${projectId}/events \\
  -H "authorization: Bearer $GATEWAY_KEY" \\
  -H 'content-type: application/json' \\
  -d '${JSON.stringify(SAMPLE)}'`;
}

/** Returns a command that writes the sample to a source. */
export function firstMessage({ url, pub_sub: pubSub }: Source): string {
  const body = JSON.stringify(SAMPLE);
  if (url !== null)
    return `curl ${new URL(url, location.origin).href} -H 'content-type: application/json' -d '${body}'`;
  const connection = (pubSub?.[pubSub.type as 'kafka'] ?? {}) as Readonly<
    Record<string, string | readonly string[]>
  >;
  const text = (name: string) => [connection[name] ?? '…'].flat().join(',');
  return pubSub?.type === 'sqs'
    ? `aws sqs send-message --queue-url "$(aws sqs get-queue-url --queue-name ${text('queue_name')} --query QueueUrl --output text)" --message-body '${body}'`
    : `echo '${body}' | kafka-console-producer.sh --bootstrap-server ${text('brokers')} --topic ${text('topic_name')}`;
}

export function receiverLine(secret: string | undefined): string {
  return `WEBHOOK_SECRET='${secret ?? 'whsec_…'}' node receiver.mjs`;
}

/** The source of a Node.js receiver that verifies signatures. */
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
