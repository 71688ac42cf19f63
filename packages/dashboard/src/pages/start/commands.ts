import { root } from '../../router/location.js';

/** A message to try a project with. */
export const SAMPLE = { event_type: 'order.created', data: { number: 'A-1001', total: 120.5 } } as const;

/** Puts a key where the other lines expect it. */
export function keyLine(key: string): string {
  return `export GATEWAY_KEY='${key}'`;
}

/** Sends the sample to a project over the API. */
export function postLine(origin: string, projectId: string): string {
  return `curl ${origin}${root}/api/v1/projects/${projectId}/events \\
  -H "authorization: Bearer $GATEWAY_KEY" \\
  -H 'content-type: application/json' \\
  -d '${JSON.stringify(SAMPLE)}'`;
}

/** Starts the receiver below. */
export function receiverLine(secret: string | undefined): string {
  return `WEBHOOK_SECRET='${secret ?? 'whsec_…'}' node receiver.mjs`;
}

/** A receiver that verifies what it gets, for Node. */
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
