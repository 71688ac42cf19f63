// deadline: 400 s, long
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import Koa from 'koa';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isText } from '@gateway/docs';
import { serveDocs } from '#server/docs';
import { buildDocs } from '../../scripts/release/docs.mjs';
import { filesIn, problemsOf } from '../../scripts/site/links.mjs';
import { closeBrowser, openBrowser, SIZES, visit } from '../dashboard/browser.js';
import { loopback } from '../support/ports.js';
import { tempFolder } from '../support/start/keep.js';

const docs = suite('release/docs-site');

const root = fileURLToPath(new URL('../..', import.meta.url));
const out = tempFolder('docs-site');
// The build fails if a link is dead.
const [index = ''] = await buildDocs({ root, out, version: '0.1.0' });
const site = path.join(root, 'packages/docs/dist/site');
const names = filesIn(site);

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
};

/** A drawing made by hand and a generated one, by page. */
const DRAWINGS = { 'index.html': 'path.svg', 'guides/quarantine.html': 'quarantine-1.svg' };

docs('every page has its Markdown beside it, and llms.txt leads to all of them', () => {
  const pages = names.filter((name) => name.endsWith('.md'));
  assert.ok(pages.length > 60);
  for (const name of pages) assert.ok(names.includes(name.replace(/\.md$/, '.html')), name);
  const listed = fs.readFileSync(path.join(site, 'llms.txt'), 'utf8');
  for (const name of pages.filter((it) => it !== 'contents.md'))
    assert.ok(listed.includes(`/__docs__/${name})`), name);
});

docs('the files are small, and the copy of a version holds its own path alone', () => {
  const bytes = names.reduce((sum, name) => sum + fs.statSync(path.join(site, name)).size, 0);
  assert.ok(bytes < 20e6, `${bytes}`);
  const version = path.join(path.dirname(index), '0.1.0');
  const unplaced = filesIn(version).filter(
    (name) =>
      isText(name) &&
      /__docs__|docs\.invalid/.test(fs.readFileSync(path.join(version, name), 'utf8')),
  );
  assert.equal(unplaced, []);
  assert.match(fs.readFileSync(index, 'utf8'), 'href="0.1.0/index.html"');
});

docs('no file holds the path of the build, and the bundled packages have their licences', () => {
  const revealing = names.filter((name) =>
    fs.readFileSync(path.join(site, name), 'latin1').includes(root),
  );
  assert.equal(revealing, []);
  assert.match(fs.readFileSync(path.join(site, 'static/licences.txt'), 'utf8'), /^react-dom /m);
});

docs('a dead link, a dead heading and a script of another server are found', () => {
  const folder = tempFolder('dead');
  fs.writeFileSync(
    path.join(folder, 'index.html'),
    '<a href="/__docs__/none.html">1</a><a href="#none">2</a><script src="https://cdn.invalid/x.js"></script><a href="https://example.com">3</a>',
  );
  assert.equal(problemsOf(folder), [
    'index.html: /__docs__/none.html leads to no page',
    'index.html: #none leads to no heading',
    'index.html: <script src> loads https://cdn.invalid/x.js',
  ]);
});

for (const rootPath of ['', '/gateway'])
  docs(
    `a browser reads, searches and moves on below "${rootPath}/docs", without other hosts`,
    async () => {
      const app = new Koa().use(serveDocs(rootPath, pathToFileURL(`${site}/`)));
      const handle = app.callback();
      const server = http.createServer((request, response) => void handle(request, response));
      const base = `http://127.0.0.1:${await loopback(server)}${rootPath}/docs`;
      const browser = await openBrowser();
      try {
        for (const isPhone of [false, true]) {
          const { page, close } = await visit(browser, `${base}/reference/limits.html`, {
            isPhone,
            theme: isPhone ? 'dark' : 'light',
          });
          const elsewhere: string[] = [];
          page.on('request', (request) => {
            if (!request.url().startsWith(base)) elsewhere.push(request.url());
          });
          const width = await page.evaluate(() => document.documentElement.scrollWidth);
          assert.ok(width <= SIZES[isPhone ? 'phone' : 'desktop'].width, `${width}`);
          if (!isPhone) {
            await page.waitForLoadState('networkidle'); // the button works once its script has run
            await page.locator('.rp-search-button').first().click();
            await page.locator('.rp-search-panel__input').fill('quarantine');
            await page.locator('.rp-suggest-item').first().click();
            await page.waitForURL(/quarantine/);
            await page.locator('h1').waitFor();
          }
          await page.goto(`${base}/reference/openapi.html`);
          await page.locator('.opblock-tag').first().waitFor();
          assert.equal(elsewhere, []);
          await close();
        }
      } finally {
        await closeBrowser(browser);
        server.close();
      }
    },
  );

docs('on a plain file server a result of the search can be loaded again', async () => {
  const folder = path.dirname(index);
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://localhost');
    const file = path.join(folder, decodeURI(pathname).replace(/^\/docs\//, ''));
    const isFile = fs.existsSync(file) && fs.statSync(file).isFile();
    response.statusCode = isFile ? 200 : 404;
    response.setHeader('content-type', TYPES[path.extname(file)] ?? 'text/plain');
    response.end(isFile ? fs.readFileSync(file) : undefined);
  });
  const base = `http://127.0.0.1:${await loopback(server)}/docs/0.1.0`;
  const browser = await openBrowser();
  try {
    const { page, close } = await visit(browser, `${base}/index.html`);
    await page.waitForLoadState('networkidle');
    await page.locator('.rp-search-button').first().click();
    await page.locator('.rp-search-panel__input').fill('quarantine');
    await page.locator('.rp-suggest-item').first().click();
    await page.waitForURL(/quarantine/);
    assert.is((await page.reload())?.status(), 200, page.url());
    await page.locator('h1', { hasText: 'Quarantine' }).waitFor();
    await close();
  } finally {
    await closeBrowser(browser);
    server.close();
  }
});

docs('drawings follow the theme of the page', async () => {
  const app = new Koa().use(serveDocs('', pathToFileURL(`${site}/`)));
  const handle = app.callback();
  const server = http.createServer((request, response) => void handle(request, response));
  const base = `http://127.0.0.1:${await loopback(server)}/docs`;
  const browser = await openBrowser();
  try {
    for (const [name, drawing] of Object.entries(DRAWINGS)) {
      const { page, close } = await visit(browser, `${base}/${name}`);
      const image = page.locator(`img[src*="${drawing}"]`).first();
      await image.scrollIntoViewIfNeeded();
      await page.waitForLoadState('networkidle');
      const light = await image.screenshot();
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.reload();
      await page.locator('html.dark').waitFor();
      await image.scrollIntoViewIfNeeded();
      await page.waitForLoadState('networkidle');
      const dark = await image.screenshot();
      assert.not.ok(light.equals(dark), drawing);
      await close();
    }
  } finally {
    await closeBrowser(browser);
    server.close();
  }
});

docs.run();
