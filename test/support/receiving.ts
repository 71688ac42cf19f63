import http from 'node:http';
import { gunzipSync, inflateSync } from 'node:zlib';
import type { PluginLog } from '@gateway/plugin';
import { loopback } from './ports.js';

export interface Receiving {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  readonly host: string;
  readonly requests: {
    method: string;
    path: string;
    headers: http.IncomingHttpHeaders;
    body: string;
  }[];
  bodies(path: RegExp): string;
  close(): Promise<void>;
}

/**
 * Listens on loopback, decompresses bodies, and answers each request with `answer`.
 * @param options.port by default a free one
 */
export async function receiving(
  answer: (path: string) => { status: number; body?: string },
  options: { port?: number } = {},
): Promise<Receiving> {
  const requests: Receiving['requests'] = [];
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      requests.push({
        method,
        path,
        headers,
        body: unpack(Buffer.concat(chunks), headers['content-encoding']),
      });
      const { status, body = '{}' } = answer(path);
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    });
  });
  const host = `127.0.0.1:${await loopback(server, options.port)}`;
  return {
    url: `http://${host}`,
    host,
    requests,
    bodies: (path) =>
      requests
        .filter((request) => path.test(request.path))
        .map(({ body }) => body)
        .join('\n'),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A plugin log and its records: sentences alone, and lines with fields. */
export function logged(): { sentences: string[]; lines: string[]; log: PluginLog } {
  const sentences: string[] = [];
  const lines: string[] = [];
  const tell = (fields: object, sentence: string) => {
    sentences.push(sentence);
    lines.push(`${JSON.stringify(fields)} ${sentence}`);
  };
  return { sentences, lines, log: { debug: tell, info: tell, warn: tell, error: tell } };
}

function unpack(bytes: Buffer, encoding: string | undefined): string {
  if (bytes.length === 0) return '';
  if (encoding === 'gzip') return gunzipSync(bytes).toString();
  return (encoding === 'deflate' ? inflateSync(bytes) : bytes).toString();
}
