// @ts-check
// `npm run docs:site`: builds `packages/docs/dist/site`, unless its sources are unchanged since the
// last build. `--out FOLDER [--base /path/]` places a copy in the folder of its version there.
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { BASE, OUTSIDE } from '@gateway/docs';
import { withLock } from '../prepare/lock.mjs';
import { Problem } from '../prepare/problem.mjs';
import { LICENCE_END, licencesOf, signatureOf } from '../prepare/site.mjs';
import { names as settled } from '../release/names.mjs';
import { filesIn, problemsOf } from './links.mjs';
import { llmsIndex, navigation, readPages } from './pages.mjs';
import { placeVersion, versionsPage } from './versions.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));

/** Colours of a drawing: as an image it follows the colour scheme of the page. */
const DRAWING_COLOURS = `  svg { --paper: #fff; --ink: #171b26; }
  @media (prefers-color-scheme: dark) { svg { --paper: #121212; --ink: #e8eaf0; } }
`;

/**
 * Builds the site; takes milliseconds if it is up to date.
 * @param {{ root: string, version: string, names?: typeof settled }} options
 * @returns {Promise<string>} its folder
 */
export async function buildSite({ root, version, names = settled }) {
  const dist = path.join(root, 'packages', 'docs', 'dist');
  const site = path.join(dist, 'site');
  const stamp = path.join(dist, '.site');
  const viewer = path.join(root, 'packages', 'dashboard', 'dist', 'site', 'viewer');
  const files = navigation(root).flatMap(({ items }) => items.map(({ file }) => file));
  const inputs = [...files, 'docs', 'package-lock.json'].map((name) => path.join(root, name));
  const signature = signatureOf([...inputs, here, viewer]) + JSON.stringify({ version, names });
  if (fs.existsSync(site) && fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === signature)
    return site;
  // Names of scripts derive from these paths, so each build has the same.
  const work = path.join(root, '.cache', 'docs-site');
  const fresh = `${site}.fresh`;
  await withLock(`${work}.lock`, async () => {
    try {
      await generate({ root, version, names, work, out: fresh, viewer });
      fs.rmSync(site, { recursive: true, force: true });
      fs.renameSync(fresh, site);
      fs.writeFileSync(stamp, signature);
    } finally {
      for (const folder of [work, fresh]) fs.rmSync(folder, { recursive: true, force: true });
    }
  });
  return site;
}

/** @param {{ root: string, version: string, names: typeof settled, work: string, out: string, viewer: string }} options */
async function generate({ root, version, names, work, out, viewer }) {
  // Otherwise the generator leaves its base out of the addresses of scripts.
  process.env['NODE_ENV'] = 'production';
  const { build } = await import('@rspress/core');
  const { renderMermaidSVG } = await import('beautiful-mermaid');
  const pages = readPages({ root, version, names });
  const source = path.join(work, 'pages');
  /** @param {string} name @param {string} text */
  const publish = (name, text) => write(path.join(source, 'public', name), text);
  for (const { name, source: text } of pages) {
    let drawn = 0;
    const page = text
      .replaceAll(/^```mermaid\n([^]*?)^```$/gm, (_, drawing) => {
        const image = `images/${path.basename(name)}-${++drawn}.svg`;
        // The renderer asks for a font of another server.
        const svg = renderMermaidSVG(drawing, { bg: 'var(--paper)', fg: 'var(--ink)' });
        publish(image, svg.replace(/^\s*@import url\(.*\n/m, DRAWING_COLOURS));
        return `![Diagram](/${image})`;
      })
      .replaceAll('```promql', '```text');
    write(path.join(source, `${name}.md`), page);
  }
  fs.cpSync(path.join(root, 'docs', 'images'), path.join(source, 'public', 'images'), {
    recursive: true,
  });
  for (const name of ['openapi.json', 'gateway.schema.json'])
    publish(
      `reference/${name}`,
      fs.readFileSync(path.join(root, 'docs', 'reference', name), 'utf8'),
    );

  /** @type {Set<string>} */
  const bundled = new Set();
  await build({
    docDirectory: source,
    config: {
      root: source,
      outDir: out,
      base: `${BASE}/`,
      title: 'gateway',
      logoText: 'gateway',
      description: 'A webhook gateway for Kafka, SQS and HTTP.',
      globalStyles: path.join(here, 'site.css'),
      // Without a limit of time, a slow machine colours the same as a fast one.
      markdown: { link: { checkDeadLinks: false }, shiki: { tokenizeTimeLimit: 0 } },
      mediumZoom: false,
      themeConfig: {
        nav: [
          { text: 'Start', link: '/start' },
          { text: 'All pages', link: '/contents' },
          { text: `v${version}`, link: `${OUTSIDE}${BASE}/versions.html` },
        ],
        sidebar: {
          '/': navigation(root).map(({ text, items }) => ({
            text,
            collapsible: true,
            collapsed: text === 'Decisions',
            items: items.map(({ text, link }) => ({ text, link: link.replace(/\.md$/, '') })),
          })),
        },
        enableContentAnimation: false,
      },
      builderConfig: {
        output: { legalComments: 'linked', sourceMap: false },
        performance: { printFileSize: false, buildCache: false },
        tools: {
          rspack: (_, { appendPlugins, environment, rspack }) => {
            if (environment.name !== 'web') return;
            // It would be the path of this folder.
            appendPlugins(new rspack.DefinePlugin({ 'import.meta.url': '""' }));
            appendPlugins((/** @type {any} */ compiler) =>
              compiler.hooks.done.tap('licences', (/** @type {any} */ { compilation }) => {
                for (const it of compilation.modules)
                  for (const one of it.modules ?? [it]) bundled.add(one.nameForCondition() ?? '');
              }),
            );
          },
        },
      },
    },
  });

  outsourceScripts(out);
  nameFilesInSearch(out);
  write(path.join(out, 'static', 'licences.txt'), licencesOf(bundled).join(LICENCE_END));
  for (const { name, markdown } of pages) write(path.join(out, `${name}.md`), markdown);
  write(path.join(out, 'llms.txt'), llmsIndex(root, pages));
  const full = pages.map(({ name, markdown }) => `<!-- ${BASE}/${name}.md -->\n\n${markdown}`);
  write(path.join(out, 'llms-full.txt'), full.join('\n\n'));
  write(path.join(out, 'versions.html'), versionsPage([{ version, href: 'index.html' }]));
  fs.cpSync(viewer, path.join(out, 'static', 'viewer'), { recursive: true });
  write(
    path.join(out, 'static', 'viewer', 'start.js'),
    "SwaggerUIBundle({ url: 'openapi.json', dom_id: '#viewer', deepLinking: true, validatorUrl: null, docExpansion: 'none', supportedSubmitMethods: [] });\n",
  );
  fs.copyFileSync(path.join(here, 'openapi.html'), path.join(out, 'reference', 'openapi.html'));

  const problems = problemsOf(out);
  if (problems.length > 0)
    throw new Problem(
      `The docs site has ${problems.length} broken links or requests to other servers; correct the pages in docs/:\n${problems.join('\n')}`,
    );
}

/**
 * Moves inline scripts to files: the content security policy of the server allows no others.
 * @param {string} out
 */
function outsourceScripts(out) {
  for (const name of filesIn(out).filter((it) => it.endsWith('.html'))) {
    const file = path.join(out, name);
    const page = fs
      .readFileSync(file, 'utf8')
      .replaceAll(/<script>([^]*?)<\/script>/g, (_, script) => {
        const hash = crypto.createHash('sha256').update(script).digest('hex').slice(0, 10);
        write(path.join(out, 'static', 'js', `inline.${hash}.js`), script);
        return `<script src="${BASE}/static/js/inline.${hash}.js"></script>`;
      });
    fs.writeFileSync(file, page);
  }
}

/**
 * Lets results of the search lead to files: the generator leaves out `.html`, which a static server
 * does not complete when the page is reloaded.
 * @param {string} out
 */
function nameFilesInSearch(out) {
  const folder = path.join(out, 'static');
  for (const name of fs.readdirSync(folder).filter((it) => it.startsWith('search_index.'))) {
    const file = path.join(folder, name);
    /** @type {{ routePath: string }[]} */
    const pages = JSON.parse(fs.readFileSync(file, 'utf8'));
    for (const page of pages) page.routePath = `${page.routePath.replace(/\/$/, '/index')}.html`;
    fs.writeFileSync(file, JSON.stringify(pages));
  }
}

/**
 * @param {string} file
 * @param {string} text
 */
function write(file, text) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { values } = parseArgs({
    options: { out: { type: 'string' }, base: { type: 'string', default: '/docs/' } },
  });
  const root = path.resolve(here, '..', '..');
  const { version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
  try {
    const site = await buildSite({ root, version });
    console.log(site);
    if (values.out)
      console.log(
        placeVersion({ site, out: path.resolve(values.out), version, base: values.base }),
      );
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
