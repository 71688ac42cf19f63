import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { files, read, root } from './house.js';

const docs = suite('meta/docs');

const pages = files().filter(
  (name) => name.endsWith('.md') && (!name.includes('/') || name.startsWith('docs/')),
);

docs('every relative link leads to a file, and to a heading of it when it names one', () => {
  const broken = pages.flatMap((page) =>
    links(read(page))
      .filter((link) => !/^([a-z]+:|\/\/)/i.test(link))
      .filter((link) => !leads(page, link))
      .map((link) => `${page}: ${link}`),
  );
  assert.equal(broken, []);
});

docs('every file that a page names in code exists', () => {
  // The lists of released versions describe past states.
  const living = pages.filter((page) => page !== 'CHANGELOG.md');
  const broken = living.flatMap((page) =>
    [
      ...read(page).matchAll(
        /`((?:packages|plugins|extras|test|scripts|migrations|docs|bin)\/[\w./-]+\.\w+)`/g,
      ),
    ]
      .map(([, name = '']) => name)
      .filter((name) => !fs.existsSync(path.join(root, name)))
      .map((name) => `${page}: ${name}`),
  );
  assert.equal(broken, []);
});

docs(
  'each guarantee names a test of this repository that proves it, and what is not promised',
  () => {
    const promises = read('docs/internals/guarantees.md').split(/^### /m).slice(1);
    assert.ok(promises.length > 10);
    const bare = promises.filter(
      (promise) =>
        !/^- \*\*Proved by\*\*[^]*?\]\(\.\.\/\.\.\/test\/[\w./-]+\.test\.ts\)/m.test(promise) ||
        !promise.includes('\n- **Not promised:** '),
    );
    assert.equal(
      bare.map((promise) => promise.split('\n')[0]),
      [],
    );
  },
);

docs('every page is listed in the map of the docs, which is the navigation of the site', () => {
  const listed = links(read('docs/README.md')).map((link) =>
    path.posix.join('docs', link.split('#')[0] ?? ''),
  );
  const missing = pages.filter(
    (page) => page.startsWith('docs/') && page !== 'docs/README.md' && !listed.includes(page),
  );
  assert.equal(missing, []);
});

docs.run();

/** Link and image targets of a page, outside code. */
function links(text: string): string[] {
  const prose = text.replace(/^(```|~~~)[^]*?^\1/gm, '').replace(/`[^`\n]*`/g, '');
  const inline = [...prose.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)];
  const references = [...prose.matchAll(/^\s*\[[^\]]+\]:\s*(\S+)/gm)];
  return [...inline, ...references].map(([, target = '']) => decodeURI(target));
}

function leads(page: string, link: string): boolean {
  const [target = '', heading] = link.split('#');
  const name =
    target === ''
      ? page
      : path.posix.join(target.startsWith('/') ? '' : path.posix.dirname(page), target);
  const place = path.join(root, name);
  if (!fs.existsSync(place)) return false;
  return heading === undefined || !name.endsWith('.md') || anchors(read(name)).has(heading);
}

/** The anchors that GitHub generates for a page's headings. */
function anchors(text: string): Set<string> {
  const found = new Set<string>();
  for (const [, title = ''] of text
    .replace(/^(```|~~~)[^]*?^\1/gm, '')
    .matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)) {
    const plain = title.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
    const anchor = plain
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-');
    let unique = anchor;
    for (let n = 1; found.has(unique); n++) unique = `${anchor}-${n}`;
    found.add(unique);
  }
  return found;
}
