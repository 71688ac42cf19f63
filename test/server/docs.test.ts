import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import Koa from 'koa';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BASE, OUTSIDE } from '@gateway/docs';
import { serveDocs } from '#server/docs';
import { loopback } from '../support/ports.js';
import { tempFolder } from '../support/start/keep.js';
import { startApi } from './api.js';

const docs = suite('server/docs');

const folder = tempFolder('docs');
const image = Buffer.from([0x89, 0x50, 0xff, 0x00]);
for (const [name, content] of Object.entries({
  'index.html': `<a href="${BASE}/guides/kafka.html">Kafka</a>`,
  '404.html': 'no such page',
  'guides/kafka.html': `<a href="${OUTSIDE}${BASE}/versions.html">v1</a>`,
  'guides/kafka.md': '# Kafka\n',
  'static/js/page.0123456789.js': `load("${BASE}/")`,
  'images/path.png': image,
})) {
  fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
  fs.writeFileSync(path.join(folder, name), content);
}
const app = new Koa()
  .use(serveDocs('/gateway', pathToFileURL(`${folder}/`)))
  .use((ctx) => (ctx.body = 'another page'));
const handle = app.callback();
const server = http.createServer((request, response) => void handle(request, response));
const url = `http://127.0.0.1:${await loopback(server)}`;
docs.after(() => {
  server.close();
});

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(url + path, { redirect: 'manual', headers });

docs(
  'pages, Markdown and images are served below root_path, with links that lead there',
  async () => {
    const redirect = await get('/gateway/docs');
    assert.is(redirect.headers.get('location'), '/gateway/docs/');
    const page = await get('/gateway/docs/');
    assert.is(await page.text(), '<a href="/gateway/docs/guides/kafka.html">Kafka</a>');
    assert.is(page.headers.get('content-encoding'), 'gzip');
    assert.match(page.headers.get('content-security-policy')!, "script-src 'self';");
    for (const path of ['/gateway/docs/guides/kafka.html', '/gateway/docs/guides/kafka'])
      assert.is(await (await get(path)).text(), '<a href="/gateway/docs/versions.html">v1</a>');
    const markdown = await get('/gateway/docs/guides/kafka.md', { 'accept-encoding': 'identity' });
    assert.is(await markdown.text(), '# Kafka\n');
    assert.match(markdown.headers.get('content-type')!, 'text/markdown');
    assert.is(markdown.headers.get('content-encoding'), null);
    const picture = await get('/gateway/docs/images/path.png');
    assert.equal(Buffer.from(await picture.arrayBuffer()), image);
  },
);

docs('names with a hash are kept for good, other files are asked for again', async () => {
  const asset = await get('/gateway/docs/static/js/page.0123456789.js');
  assert.match(asset.headers.get('cache-control')!, 'immutable');
  assert.is(await asset.text(), 'load("/gateway/docs/")');
  const first = await get('/gateway/docs/guides/kafka.html');
  assert.is(first.headers.get('cache-control'), 'no-cache');
  const again = await get('/gateway/docs/guides/kafka.html', {
    'if-none-match': first.headers.get('etag')!,
    'cache-control': 'max-age=0',
  });
  assert.is(again.status, 304);
});

docs('an unknown page is 404, and paths outside the docs are for others', async () => {
  const unknown = await get('/gateway/docs/..%2fpackage.json');
  assert.is(unknown.status, 404);
  assert.is(await unknown.text(), 'no such page');
  for (const path of ['/gateway/docsets', '/docs/', '/gateway/'])
    assert.is(await (await get(path)).text(), 'another page');
});

docs(
  'a server serves them without a key; where they are not built, the page says how',
  async () => {
    const api = await startApi();
    try {
      const answer = await fetch(`${api.url}/docs/`, { headers: { accept: 'text/html' } });
      const text = await answer.text();
      if (answer.status === 404) assert.match(text, 'npm run docs:site');
      else assert.match(text, 'href="/docs/guides/kafka.html"');
      assert.match(answer.headers.get('content-security-policy')!, "default-src 'none'");
    } finally {
      await api.close();
    }
  },
);

docs.run();
