import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startApi, type Api } from '../api.js';
import { description } from '../described.js';

const pages = suite('server/openapi/pages');
let api: Api;

pages.before(async () => {
  api = await startApi();
});
pages.after(() => api.close());

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${api.url}/api/v1${path}`, { headers });

pages('the document is served without a key, and a client that has it gets 304', async () => {
  const answer = await get('/openapi.json');
  assert.is(answer.status, 200);
  assert.match(answer.headers.get('content-type')!, 'application/json');
  const { paths } = (await answer.json()) as typeof description;
  assert.equal(paths, description.paths);
  // Without an explicit cache-control, fetch requests a fresh copy.
  const again = await get('/openapi.json', {
    'if-none-match': answer.headers.get('etag')!,
    'cache-control': 'max-age=0',
  });
  assert.is(again.status, 304);
});

pages('the viewer loads from this server alone, and runs no script of its page', async () => {
  const page = await get('/docs');
  assert.match(page.headers.get('content-security-policy')!, "script-src 'self';");
  const html = await page.text();
  assert.not.match(html, /https?:|<script>/);
  const places = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, place]) => place!);
  assert.is(places.length, 3);
  for (const place of places) {
    const file = await fetch(new URL(place, page.url));
    assert.is(file.status, 200, place);
    assert.match(
      file.headers.get('content-type')!,
      place.endsWith('.css') ? 'text/css' : 'text/javascript',
    );
    assert.is(file.headers.get('x-content-type-options'), 'nosniff');
    await file.arrayBuffer();
  }
});

pages.run();
