import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { json } from 'node:stream/consumers';

/**
 * Starts an npm registry on loopback that has only these tarballs, one version of each package, and
 * what is published to it: package managers use it for the scope of the gateway.
 * https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md
 * @returns its URL, without a slash at the end
 */
export async function startRegistry(tarballs: readonly string[]) {
  const packages = new Map(
    tarballs.map((file) => {
      const manifest = JSON.parse(
        execFileSync('tar', ['-xzOf', file, 'package/package.json'], { encoding: 'utf8' }),
      ) as { name: string; version: string };
      return [manifest.name, { file, manifest }];
    }),
  );
  const published: string[] = [];
  const documents = new Map<string, unknown>();
  const server = createServer((request, response) => {
    if (request.method === 'PUT') {
      void json(request).then((document) => {
        const { name } = document as { name: string };
        published.push(name);
        documents.set(name, document);
        response.end('{"ok":true}');
      });
      return;
    }
    const name = decodeURIComponent(
      new URL(request.url ?? '/', 'http://registry').pathname.slice(1),
    );
    const tarball = tarballs.find((file) => path.basename(file) === name);
    if (tarball) {
      response.end(readFileSync(tarball));
      return;
    }
    const document = documents.get(name);
    if (document) {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(document));
      return;
    }
    const found = packages.get(name);
    if (!found) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"not found"}');
      return;
    }
    const { file, manifest } = found;
    const integrity = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`;
    const dist = { tarball: `${url}/${path.basename(file)}`, integrity };
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({
        name,
        'dist-tags': { latest: manifest.version },
        // Package managers can refuse versions that are only days old.
        time: { [manifest.version]: '2020-01-01T00:00:00.000Z' },
        versions: { [manifest.version]: { ...manifest, dist } },
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    /** Names, in order. */
    published,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
