import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { mkdtempSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import Koa from 'koa';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { serveDashboard } from '#server/dashboard';
import { loopback } from '../support/ports.js';
import { configOf, startApi, type Api } from './api.js';

const dashboard = suite('server/dashboard');

let api: Api;
let below: Api;
dashboard.before(async () => {
  [api, below] = await Promise.all([
    startApi(),
    startApi({
      file: {
        root_path: '/gateway',
        portal: { frame_ancestors: ["'self'", 'https://*.example.com'] },
      },
    }),
  ]);
});
dashboard.after(async () => {
  await api.close();
  await below.close();
});

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

interface Got {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Unlike `fetch`, does not decompress. */
function get(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Got> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { headers, method }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks),
        }),
      );
    });
    request.on('error', reject);
    request.end();
  });
}

const assetsOf = (page: Buffer) =>
  [...page.toString().matchAll(/(?:src|href)="([^"]*\/assets\/[^"]+)"/g)].map(
    ([, path = '']) => path,
  );

dashboard(
  'a browser gets the page on every path outside the API, and loads nothing inline or from elsewhere',
  async () => {
    for (const path of ['/', '/projects/a/events?status=failure', '/anything/else']) {
      const { status, headers, body } = await get(api.url + path, HTML);
      assert.is(status, 200, path);
      assert.match(headers['content-type'] ?? '', 'text/html');
      const policy = headers['content-security-policy'];
      assert.match(String(policy), "default-src 'none'; script-src 'self'; style-src 'self'");
      assert.not.match(String(policy), 'unsafe');
      assert.match(String(policy), "frame-ancestors 'none'");
      assert.not.match(body.toString(), /<script>|<style|\bon\w+=|style="/);
      assert.ok(assetsOf(body).length >= 3);
    }
  },
);

dashboard('it is revalidated by its tag, and its files are kept forever', async () => {
  const { headers, body } = await get(`${api.url}/`, HTML);
  assert.is(headers['cache-control'], 'no-cache');
  assert.is(
    (await get(`${api.url}/`, { ...HTML, 'if-none-match': headers.etag ?? '' })).status,
    304,
  );
  for (const path of assetsOf(body)) {
    const asset = await get(api.url + path);
    assert.equal(
      [asset.status, asset.headers['cache-control']],
      [200, 'public, max-age=31536000, immutable'],
      path,
    );
    assert.is(
      (await get(api.url + path, { 'if-none-match': asset.headers.etag ?? '' })).status,
      304,
    );
    assert.is(asset.headers['x-content-type-options'], 'nosniff');
  }
});

dashboard('files come compressed as the browser asks for them', async () => {
  const { body } = await get(`${api.url}/`, HTML);
  const script = api.url + assetsOf(body).find((path) => /main-\w+\.js$/.test(path));
  const plain = await get(script);
  assert.is(plain.headers['content-encoding'], undefined);
  assert.match(plain.headers['content-type'] ?? '', 'javascript');
  const brotli = await get(script, { 'accept-encoding': 'gzip, deflate, br' });
  assert.equal(
    [brotli.headers['content-encoding'], brotli.headers.vary],
    ['br', 'accept-encoding'],
  );
  assert.equal(brotliDecompressSync(brotli.body), plain.body);
  const gzip = await get(script, { 'accept-encoding': 'gzip' });
  assert.equal(gunzipSync(gzip.body), plain.body);
});

dashboard(
  'it stays away from API, health and metrics, from other methods and from clients that want no page',
  async () => {
    for (const path of [
      '/api/v1/organisations',
      '/api/nothing',
      '/healthz',
      '/metrics',
      '/api/v1/docs',
    ])
      assert.is(
        (await get(api.url + path, HTML)).headers['content-security-policy']?.includes(
          "base-uri 'none'",
        ) ?? false,
        false,
        path,
      );
    assert.is((await get(`${api.url}/projects`)).status, 404);
    assert.is((await get(`${api.url}/`, { accept: 'application/json' })).status, 404);
    assert.is((await get(`${api.url}/`, HTML, 'POST')).status, 404);
    assert.is((await get(`${api.url}/assets/missing.js`, HTML)).status, 404);
    assert.is((await get(`${api.url}/assets/..%2findex.html`, HTML)).status, 404);
    const head = await get(`${api.url}/`, HTML, 'HEAD');
    assert.equal([head.status, head.body.length], [200, 0]);
  },
);

dashboard('a client that accepts anything gets the page at the start', async () => {
  for (const headers of [{}, { accept: '*/*' }]) {
    for (const url of [`${api.url}/`, `${below.url}/gateway`]) {
      const { status, headers: sent } = await get(url, headers);
      assert.is(status, 200, url);
      assert.match(sent['content-type'] ?? '', 'text/html');
    }
  }
});

dashboard('below a root path it is there alone, and its files are too', async () => {
  assert.is((await get(`${below.url}/`, HTML)).status, 404);
  assert.is((await get(`${below.url}/gatewayprojects`, HTML)).status, 404);
  for (const path of ['/gateway', '/gateway/', '/gateway/projects/a/events']) {
    const { status, body } = await get(below.url + path, HTML);
    assert.is(status, 200, path);
    for (const asset of assetsOf(body)) {
      assert.match(asset, /^\/gateway\/assets\//);
      assert.is((await get(below.url + asset)).status, 200);
    }
  }
});

dashboard(
  'pages of the portal may be framed by the ancestors of the settings, others by nobody',
  async () => {
    const ancestorsOf = async (url: string) =>
      /frame-ancestors (.*)$/.exec(
        String((await get(url, HTML)).headers['content-security-policy']),
      )?.[1];
    assert.is(await ancestorsOf(`${below.url}/gateway/portal/a`), "'self' https://*.example.com");
    for (const path of ['/gateway', '/gateway/projects/a/portal/b', '/gateway/portals/a'])
      assert.is(await ancestorsOf(below.url + path), "'none'", path);
    assert.is(await ancestorsOf(`${api.url}/portal/a`), "'none'");
    for (const ancestor of ['*', "'none'; script-src *", 'https://a.example.com/path'])
      assert.throws(
        () =>
          configOf(
            { url: 'postgres://a:b@localhost/c' },
            { portal: { frame_ancestors: [ancestor] } },
          ),
        'https://app.example.com',
      );
  },
);

dashboard('with dashboard.enabled off there is none', async () => {
  const without = await startApi({ file: { dashboard: { enabled: false } } });
  try {
    assert.is((await get(`${without.url}/`, HTML)).status, 404);
  } finally {
    await without.close();
  }
});

dashboard(
  'a style sheet of the operator is loaded last, and a file that is not there stops the start',
  async () => {
    const file = path.join(mkdtempSync(path.join(tmpdir(), 'brand-')), 'brand.css');
    assert.throws(
      () => serveDashboard('', [], file),
      /^dashboard\.stylesheet .*no such file.*Set it to a readable CSS file/,
    );
    writeFileSync(file, ":root { --brand-name: 'Parcels'; }");
    const branded = await startApi({ file: { dashboard: { stylesheet: file } } });
    try {
      const page = await get(`${branded.url}/`, HTML);
      const name = assetsOf(page.body).find((it) => it.includes('/brand-')) ?? '';
      assert.ok(page.body.indexOf(name) > page.body.indexOf('/assets/style-'));
      const css = await get(branded.url + name);
      assert.is(css.headers['content-type'], 'text/css; charset=utf-8');
      assert.match(css.body.toString(), 'Parcels');
    } finally {
      await branded.close();
    }
  },
);

dashboard('the page links to the documentation where the server has it', async () => {
  for (const hasDocs of [true, false]) {
    const app = new Koa().use(serveDashboard('', [], undefined, hasDocs));
    const handle = app.callback();
    const server = http.createServer((request, response) => void handle(request, response));
    const url = `http://127.0.0.1:${await loopback(server)}/`;
    assert.is((await get(url, HTML)).body.includes('<html lang="en" data-docs>'), hasDocs);
    server.close();
  }
});

dashboard.run();
